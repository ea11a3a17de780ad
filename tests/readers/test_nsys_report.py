"""Exports of binary reports, with stand-ins for nsys that do what real ones were seen to do."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from analyzer.errors import TraceError
from analyzer.readers.nsys_report import MAGIC, export_command, export_report, looks_like
from analyzer.readers.nsys_sqlite import read
from tests.readers.nsys_sqlite.builder import Export
from tests.shared import needs_shared, trace_path


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "my run.nsys-rep"
    path.parent.mkdir()
    path.write_bytes(MAGIC + b" 1.\n")
    return path


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A program named nsys on PATH; ``$7`` is the product, ``$8`` the report."""
    program = folder / "bin" / "nsys"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


def refusal(report: Path, out: Path, timeout_s: float = 20) -> str:
    with pytest.raises(TraceError) as caught:
        export_report(report, out, timeout_s)
    assert "nsys export --type sqlite --force-overwrite true -o 'my run.sqlite'" in str(caught.value)
    assert list(report.parent.iterdir()) == [report]
    return str(caught.value)


def test_the_command_line() -> None:
    assert export_command(Path("in/a.nsys-rep"), Path("out/a.sqlite")) == [
        "nsys", "export", "--type", "sqlite", "--force-overwrite", "true", "-o", "out/a.sqlite", "in/a.nsys-rep",
    ]  # fmt: skip


def test_a_report_is_exported_elsewhere(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Export().kernel("k", 0, 1).write(tmp_path / "made.sqlite")
    stand_in(
        tmp_path,
        monkeypatch,
        f'echo "$TMPDIR" > \'{tmp_path}/tmpdir\'; cp \'{made}\' "$7"; touch "$TMPDIR/x"',
    )
    product = export_report(report, tmp_path / "out")
    assert product.parent == tmp_path / "out" and len(read(product)) == 1
    assert list(product.parent.iterdir()) == [product]
    assert list(report.parent.iterdir()) == [report]
    assert (tmp_path / "tmpdir").read_text().startswith(str(product.parent))


def test_without_nsys(report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "not on PATH" in refusal(report, tmp_path / "out")


def test_an_nsys_that_refuses(report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(
        tmp_path, monkeypatch, "echo 'Exportation error: Version number is invalid: 2024@6@2' >&2; exit 1"
    )
    assert "exit status 1): Exportation error: Version number is invalid" in refusal(report, tmp_path / "out")


def test_success_without_a_product(report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "exit 0")
    assert "it said nothing" in refusal(report, tmp_path / "out")


def test_a_stub_is_no_export(report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = tmp_path / "stub.sqlite"
    connection = sqlite3.connect(stub)
    connection.executescript("CREATE TABLE StringIds (id, value); CREATE TABLE ProcessStreams (globalPid)")
    connection.close()
    stand_in(tmp_path, monkeypatch, f"echo ProtobufParseException; cp '{stub}' \"$7\"")
    assert "without events: ProtobufParseException" in refusal(report, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_an_nsys_that_hangs(report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "exec sleep 60")
    assert "did not end within 0.2 seconds" in refusal(report, tmp_path / "out", 0.2)


@needs_shared
@pytest.mark.parametrize("name", ["jax_mem", "nccl_init_nokernel"])
def test_real_reports_are_known_by_content(name: str, tmp_path: Path) -> None:
    renamed = tmp_path / "trace.json"
    renamed.write_bytes(trace_path(f"alpa/{name}.nsys-rep").read_bytes()[:4096])
    assert looks_like(renamed)
    assert not looks_like(trace_path(f"alpa/{name}.sqlite"))
