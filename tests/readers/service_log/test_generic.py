"""Token logs as tables: CSV, JSON lines and Parquet say the same; damage is counted, ruins are refused by line."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

from analyzer.errors import TraceError
from analyzer.readers.service_log import read_token_log
from analyzer.tokens import ABSENT, TokenLog

T = 1_795_000_000_000_000_000
TIMES = ("device_completion_ns", "server_emission_ns", "client_receipt_ns")
ROWS: list[dict[str, object]] = [
    dict(zip(("request", "token", *TIMES), row, strict=True))
    for row in (
        ("b", 1, T + 20, T + 23, T + 31),
        ("a", 0, T + 10, T + 12, T + 15),
        ("b", 0, T + 10, None, T + 16),
    )
]
CLOCKS = {"device_clock": "gpu-node", "server_clock": "gpu-node", "client_clock": "load-gen"}


def csv(rows: list[dict[str, object]]) -> str:
    names = list(rows[0])
    lines = [",".join("" if row[name] is None else str(row[name]) for name in names) for row in rows]
    return "\n".join([",".join(names), *lines]) + "\n"


def read(folder: Path, text: str, name: str = "tokens.csv") -> TokenLog:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_token_log(path)


def refusal(folder: Path, text: str, name: str = "tokens.csv") -> TraceError:
    with pytest.raises(TraceError) as caught:
        read(folder, text, name)
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_all_forms_give_the_same_columns(tmp_path: Path, form: str) -> None:
    rows = [{**row, **CLOCKS} for row in ROWS]
    path = tmp_path / "tokens.anything"
    if form == "csv":
        path.write_text(csv(rows))
    elif form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pa_parquet.write_table(pa.Table.from_pylist(rows), path)
    log = read_token_log(path)
    assert log.kind == form
    assert [log.requests[code] for code in log.request] == ["b", "b", "a"]  # in order of appearance
    assert log.token.tolist() == [0, 1, 0]
    assert log.completion_ns.tolist() == [T + 10, T + 20, T + 10]
    assert log.emission_ns.tolist() == [ABSENT, T + 23, T + 12]
    assert log.receipt_ns.tolist() == [T + 16, T + 31, T + 15]
    assert log.arrival_ns.tolist() == [ABSENT] * 3
    assert (log.clocks.device, log.clocks.server, log.clocks.client) == ("gpu-node", "gpu-node", "load-gen")
    assert log.quality == ()


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_column_that_is_there_twice_is_refused(tmp_path: Path, form: str) -> None:
    path = tmp_path / "tokens.anything"
    names = ["request", "token", "client_receipt_ns", "client_receipt_ns"]
    if form == "csv":
        path.write_text(",".join(names) + f"\na,0,{T},{T}\n")
    else:
        columns = [pa.array(["a"]), pa.array([0]), pa.array([T]), pa.array([T])]
        pa_parquet.write_table(pa.Table.from_arrays(columns, names=names), path)
    with pytest.raises(TraceError, match="'client_receipt_ns' more than once"):
        read_token_log(path)


def test_a_parquet_timestamp_beyond_64_bits_of_ns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    far = pa.array([300_000_000_000], pa.timestamp("s"))
    pa_parquet.write_table(pa.table({"request": [7], "token": [0], "client_receipt_ns": far}), path)
    with pytest.raises(TraceError, match="no ns since 1970"):
        read_token_log(path)


def test_parquet_timestamps_count_as_epoch_ns(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    us = pa.array([T // 1000], pa.timestamp("us", tz="UTC"))
    pa_parquet.write_table(pa.table({"request": [7], "token": [0], "client_receipt_ns": us}), path)
    log = read_token_log(path)
    assert (log.requests, log.receipt_ns.tolist()) == (("7",), [T])


def test_the_resolution_of_emissions_is_told_by_their_digits(tmp_path: Path) -> None:
    rows = [{"request": "a", "token": n, "server_emission_ns": T + n * 1_000} for n in range(8)]
    assert read(tmp_path, csv(rows)).resolution_ns == 1_000
    assert read(tmp_path, csv(rows[:7])).resolution_ns == 1  # too few to tell


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_damaged_lines_are_left_out_and_counted_with_the_first_of_them(tmp_path: Path, form: str) -> None:
    rows = [{"request": "a", "token": n, "client_receipt_ns": T + n} for n in range(6)]
    lines = csv(rows).splitlines() if form == "csv" else [json.dumps(row) for row in rows]
    if form == "csv":
        lines[3] = "a,2"  # cut off
        lines[5] = f"a,4,{T / 1e9}"  # a float has lost its ns
    else:
        lines[2] = lines[2][:10]
        lines[4] = json.dumps({"request": "a", "token": 4, "client_receipt_ns": float(T)})
    log = read(tmp_path, "\n".join(lines) + "\n")
    assert log.token.tolist() == [0, 1, 3, 5]
    (entry,) = log.quality
    assert (entry.reason, entry.count, entry.total) == ("token-line-skipped", 2, 6)
    assert f"line {4 if form == 'csv' else 3}" in entry.place


def test_many_damaged_lines_do_not_take_ages(tmp_path: Path) -> None:
    """20,000 of 100,000: where each is looked for among all rows, that takes minutes."""
    lines = [f"a,{n},{T + n}" if n % 5 else f"a,x,{T}" for n in range(100_000)]
    begin = time.process_time()
    log = read(tmp_path, "request,token,client_receipt_ns\n" + "\n".join(lines) + "\n")
    assert time.process_time() - begin < 10
    assert (len(log), log.quality[0].count, log.quality[0].total) == (80_000, 20_000, 100_000)


def test_times_that_go_back_are_counted(tmp_path: Path) -> None:
    rows = [{"request": "a", "token": n, "client_receipt_ns": T + n % 2} for n in range(4)]
    (entry,) = read(tmp_path, csv(rows)).quality
    assert (entry.reason, entry.count, entry.total) == ("token-times-go-back", 1, 3)


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        ("request,client_receipt_ns\na,1\n", "header", "no column 'token'"),
        ("request,token\na,0\n", "", "no row has a server_emission_ns"),
        (f"request,token,client_receipt_ns\na,0,{T // 1000}\n", "line 2", "looks like microseconds"),
        (f"request,token,client_receipt_ns\na,0,{T}\na,0,{T}\n", "line 3", "logged twice"),
        ("request,token,client_receipt_ns\n", "", "holds no token"),
        ("request,token,client_receipt_ns\na,x,1\nb,0\n", "line 2", "2 of 2 lines are unusable"),
        (f"request,token,client_receipt_ns,client_clock\na,0,{T},x\na,1,{T},y\n", "client_clock", "several clocks"),
        ("", "", "is no CSV"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_its_place(
    tmp_path: Path, text: str, where: str, why: str
) -> None:
    error = refusal(tmp_path, text)
    assert error.where == where and why in error.why


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and no more")
    for path in (tmp_path / "x.parquet", tmp_path / "absent.csv", tmp_path):
        with pytest.raises(TraceError):
            read_token_log(path)
    assert "neither text nor Parquet" in refusal(tmp_path, "\x00\x01").why
