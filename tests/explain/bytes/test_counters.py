"""Counters beside a trace: Nsight Compute's bytes per launch, and sampled throughput of the device."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer import pipeline
from analyzer.diagnosis import Diagnosis, Hypothesis, MeasuredBytes
from analyzer.errors import UsageError
from analyzer.explain.bytes.samples import Samples
from analyzer.model import Capture, MetricTable
from fixtures.simulator import program as p
from fixtures.simulator.engine import simulate
from fixtures.simulator.nsys_writer import write_nsys
from fixtures.simulator.recording import Recording, observe
from tests.builders import Schedule, schedule
from tests.explain.bytes.ledgers import device, entry, of_capture, phase, written

BYTES_PER_S = 1e12  # 1 MB takes 1 us
MB = 1_000_000
TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"


def two_kernels() -> Schedule:
    """100 us: 10 latency, 50 gemm, 40 attention."""
    return schedule().launch(0, 2, runs=(10, 60), name="gemm").launch(2, 4, runs=(60, 100), name="attn")


def csv(folder: Path, *launches: tuple[str, float], column: str = "dram__bytes.sum", grid: str = "") -> str:
    rows = "".join(f'"{at}","{name}","{grid}","{value}"\n' for at, (name, value) in enumerate(launches))
    unit = "%" if column == TENSOR else "Mbyte"
    path = folder / "counters.csv"
    path.write_text(f'"ID","Kernel Name","Grid Size","{column}"\n"","","","{unit}"\n{rows}', encoding="utf-8")
    return str(path)


def modelled(folder: Path, megabytes: int = 90) -> Path:
    return written(folder, of_capture(phase("decode", entry(megabytes * MB)), devices=[device(BYTES_PER_S)]))


def diagnosed(
    folder: Path, built: Schedule, *launches: tuple[str, float], size: int = 90, **more: Any
) -> Diagnosis:
    counters = [csv(folder, *launches, **more)]
    return pipeline.analyze(built.capture(), ledger=modelled(folder, size), counters=counters).diagnosis


def of(diagnosis: Diagnosis, name: str = "bandwidth-bound") -> Hypothesis:
    (row,) = [row for row in diagnosis.hypotheses if row.id == name]
    return row


def shares(row: Hypothesis) -> tuple[float, float, float]:
    assert row.share is not None
    return tuple(
        round(100 * end, 6) for end in (row.share.interval[0], row.share.value, row.share.interval[1])
    )  # type: ignore[return-value]


def measured(diagnosis: Diagnosis) -> MeasuredBytes:
    assert diagnosis.bytes is not None
    (found,) = diagnosis.bytes.ranks[0].measured
    return found


def test_bytes_of_nsight_compute_over_durations_of_the_trace_decide(tmp_path: Path) -> None:
    """gemm 40 MB in 50 us: 80 % of the bandwidth. attn 10 MB in 40 us: 25 %. The ledger alone would leave it open."""
    found = diagnosed(tmp_path, two_kernels(), ("gemm", 40), ("attn", 10), size=50)
    row = of(found)
    assert (row.verdict, shares(row)) == ("supported", (50, 50, 50))
    assert row.measured is not None
    assert (row.measured.kind, row.measured.value) == ("measurement", 50_000)
    assert "Nsight Compute" in row.measured.name
    assert [line.event for line in row.evidence] == ["gemm"]
    assert "by the ledger alone (a model) 0.0 to 83.3 % of rank 0's own step" in row.verdict_note
    assert measured(found) == MeasuredBytes(
        by="nsight-compute", bytes=50e6, interval=(50e6, 50e6), of_kernel_time=1.0, disagreement=0.0
    )


def test_kernels_without_counters_leave_the_upper_end_open(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, two_kernels(), ("gemm", 10), size=50)
    assert (of(found).verdict, shares(of(found))) == ("inconclusive", (0, 0, 40))
    counted = measured(found)
    assert counted.of_kernel_time == pytest.approx(50 / 90)
    assert counted.interval == (10e6, pytest.approx(50e6))  # 40 us at the peak are 40 MB more
    assert counted.disagreement is None  # too little was counted to hold it against the ledger


def test_launches_of_one_name_that_differ_are_likely_what_they_are_in_the_mean(tmp_path: Path) -> None:
    """gemm 20 and 48 MB: 40 to 96 % of the peak, 68 % in the mean."""
    found = diagnosed(tmp_path, two_kernels(), ("gemm", 20), ("gemm", 48), ("attn", 1))
    assert shares(of(found)) == (0, 50, 50)


def test_other_grids_are_other_kernels(tmp_path: Path) -> None:
    built = (
        schedule().launch(0, 2, runs=(10, 60), name="gemm", grid=24).launch(2, 4, runs=(60, 100), name="attn")
    )
    same = diagnosed(tmp_path, built, ("gemm", 40), ("attn", 1), grid="(24, 1, 1)")
    assert shares(of(same)) == (50, 50, 90)  # attn has a grid of one block
    other = diagnosed(tmp_path, built, ("gemm", 40), ("attn", 1), grid="(48, 1, 1)")
    assert other.bytes is not None
    assert other.bytes.ranks[0].measured == []
    assert of(other).measured.kind == "model"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("traced", "counted", "fits"),
    [
        ("void vllm::gemm<float, 8>(float*)", "void vllm::gemm<float, 8>(float*)", True),
        ("void vllm::gemm<float, 8>(float*)", "vllm::gemm", True),
        ("void vllm::gemm<float, 8>(float*)", "gemm", True),
        ("void vllm::gemm<float, 8>(float*)", "void vllm::gemm<float, 4>(float*)", False),
        ("void vllm::gemm<float, 8>(float*)", "other::gemm", False),
        (
            "void k<4, true>(float const*)",
            "void k<(int)4, (bool)1>(const float *)",
            True,
        ),  # Kineto, Nsight Compute
        ("void k<4, true>(float const*)", "void k<(int)4, (bool)0>(const float *)", False),
    ],
)
def test_names_are_compared_in_one_spelling(tmp_path: Path, traced: str, counted: str, fits: bool) -> None:
    built = schedule().launch(0, 2, runs=(10, 60), name=traced)
    path = csv(tmp_path, (counted, 40))
    found = pipeline.analyze(built.capture(), ledger=modelled(tmp_path), counters=[path]).diagnosis
    assert found.bytes is not None
    assert found.bytes.counters[0].names == ([] if fits else [counted])
    assert bool(found.bytes.ranks[0].measured) is fits


def test_a_short_name_that_two_kernels_share_is_neither(tmp_path: Path) -> None:
    built = (
        schedule().launch(0, 2, runs=(10, 60), name="a::gemm").launch(2, 4, runs=(60, 100), name="b::gemm")
    )
    found = diagnosed(tmp_path, built, ("gemm", 40))
    assert found.bytes is not None
    assert found.bytes.counters[0].names == ["gemm"]


def test_bytes_that_a_duration_does_not_hold_are_not_measured_and_said(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, two_kernels(), ("gemm", 80), ("attn", 1), size=50)
    assert found.bytes is not None
    assert any("in 1 of its kernels' launches" in text for text in found.bytes.findings)
    assert shares(of(found)) == (0, 0, 50)


def test_counters_far_from_the_ledger_are_a_finding_on_both(tmp_path: Path) -> None:
    """30 MB counted against 50 modelled: 40 % less."""
    found = diagnosed(tmp_path, two_kernels(), ("gemm", 25), ("attn", 5), size=50)
    assert found.bytes is not None
    assert measured(found).disagreement == pytest.approx(-0.4)
    (told,) = found.bytes.findings
    assert "counted 0.030 GB per step, the ledger models 0.050 GB (-40 %)" in told
    assert "the ledger models" in of(found).verdict_note
    near = diagnosed(tmp_path, two_kernels(), ("gemm", 35), ("attn", 7), size=50)
    assert near.bytes is not None
    assert near.bytes.findings == []


def pipes(folder: Path, *launches: tuple[str, float, float | None]) -> str:
    """Tensor pipe, and the busiest of all in the SMs (None: not measured)."""
    columns = [TENSOR] + ["sm__throughput.avg.pct_of_peak_sustained_elapsed"] * (launches[0][2] is not None)
    rows = [
        ",".join(f'"{cell}"' for cell in (at, name, pipe, whole) if cell is not None)
        for at, (name, pipe, whole) in enumerate(launches)
    ]
    path = folder / "pipes.csv"
    header = ",".join(f'"{name}"' for name in ("ID", "Kernel Name", *columns))
    path.write_text("\n".join((header, *rows)) + "\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("gemm", "attn", "expected"),
    [
        ((85.0, None), (5.0, None), (50, 50, 90)),  # other pipes than the tensor cores' are not known
        ((85.0, 90.0), (5.0, 30.0), (50, 50, 50)),
        ((5.0, 70.0), (5.0, 30.0), (0, 0, 50)),  # something in the SMs is busy; it may be another pipe
        ((5.0, 20.0), (5.0, 30.0), (0, 0, 0)),
    ],
)
def test_the_arithmetic_pipes_decide(
    tmp_path: Path,
    gemm: tuple[float, float | None],
    attn: tuple[float, float | None],
    expected: tuple[float, float, float],
) -> None:
    found = pipeline.analyze(
        two_kernels().capture(), counters=[pipes(tmp_path, ("gemm", *gemm), ("attn", *attn))]
    ).diagnosis
    row = of(found, "compute-bound")
    assert shares(row) == expected
    assert row.measured is not None
    assert row.measured.kind == "measurement"


def test_sampled_tensor_activity_rules_no_other_pipe_out() -> None:
    name = "Tensor Active [Throughput %]"
    high = of(
        pipeline.analyze(sampled(two_kernels(), every(5, 100, {10: 75.0, 60: 1.0}, name))).diagnosis,
        "compute-bound",
    )
    assert shares(high) == (50, 50, 90)


def test_bytes_that_the_trace_had_no_time_for_are_not_counted(tmp_path: Path) -> None:
    """gemm cannot move 80 MB in 50 us at 1 TB/s: its bytes are unknown, 50 MB at most; attn moves 36 in 40 us."""
    found = diagnosed(tmp_path, two_kernels(), ("gemm", 80.0), ("attn", 36.0), size=60)
    assert found.bytes is not None
    (measured,) = found.bytes.ranks[0].measured
    assert (measured.bytes, measured.interval) == (36 * MB, (36 * MB, 86 * MB))
    assert (measured.of_kernel_time, measured.disagreement) == (pytest.approx(40 / 90), None)
    assert [text for text in found.bytes.findings if "counted" in text] == []
    assert any("more bytes under Nsight Compute than the duration" in text for text in found.bytes.findings)


def test_kernels_at_once_that_moved_more_than_the_step_has_time_for_are_a_finding(tmp_path: Path) -> None:
    """Two at 90 % of the bandwidth beside each other: each could be, both cannot."""
    built = (
        schedule().launch(0, 2, runs=(10, 60), name="gemm").launch(2, 4, runs=(10, 60), name="attn", stream=8)
    )
    found = pipeline.analyze(built.capture(), counters=[csv(tmp_path, ("gemm", 45.0), ("attn", 45.0))],
                             ledger=modelled(tmp_path, 45)).diagnosis  # fmt: skip
    assert found.bytes is not None
    assert any("did not all move what each moved alone" in text for text in found.bytes.findings)
    alone = diagnosed(tmp_path, two_kernels(), ("gemm", 45.0), ("attn", 38.0))
    assert alone.bytes is not None
    assert not any("each moved alone" in text for text in alone.bytes.findings)


def test_a_file_can_be_of_one_rank(tmp_path: Path) -> None:
    one, other = two_kernels().build(), two_kernels().build()
    capture = Capture((one, replace(other, source=replace(other.source, path="other.json"))), (0, 1))
    made = of_capture(phase("decode", entry(50 * MB, [0, 1])), devices=[device(BYTES_PER_S, [0, 1])])
    counters = [f"1={csv(tmp_path, ('gemm', 40), ('attn', 1))}"]
    found = pipeline.analyze(capture, ledger=written(tmp_path, made), counters=counters).diagnosis
    assert found.bytes is not None
    assert [(row.rank, bool(row.measured)) for row in found.bytes.ranks] == [(0, False), (1, True)]
    assert of(found).rank == 1
    with pytest.raises(UsageError, match="there is no rank 7"):
        pipeline.analyze(capture, counters=[f"7={counters[0].partition('=')[2]}"])


def test_what_a_trace_lacks_is_asked_of_the_ranks_that_use_a_file(tmp_path: Path) -> None:
    """Rank 1 has counters of its own, and says nothing of the other file's kernels."""
    one, other = two_kernels().build(), two_kernels().build()
    capture = Capture((one, replace(other, source=replace(other.source, path="other.json"))), (0, 1))
    (tmp_path / "own").mkdir()
    own = csv(tmp_path / "own", ("gemm", 4.0), ("gone", 1.0))
    found = pipeline.analyze(capture, counters=[csv(tmp_path, ("attn", 4.0), ("lost", 1.0)), f"1={own}"])
    assert found.diagnosis.bytes is not None
    assert [(file.rank, file.names) for file in found.diagnosis.bytes.counters] == [
        (None, ["lost"]),
        (1, ["gone"]),
    ]


def sampled(built: Schedule, rows: Sequence[tuple[int, str, float]]) -> Capture:
    """Samples as (us, metric, percent)."""
    trace = built.build()
    names = list(trace.process.names)
    codes = []
    for _, name, _ in rows:
        if name not in names:
            names.append(name)
        codes.append(names.index(name))
    metrics = MetricTable(
        np.array([at * 1000 for at, _, _ in rows], np.int64),
        np.array(codes, np.int32),
        np.array([value for _, _, value in rows], np.float64),
    )
    return Capture(
        (replace(trace, process=replace(trace.process, names=tuple(names)), metrics=metrics),), (0,)
    )


READ, WRITE = "DRAM Read Bandwidth [Throughput %]", "DRAM Write Bandwidth [Throughput %]"


def every(step: int, until: int, level: dict[int, float], name: str = READ) -> list[tuple[int, str, float]]:
    """A sample each ``step`` us; ``level``: percent from an instant on."""
    result = []
    for at in range(-step, until + step + 1, step):
        value = [percent for since, percent in level.items() if since <= at - step] or [0.0]
        result.append((at, name, value[-1]))
    return result


def test_samples_tell_each_kernel_and_the_bytes_of_the_step(tmp_path: Path) -> None:
    """70 + 10 % while gemm runs (10 to 60 us), 20 % after: 40 + 8 MB."""
    rows = every(5, 100, {10: 70.0, 60: 20.0}) + every(5, 100, {10: 10.0, 60: 0.0}, WRITE)
    capture = sampled(two_kernels(), sorted(rows))
    found = pipeline.analyze(capture, ledger=modelled(tmp_path, 48)).diagnosis
    assert (of(found).verdict, shares(of(found))) == ("supported", (50, 50, 50))
    assert of(found).measured.kind == "measurement"  # type: ignore[union-attr]
    counted = measured(found)
    assert (counted.by, counted.bytes, counted.interval) == (
        "gpu-metrics",
        pytest.approx(48e6),
        pytest.approx((48e6, 48e6)),
    )
    assert found.bytes is not None
    assert found.bytes.counters[0].names == [READ, WRITE]


def test_samples_that_straddle_a_kernel_widen_its_share(tmp_path: Path) -> None:
    """Every 40 us: gemm (10 to 60) lies in no sample wholly; it could be anything from 0 to all."""
    capture = sampled(two_kernels(), every(40, 120, {0: 70.0}))
    row = of(pipeline.analyze(capture, ledger=modelled(tmp_path)).diagnosis)
    assert shares(row)[0] == 0
    assert shares(row)[2] == 90


def test_a_gap_in_the_samples_is_not_measured(tmp_path: Path) -> None:
    rows = [row for row in every(5, 100, {0: 80.0}) if not 20 < row[0] < 90]
    found = pipeline.analyze(sampled(two_kernels(), rows), ledger=modelled(tmp_path)).diagnosis
    assert shares(of(found)) == (0, 0, 90)
    assert found.bytes is not None
    assert found.bytes.ranks[0].measured == []


def test_other_metrics_measure_no_bandwidth(tmp_path: Path) -> None:
    capture = sampled(two_kernels(), every(5, 100, {0: 80.0}, "SMs Active [Throughput %]"))
    found = pipeline.analyze(capture).diagnosis
    assert found.bytes is None
    assert of(found).verdict == "unmeasured"


def test_amounts_over_intervals_by_hand() -> None:
    """Samples of 10 ns at 50 %, 100 %, 0 %. From 5 to 25: wholly inside is the second alone, 10; in the mean 12.5."""
    samples = Samples(np.array([0, 10, 20]), np.array([10, 20, 30]), np.array([0.5, 1.0, 0.0]), ("x",))
    ends = samples.over(np.array([5, 0, 12, 25, -5]), np.array([25, 30, 18, 28, 10]))
    assert [end.tolist()[:4] for end in ends] == [[10, 15, 0, 0], [12.5, 15, 6, 0], [15, 15, 6, 0]]
    assert np.isnan([end[4] for end in ends]).all()


@given(st.data(), st.lists(st.floats(0, 1), min_size=12, max_size=60), st.integers(1, 7))
def test_amounts_hold_whenever_within_its_sample_the_traffic_was(
    data: st.DataObject, share_of_each_ns: list[float], period: int
) -> None:
    """The share of the peak in each ns, and samples that hold only its mean over each period."""
    whole = len(share_of_each_ns) // period
    traffic = np.array(share_of_each_ns[: whole * period])
    start = np.arange(whole, dtype=np.int64) * period
    samples = Samples(start, start + period, traffic.reshape(whole, period).mean(axis=1), ("x",))
    since = data.draw(st.integers(0, whole * period - 1))
    until = data.draw(st.integers(since + 1, whole * period))
    least, likely, most = (float(end[0]) for end in samples.over(np.array([since]), np.array([until])))
    assert least - 1e-9 <= traffic[since:until].sum() <= most + 1e-9
    assert least - 1e-9 <= likely <= most + 1e-9


def test_samples_come_through_an_export(tmp_path: Path) -> None:
    """Tables as NVIDIA's schema reference has them, in a simulated export: 80 % while the kernels run."""
    ops: list[p.Op] = []
    for step in range(6):
        ops += [p.Step("decode"), p.Cpu(300_000 + 10_000 * step), p.Launch("gemm", 7, 2_000_000)]
        ops += [p.StreamSync(7), p.Pop()]
    run = simulate(p.single(*ops))
    (path,) = write_nsys(run, tmp_path)
    works = [(seen.start_ns, seen.end_ns) for seen in observe(run, 0, Recording()).works]
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INT, metricId INT, metricName TEXT)")
        database.execute("CREATE TABLE GPU_METRICS (timestamp INT, typeId INT, metricId INT, value REAL)")
        names = [(0, 1, READ), (0, 2, WRITE), (0, 3, "SMs Active [Throughput %]")]
        database.executemany("INSERT INTO TARGET_INFO_GPU_METRICS VALUES (?, ?, ?)", names)
        for at in range(works[0][0] - 400_000, works[-1][1] + 400_000, 10_000):
            busy = sum(max(0, min(end, at) - max(start, at - 10_000)) for start, end in works) / 10_000
            rows = [(at, 0, 1, 70.0 * busy), (at, 0, 2, 10.0 * busy), (at, 0, 3, 100.0 * busy)]
            database.executemany("INSERT INTO GPU_METRICS VALUES (?, ?, ?, ?)", rows)
    found = pipeline.analyze(pipeline.read([path])).diagnosis
    row = of(found)
    assert (row.verdict, row.measured is not None and row.measured.kind) == ("supported", "measurement")
    assert "as documented" in row.verdict_note
    assert found.bytes is not None
    (counted,) = found.bytes.ranks[0].measured
    assert counted.bytes == pytest.approx(0.8 * 2e-3 * 3.35232e12, rel=0.01)
    assert counted.interval[0] <= 0.8 * 2e-3 * 3.35232e12 <= counted.interval[1]  # type: ignore[operator]
