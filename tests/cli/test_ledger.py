"""``tracebound ledger``: a ledger from a folder, its sums, and every way in which it can be refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analyzer.ledger import files
from tests.cli.conftest import run
from tests.ledger import families as fam
from tests.ledger.test_families import SMALL_QWEN

STEP = ("--batch", "4", "--context", "10")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    config = fam.qwen_config(**SMALL_QWEN)
    return fam.write_whole(tmp_path / "tiny", config, fam.qwen(config))


def test_build_writes_a_ledger_that_show_reads(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "ledger.toml"
    result = run("ledger", "build", str(folder), "-o", str(target), *STEP, "--tensor", "2", "--expert", "2")
    assert (result.exit_code, result.stdout) == (0, f"{target}\n")
    assert result.stderr == f"next: tracebound ledger show {target}\n"
    ledger = files.read(target)
    assert ledger.layout is not None
    assert (ledger.layout.ranks, ledger.workload.model) == (2, "tiny (Qwen3MoeForCausalLM)")
    assert str(tmp_path) not in target.read_text(encoding="utf-8")
    shown = run("ledger", "show", str(target), "--device", "NVIDIA H200")
    assert shown.exit_code == 0
    assert "decode, batch 4, context 10" in shown.stdout
    assert "4.91674 TB/s on ranks 0-1 (H200 SXM: driver figures in public traces)" in shown.stdout
    found = json.loads(
        run("ledger", "show", str(target), "--bandwidth", "4.8TB/s", "--format", "json").stdout
    )
    assert (found["format"], found["format_version"]) == ("tracebound.ledger-summary", 1)
    total = sum(entry.bytes for phase in ledger.phase for entry in phase.entry if 0 in entry.ranks)
    assert found["total"]["bytes_max"] == total
    assert found["bandwidth"] == [{"ranks": [0, 1], "bytes_per_s": 4.8e12, "source": "--bandwidth"}]


def test_the_same_inputs_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "a.toml", tmp_path / "b.toml"
    for target in (first, second):
        assert run("ledger", "build", str(folder), "-o", str(target), *STEP, "-q").exit_code == 0
    assert first.read_bytes() == second.read_bytes()


def test_every_option_reaches_the_ledger(folder: Path, tmp_path: Path) -> None:
    target, counts = tmp_path / "ledger.toml", tmp_path / "counts.json"
    counts.write_text(json.dumps({"steps": [{"0": [4, 4] + [0] * 6, "1": [8] + [0] * 7}]}))
    result = run(
        "ledger", "build", str(folder), "-o", str(target), *STEP, "--tensor", "1", "--pipeline", "2",
        "--stage-layers", "1,1", "--cache-dtype", "fp8", "--weights-dtype", "fp32", "--routing", str(counts),
        "--no-activations", "--embedding", "replicated", "--name", "mine", "--applies-to", "^decode", "-q",
    )  # fmt: skip
    assert (result.exit_code, result.stderr) == (0, "")
    ledger = files.read(target)
    assert (ledger.workload.name, ledger.workload.applies_to) == ("mine", "^decode")
    entries = [entry for phase in ledger.phase for entry in phase.entry]
    assert {entry.dtype for entry in entries if entry.kind == "kv-cache"} == {"F8_E4M3"}
    assert {entry.dtype for entry in entries if entry.kind == "routed-experts"} == {"F32"}
    routed = {entry.ranks[0]: entry.bytes for entry in entries if entry.kind == "routed-experts"}
    assert routed == {0: 2 * 3 * 64 * 32 * 4, 1: 1 * 3 * 64 * 32 * 4}
    assert not any(entry.kind == "activations" for entry in entries)


def test_a_foreign_tensor_is_warned_of(tmp_path: Path) -> None:
    config = fam.qwen_config(**SMALL_QWEN)
    shapes = fam.qwen(config) | {"odd\x1b[31m": ("F32", (2,))}
    fam.write_headers(tmp_path / "m", config, shapes)
    result = run("ledger", "build", str(tmp_path / "m"), "-o", str(tmp_path / "l.toml"), *STEP)
    assert result.exit_code == 0
    assert (
        "warning: no rule knows 1 tensor of 8 bytes: listed, not counted (odd⟨U+001B⟩[31m)" in result.stderr
    )
    shown = run("ledger", "show", str(tmp_path / "l.toml"))
    assert "odd⟨U+001B⟩[31m" in shown.stdout
    assert "\x1b" not in shown.stdout + result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tensor", "3"], "--tensor: is 3, but the model has 8 attention heads"),
        (["--stage-layers", "one"], "--stage-layers: 'one' is no list of numbers"),
        (["--applies-to", "("], "--applies-to: '(' is no regular expression"),
        (["--cache-dtype", "fp7"], "--cache-dtype: is 'fp7', an unknown type"),
        (["--routing", "absent.csv"], "absent.csv: No such file or directory"),
    ],
)
def test_what_cannot_be_built_is_refused_and_nothing_is_written(
    folder: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    target = tmp_path / "ledger.toml"
    result = run("ledger", "build", str(folder), "-o", str(target), *STEP, *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not target.exists()


def test_what_cannot_be_shown_is_refused(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "ledger.toml"
    assert run("ledger", "show", str(target)).exit_code == 2
    run("ledger", "build", str(folder), "-o", str(target), *STEP)
    both = run("ledger", "show", str(target), "--device", "NVIDIA H200", "--bandwidth", "1TB/s")
    assert (both.exit_code, "stands beside --bandwidth" in both.stderr) == (2, True)
    unknown = run("ledger", "show", str(target), "--device", "NVIDIA H100")
    assert (unknown.exit_code, "'NVIDIA H100' is not one device of the table" in unknown.stderr) == (2, True)
    target.write_text(target.read_text().replace("batch = 4", "batch = 0"))
    broken = run("ledger", "show", str(target))
    assert (broken.exit_code, "(workload, batch): is 0; it must be 1 or more" in broken.stderr) == (2, True)
