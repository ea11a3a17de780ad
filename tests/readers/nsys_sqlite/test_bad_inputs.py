from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from analyzer.errors import TraceError
from analyzer.readers.nsys_sqlite import looks_like, read
from tests.readers.nsys_sqlite.builder import Export, device_names


def small(folder: Path, name: str = "export.sqlite") -> Path:
    return Export().kernel("k", 0, 1).call("cudaLaunchKernel_v7000", 0, 1).write(folder / name)


def database(path: Path, script: str) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()
    return path


def refusal(path: Path) -> str:
    with pytest.raises(TraceError) as caught:
        read(path)
    assert str(path) in str(caught.value) and "next:" in str(caught.value)
    return str(caught.value)


def test_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.sqlite"
    path.touch()
    assert not looks_like(path)
    assert "the file is empty" in refusal(path)


def test_no_file(tmp_path: Path) -> None:
    assert "cannot be opened: No such file" in refusal(tmp_path / "absent.sqlite")
    assert "cannot be opened: Is a directory" in refusal(tmp_path)


def test_no_database(tmp_path: Path) -> None:
    path = tmp_path / "notes.sqlite"
    path.write_text("these are notes")
    assert not looks_like(path)
    assert "not a SQLite database" in refusal(path)


def test_another_program_s_database(tmp_path: Path) -> None:
    path = database(tmp_path / "other.sqlite", "CREATE TABLE customers (id, name)")
    assert not looks_like(path)
    assert "not an Nsight Systems export" in refusal(path)


def test_an_export_that_was_cut_short(tmp_path: Path) -> None:
    script = (
        "CREATE TABLE StringIds (id, value); CREATE TABLE ProcessStreams (globalPid, filenameId, contentId)"
    )
    path = database(tmp_path / "failed.sqlite", script)
    assert looks_like(path)
    message = refusal(path)
    assert "no event table: it was cut short" in message
    assert "nsys export --type sqlite" in message


def test_event_tables_without_rows(tmp_path: Path) -> None:
    path = database(
        tmp_path / "none.sqlite", "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId)"
    )
    assert "holds no device work" in refusal(path)


@pytest.mark.parametrize("kept", [100, 5000, 9000])
def test_truncated_database(tmp_path: Path, kept: int) -> None:
    path = small(tmp_path)
    whole = path.read_bytes()
    assert len(whole) > kept
    path.write_bytes(whole[:kept])
    assert looks_like(path)
    assert "export the .nsys-rep report again" in refusal(path)


def test_overwritten_pages(tmp_path: Path) -> None:
    path = small(tmp_path)
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(bytes(data))
    assert "SQLite cannot read it" in refusal(path)


def test_locked_by_a_writer(tmp_path: Path) -> None:
    path = small(tmp_path)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    try:
        assert looks_like(path)
        assert "locked" in refusal(path)
    finally:
        writer.close()
    assert len(read(path)) == 1


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_an_unmerged_log_beside_it_is_not_ignored(tmp_path: Path, suffix: str) -> None:
    path = small(tmp_path)
    beside = Path(f"{path}{suffix}")
    beside.write_bytes(b"some pages")
    assert suffix in refusal(path)
    beside.write_bytes(b"")  # SQLite leaves empty ones behind
    assert len(read(path)) == 1


def test_a_database_in_log_mode_is_read_without_making_a_log(tmp_path: Path) -> None:
    path = small(tmp_path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    before = path.read_bytes()
    assert before[18:20] == b"\x02\x02"
    assert device_names(read(path)[0]) == ["k"]
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "name", ["a?mode=rw.db", "50%25.db", "a#b.db", "two words.db", "ключ&x=1.db", "nosuffix"]
)
def test_names_that_mean_something_in_a_uri(tmp_path: Path, name: str) -> None:
    path = small(tmp_path, name)
    assert device_names(read(path)[0]) == ["k"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_read_only_file_in_a_read_only_folder(tmp_path: Path) -> None:
    folder = tmp_path / "frozen"
    folder.mkdir()
    path = small(folder)
    path.chmod(0o444)
    folder.chmod(0o555)
    try:
        assert len(read(path)) == 1
    finally:
        folder.chmod(0o755)


def test_progress_counts_the_rows(tmp_path: Path) -> None:
    class Counter:
        total: int | None = None
        done = 0

        def start(self, label: str, total: int | None = None) -> None:
            self.total = total

        def advance(self, amount: int) -> None:
            self.done += amount

    counter = Counter()
    path = Export().kernel("k", 0, 1).call("cudaFree", 0, 1).nvtx("n", 0, 1).write(tmp_path / "p.sqlite")
    read(path, counter)
    assert counter.total == counter.done == 5  # a kernel, a call, a range and two strings
