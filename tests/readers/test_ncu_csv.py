"""Nsight Compute's CSV in its forms: what a launch moved, in bytes and nanoseconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.errors import TraceError
from analyzer.readers.ncu_csv import LaunchCounters, read_counters

TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"

_COLUMNS = f'"dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum","{TENSOR}"'
RAW = f"""==PROF== Connected to process 4711 (/usr/bin/python3)
loading the model, Kernel Cache warm
==PROF== Profiling "gemm": 0%....50%....100% - 9 passes
"ID","Process ID","Kernel Name","Context","Stream","Block Size","Grid Size",{_COLUMNS}
"","","","","","","","Mbyte","Kbyte","us","%"
"0","4711","void gemm<float>(float*)","1","7","(128, 1, 1)","(24, 2, 1)","1,200.50","750.00","412.25","37.50"
"1","4711","softmax(float*)","1","7","(256, 1, 1)","(8, 1, 1)","2.00","0.00","n/a","0.00"
==PROF== Disconnected from process 4711
"""

LONG = """"ID","Kernel Name","Block Size","Grid Size","Section Name","Metric Name","Metric Unit","Metric Value"
"0","gemm","(128, 1, 1)","(24, 2, 1)","Command line profiler metrics","dram__bytes_read.sum","Gbyte","1.5"
"0","gemm","(128, 1, 1)","(24, 2, 1)","Command line profiler metrics","dram__bytes_write.sum","byte","500"
"0","gemm","(128, 1, 1)","(24, 2, 1)","Command line profiler metrics","gpu__time_duration.sum","msecond","2"
"1","gemm","(128, 1, 1)","(24, 2, 1)","Command line profiler metrics","dram__bytes.sum","Mbyte","3"
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "counters.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_raw_page_has_a_column_per_metric_and_a_row_of_units(tmp_path: Path) -> None:
    found = read_counters(write(tmp_path, RAW)).launches
    assert found == (
        LaunchCounters(
            "void gemm<float>(float*)", (24, 2, 1), (128, 1, 1), 1_201_250_000.0, 412_250.0, None, 37.5, None
        ),
        LaunchCounters("softmax(float*)", (8, 1, 1), (256, 1, 1), 2_000_000.0, None, None, 0.0, None),
    )


def test_the_long_form_has_a_row_per_metric(tmp_path: Path) -> None:
    one, two = read_counters(write(tmp_path, LONG)).launches
    assert (one.name, one.bytes, one.duration_ns) == ("gemm", 1_500_000_500.0, 2_000_000.0)
    assert (two.bytes, two.duration_ns) == (3_000_000.0, None)


def test_the_details_page_tells_a_rate_and_a_duration(tmp_path: Path) -> None:
    """0.5 TB/s for 100 us are 50 MB; the share of the same name is none of it."""
    text = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n' + "".join(
        f'"0","gemm","{name}","{unit}","{value}"\n'
        for name, unit, value in (
            ("Memory Throughput", "%", "61.5"),
            ("DRAM Throughput", "%", "60.0"),
            ("Duration", "us", "100"),
            ("Memory Throughput", "Gbyte/second", "500"),
        )
    )
    (found,) = read_counters(write(tmp_path, text)).launches
    assert (found.bytes, found.duration_ns, found.dram_pct) == (50_000_000.0, 100_000.0, 60.0)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (("1.234.567", "9,50"), 1_234_567.0),  # decimals after commas, points between thousands
        (("1,234,567", "9.50"), 1_234_567.0),
        (("1.234,5", "2"), 1_234.5),
        (("1,234.5", "2"), 1_234.5),
        (("1,234", "2"), 1_234.0),  # nothing else in the file: as Nsight Compute writes in English
        (("0,123", "2"), 0.123),  # no thousands begin with a zero
        (("1e3", "2"), 1_000.0),
    ],
)
def test_numbers_follow_the_locale_of_the_file(
    tmp_path: Path, values: tuple[str, str], expected: float
) -> None:
    header = '"ID","Kernel Name","CC","dram__bytes.sum","sm__throughput.avg.pct_of_peak_sustained_elapsed"\n'
    text = f'{header}"","","","byte","%"\n"0","k","9.0","{values[0]}","{values[1]}"\n'
    assert read_counters(write(tmp_path, text)).launches[0].bytes == expected


def test_the_busiest_arithmetic_pipe_and_the_busiest_of_all_are_kept_apart(tmp_path: Path) -> None:
    """A share over busy SMs only is neither: idle SMs are not counted in it."""
    names = [
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
        "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_elapsed",
        "sm__inst_executed_pipe_tensor_op_hmma.avg.pct_of_peak_sustained_active",
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    ]
    header = ",".join(f'"{name}"' for name in names)
    text = f'"ID","Kernel Name",{header}\n"","","%","%","%","%"\n"0","k","21.0","34.5","88.0","61.5"\n'
    (found,) = read_counters(write(tmp_path, text)).launches
    assert (found.pipe_pct, found.sm_pct) == (34.5, 61.5)


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        ("", "", "no line with a column"),
        ('"ID","Kernel Name","dram__bytes.sum"\n', "", "no row under its header"),
        ('"ID","Kernel Name","launch__grid_size"\n"0","k","12"\n', "", "neither bytes"),
        ('"ID","Kernel Name","dram__bytes.sum"\n"","","furlong"\n"0","k","12"\n', "line 3", "'furlong'"),
        ('"ID","Kernel Name","dram__bytes.sum"\n"","","byte"\n"0","k","many"\n', "line 3", "'many'"),
        ('"ID","Kernel Name","dram__bytes.sum"\n"","","byte"\n"0","k","-5"\n', "line 3", "'-5'"),
        ('"ID","Kernel Name","dram__bytes.sum"\n"","","byte"\n"0","k","1,5"\n"0","k","1.5"\n', "", "after commas and"),
    ],
)  # fmt: skip
def test_what_is_no_such_file_is_refused_with_the_place(
    tmp_path: Path, text: str, where: str, why: str
) -> None:
    with pytest.raises(TraceError) as refused:
        read_counters(write(tmp_path, text))
    assert refused.value.where == where
    assert why in refused.value.why


def test_a_file_that_is_not_there_and_one_that_is_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="No such file"):
        read_counters(tmp_path / "absent.csv")
    binary = tmp_path / "report.ncu-rep"
    binary.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(TraceError, match="no UTF-8"):
        read_counters(binary)


def _long_row(id_: int, process: int, metric: str, value: str) -> str:
    return f'"{id_}","{process}","gemm","dram__bytes_{metric}.sum","Mbyte","{value}"\n'


_LONG_HEADER = '"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'


def test_launches_of_several_processes_with_the_same_id_stay_apart(tmp_path: Path) -> None:
    rows = [_long_row(0, pid, what, f"{pid}") for what in ("read", "write") for pid in (10, 20)]
    found = read_counters(write(tmp_path, _LONG_HEADER + "".join(rows))).launches
    assert [one.bytes for one in found] == [20e6, 40e6]


def test_files_that_were_put_one_after_another(tmp_path: Path) -> None:
    one, two = (
        _LONG_HEADER + _long_row(0, 7, "read", size) + _long_row(0, 7, "write", "1") for size in ("9", "19")
    )
    found = read_counters(write(tmp_path, one + two)).launches
    assert [launch.bytes for launch in found] == [10e6, 20e6]
    with pytest.raises(TraceError, match=r"line 7\): begins another table, of other columns"):
        read_counters(write(tmp_path, one + RAW))


def test_bytes_without_a_unit_are_no_bytes(tmp_path: Path) -> None:
    text = '"ID","Kernel Name","dram__bytes.sum"\n"0","k","1.25"\n'
    with pytest.raises(TraceError, match=r"line 2\): dram__bytes.sum = '1.25' has no unit"):
        read_counters(write(tmp_path, text))
