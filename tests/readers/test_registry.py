import gzip
import os
import sqlite3
from pathlib import Path

import pytest

from analyzer.errors import TraceError
from analyzer.readers import nsys_report, nsys_sqlite
from analyzer.readers.registry import expand, is_trace, read_file
from tests.readers.kineto_json.builder import host, kernel, text_of
from tests.shared import needs_shared, trace_path

TRACE = text_of([kernel("k", 1, 1), host("cpu_op", "op", 0, 1)]).encode()


def put(path: Path, content: bytes = TRACE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", ["a.json", "a.sqlite", "a", "a.nsys-rep", "a.json.gz"])
@pytest.mark.parametrize("content", [TRACE, gzip.compress(TRACE)], ids=["plain", "gzip"])
def test_the_content_decides_not_the_name(tmp_path: Path, name: str, content: bytes) -> None:
    (trace,) = read_file(put(tmp_path / name, content))
    assert trace.source.kind == "kineto-json"
    assert trace.source.path == str(tmp_path / name)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "an empty file"),
        (b"PK\x03\x04....", "a zip archive"),
        (b"\x80\x04\x95\x00", "a Python pickle"),
        (b"<html><body>", "a web page"),
        (b"\x28\xb5\x2f\xfd\x00", "zstd"),
        (b"rank,time\n0,1\n", "a text file"),
        (b"\x00\x01\x02", "a binary file"),
        (b"version https://git-lfs.github.com/spec/v1", "Git LFS"),
        (gzip.compress(b"SQLite format 3\0", mtime=0), "SQLite"),
    ],
)
def test_other_files_are_told_what_they_look_like(tmp_path: Path, content: bytes, words: str) -> None:
    path = put(tmp_path / "x.json", content)
    with pytest.raises(TraceError, match=words) as caught:
        read_file(path)
    assert ".nsys-rep" in caught.value.hint
    assert not is_trace(path)


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE users (id)")
    connection.close()
    with pytest.raises(TraceError, match="none of its tables"):
        read_file(path)
    assert not is_trace(path)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="is a folder"):
        read_file(tmp_path)


@needs_shared
def test_a_database_goes_to_its_reader() -> None:
    traces = read_file(trace_path("nsysai/mock.sqlite"))
    assert traces[0].source.kind == "nsys-sqlite"


@needs_shared
def test_a_report_is_exported_and_keeps_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = put(tmp_path / "run.nsys-rep", b"NVIDIA Tegra Profiler Report 1.\n...")

    def export(path: Path, out_dir: Path) -> Path:
        assert path == report
        return put(out_dir / "run.sqlite", trace_path("nsysai/mock.sqlite").read_bytes())

    monkeypatch.setattr(nsys_report, "export_report", export)
    assert read_file(report)[0].source.path == str(report)
    assert is_trace(report)

    def refuse(path: Path, progress: object) -> list[object]:
        raise TraceError(str(path), "table X", "is damaged", "capture again")

    monkeypatch.setattr(nsys_sqlite, "read", refuse)
    with pytest.raises(TraceError, match="is damaged") as caught:
        read_file(report)
    assert caught.value.path == str(report)


def test_a_folder_yields_its_traces_in_numeric_order(tmp_path: Path) -> None:
    for name in ("rank10.json", "rank2.json", "b/rank1.json", "notes.md", "config.json"):
        put(tmp_path / name, TRACE if "rank" in name else b'{"a": [1]}')
    put(tmp_path / "diagnosis" / "path.perfetto.json")
    put(tmp_path / "DIAGNOSIS.md", b"# step time")
    found = [str(path.relative_to(tmp_path)) for path in expand([tmp_path])]
    assert found == ["b/rank1.json", "rank2.json", "rank10.json"]


def test_patterns_and_files_are_taken_once(tmp_path: Path) -> None:
    first, second = put(tmp_path / "r1.json"), put(tmp_path / "r2.json.gz", gzip.compress(TRACE))
    put(tmp_path / "r3.txt", b"no trace")
    (tmp_path / "link.json").symlink_to(first)
    assert expand([tmp_path / "r*", str(first), tmp_path / "link.json"]) == [first, second]


def test_a_relative_pattern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "a" / "r1.json")
    monkeypatch.chdir(tmp_path)
    assert expand(["*/r?.json"]) == [Path("a/r1.json")]
    assert expand(["**/*.json"]) == [Path("a/r1.json")]
    assert expand(["a*"]) == [Path("a/r1.json")]


def test_a_name_with_brackets_that_exists_is_a_name(tmp_path: Path) -> None:
    path = put(tmp_path / "trace[1].json")
    assert expand([path]) == [path]


def test_an_explicit_file_is_taken_as_it_is(tmp_path: Path) -> None:
    path = put(tmp_path / "notes.md", b"text")
    assert expand([path]) == [path]


def test_an_export_beside_its_report_stands_for_both(tmp_path: Path) -> None:
    report = put(tmp_path / "run.nsys-rep", b"NVIDIA Tegra Profiler Report 1.\n")
    alone = put(tmp_path / "other.nsys-rep", b"NVIDIA Tegra Profiler Report 1.\n")
    export = put(tmp_path / "run.sqlite", b"SQLite format 3\0" + b"\0" * 100)
    assert expand([export, report, alone]) == [alone, export]


@pytest.mark.parametrize(
    ("name", "words"),
    [("absent.json", "does not exist"), ("x*.json", "matches 0 paths"), (".", "holds no trace")],
)
def test_nothing_to_read_is_an_error(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(TraceError, match=words):
        expand([tmp_path / name])


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    path = put(tmp_path / "x.json")
    path.chmod(0)
    with pytest.raises(TraceError, match="cannot be read"):
        expand([tmp_path])
