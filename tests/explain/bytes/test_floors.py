"""Floors from ledger files, beside steps that were captured: the worked examples, and every rule of a floor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from analyzer import pipeline
from analyzer.diagnosis import ByteFloor, Bytes
from analyzer.explain.bytes.floors import Steps, byte_floor, floor_parts
from analyzer.explain.bytes.step_mean import mean_step
from analyzer.ledger.model import Entry, Layout, Ledger, Uncounted
from collectors.manifest import RankRecord
from collectors.run_folder import RunFolder
from fixtures.simulator import program as p
from fixtures.simulator.engine import simulate
from fixtures.simulator.kineto_writer import write_kineto
from fixtures.simulator.nsys_writer import write_nsys
from tests.explain.bytes.ledgers import GB, TB_PER_S, device, entry, ledger, phase, written

EIGHT = range(8)


def steps(ms: float, ranks: tuple[int, ...] = (0,), n: int = 5, scope: str = "rank") -> Steps:
    rank = ranks[0] if scope == "rank" else None
    return Steps("decode", scope, rank, ranks, ranks, np.full(n, ms * 1e6))


def floor_of(made: Ledger, measured: Steps, **speeds: float) -> ByteFloor:
    known = {int(name.removeprefix("r")): speed for name, speed in speeds.items()}
    found = byte_floor(made, measured, known, {})
    assert isinstance(found, ByteFloor), found
    return found


def loop(step_ns: int, count: int, ranks: int = 1) -> p.Program:
    """Steps of ``step_ns``, the first 6 us shorter: kernels for three quarters of it, preparation for the rest.

    Of several ranks some steps are longer and some shorter, so that only one offset lays their clocks together.
    """
    built = []
    for rank in range(ranks):
        ops: list[p.Op] = []
        for step in range(count):
            uneven = (step * step * 7 % 11 - 5) * 20_000 if ranks > 1 else 0
            meet = [p.Collective("0", "all_reduce", "BFloat16", 4096, 20_000)] if ranks > 1 else []
            busy = step_ns * 3 // 4
            # from one end to the next: the end of the wait, preparation, launch to start, kernels
            spent = 6_000 + 5_000 + busy + (1_100 + 20_000 if meet else 0)
            ops += [p.Step("decode"), p.Cpu(step_ns - spent + uneven, "prepare", "range", "framework"),
                    p.Launch("gemm", 7, busy), *meet, p.StreamSync(7, api_ns=2_000), p.Pop()]  # fmt: skip
        built.append(p.Rank(rank, (p.Thread(tuple(ops), tid=100 + rank),), device=rank, pid=100 + rank))
    groups = (p.Group("0", tuple(range(ranks)), "tp"),) if ranks > 1 else ()
    return p.Program(tuple(built), groups)


def test_ten_gigabytes_at_two_terabytes_per_second_and_a_step_of_twenty_milliseconds(tmp_path: Path) -> None:
    """5 ms, so at most 200 tokens/s; observed 20 ms: 50 tokens/s, 25 % of the ceiling, 15 ms unexplained."""
    files = write_nsys(simulate(loop(20_000_000, 6)), tmp_path)
    made = ledger(phase("decode", entry(10 * GB)), devices=[device(2 * TB_PER_S)], tokens_per_step=1.0)
    diagnosis = pipeline.analyze(pipeline.read(files), ledger=written(tmp_path, made)).diagnosis
    assert diagnosis.bytes is not None
    (found,) = diagnosis.bytes.floors
    assert (found.floor_ns, found.ceiling_tokens_per_s) == (5e6, 200)
    near = {"rel": 1e-4}
    assert (found.step_ns, found.unexplained_ns) == (pytest.approx(20e6, **near), pytest.approx(15e6, **near))
    assert (found.observed_tokens_per_s, found.fraction) == (
        pytest.approx(50, **near),
        pytest.approx(0.25, **near),
    )
    assert found.step_interval_ns == (pytest.approx(20e6, rel=1e-3), pytest.approx(20e6, rel=1e-3))


@pytest.mark.parametrize("form", ["nsys", "kineto"])
def test_two_gigabytes_on_each_of_eight_ranks(tmp_path: Path, form: str) -> None:
    """8 ranks x 2 GB at 4.8 TB/s: 0.417 ms, not an eighth of it."""
    run = simulate(loop(2_000_000, 12, ranks=8))
    files = (write_nsys if form == "nsys" else write_kineto)(run, tmp_path)
    made = ledger(phase("decode", entry(2 * GB, EIGHT)), devices=[device(4.8 * TB_PER_S, EIGHT)])
    diagnosis = pipeline.analyze(pipeline.read(files), ledger=written(tmp_path, made)).diagnosis
    assert diagnosis.bytes is not None
    (found,) = diagnosis.bytes.floors
    assert (found.scope, found.ranks, round(found.floor_ns / 1e6, 3)) == ("global", list(EIGHT), 0.417)
    assert found.step_ns == pytest.approx(2e6, rel=1e-2)
    assert (found.tokens_per_step, found.ceiling_tokens_per_s, found.observed_tokens_per_s) == (
        None,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("size", "flop", "expected"),
    [
        (2 * 4096 * 4096, 2 * 4096 * 4096, 1.0),  # a BF16 matrix times one vector
        (round(0.21 * 4096 * 4096), 2 * 4096 * 4096, 9.5),  # 0.21 stored bytes per weight
    ],
)
def test_arithmetic_intensity_is_flop_over_bytes(
    tmp_path: Path, size: int, flop: int, expected: float
) -> None:
    made = ledger(
        phase("decode", entry(size, flop=flop, flop_dtype="bf16")),
        devices=[device(4.8 * TB_PER_S, bf16=989e12)],
    )
    row = bytes_of(tmp_path, made).ranks[0]
    assert row.flop_per_byte == pytest.approx(expected, abs=0.03)
    assert row.ridge_flop_per_byte == pytest.approx(206.04, abs=0.01)
    assert (row.ridge_dtype, row.flop_complete) == ("bf16", True)
    assert row.peak_source


def bytes_of(tmp_path: Path, made: Ledger, **options: object) -> Bytes:
    files = write_nsys(simulate(loop(20_000_000, 5)), tmp_path)
    found = pipeline.analyze(pipeline.read(files), ledger=written(tmp_path, made), **options).diagnosis.bytes
    assert found is not None
    return found


def test_serial_phases_add_and_each_takes_its_own_slowest_rank() -> None:
    """max(2, 1) + max(1, 4) = 6 ms."""
    made = ledger(
        phase("one", entry(2 * GB, [0]), entry(GB, [1])), phase("two", entry(GB, [0]), entry(4 * GB, [1]))
    )
    found = floor_of(made, steps(20, (0, 1)), r0=TB_PER_S, r1=TB_PER_S)
    assert [(part.phases, part.floor_ns, part.rank) for part in found.parts] == [
        (["one"], 2e6, 0), (["two"], 4e6, 1),
    ]  # fmt: skip
    assert found.floor_ns == 6e6


def test_stages_of_a_pipeline_bound_a_batch_and_the_busiest_rank_bounds_the_rate() -> None:
    """A batch takes 2 + 4 ms; with a batch in each stage steps can end every 4 ms: 250 a second, not 167."""
    made = ledger(
        phase("stage 0", entry(2 * GB, [0])), phase("stage 1", entry(4 * GB, [1])), tokens_per_step=1.0
    )
    made = structs.replace(made, layout=Layout(ranks=2, pipeline=2))
    found = floor_of(made, steps(5, (0, 1), scope="global"), r0=TB_PER_S, r1=TB_PER_S)
    assert (found.floor_ns, found.ceiling_tokens_per_s, found.fraction) == (6e6, 250, None)
    assert (found.observed_tokens_per_s, found.fraction_of_ceiling) == (200, 0.8)
    assert any("one batch on its way through all pipeline stages" in note for note in found.notes)
    alone = floor_of(made, steps(5, (1,)), r0=TB_PER_S, r1=TB_PER_S)
    assert (alone.floor_ns, alone.ceiling_tokens_per_s, alone.fraction_of_ceiling) == (4e6, 250, 0.8)


def test_phases_that_overlap_share_each_ranks_bandwidth() -> None:
    """Rank 0 moves 2 + 1, rank 1 moves 1 + 4 GB at the same time: 5 ms; the third phase comes after them: 1 ms more."""
    made = ledger(
        phase("one", entry(2 * GB, [0]), entry(GB, [1])),
        phase("two", entry(GB, [0]), entry(4 * GB, [1]), beside=True),
        phase("three", entry(GB, [0])),
    )
    parts = floor_parts(made, [0, 1], {0: TB_PER_S, 1: TB_PER_S})
    assert [(part.phases, part.floor_ns, part.rank) for part in parts] == [
        (["one", "two"], 5e6, 1), (["three"], 1e6, 0),
    ]  # fmt: skip


def test_a_slower_device_sets_the_floor_with_fewer_bytes() -> None:
    made = ledger(phase("decode", entry(4 * GB, [0]), entry(3 * GB, [1])))
    found = floor_of(made, steps(20, (0, 1)), r0=2 * TB_PER_S, r1=TB_PER_S)
    assert (found.floor_ns, found.parts[0].rank) == (3e6, 1)


def test_ranks_that_one_side_lacks_are_left_out_and_named() -> None:
    made = ledger(phase("decode", entry(4 * GB, [0]), entry(9 * GB, [2])))
    found = floor_of(made, steps(20, (0, 1)), r0=TB_PER_S, r1=TB_PER_S)
    assert (found.ranks, found.floor_ns) == ([0], 4e6)
    assert found.notes == [
        "left out: rank 2: in the ledger and not in the capture",
        "left out: rank 1: in the capture, and the ledger holds nothing of it",
    ]


def test_a_rank_of_unknown_bandwidth_is_left_out_and_named() -> None:
    made = ledger(phase("decode", entry(4 * GB, [0, 1])))
    found = floor_of(made, steps(20, (0, 1)), r0=TB_PER_S)
    assert (found.ranks, found.notes) == (
        [0], ["left out: rank 1: the memory bandwidth of the device is not known"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ranks", "speeds", "why"),
    [
        ([3], {0: TB_PER_S}, "holds nothing of the captured ranks"),
        ([0], {}, "bandwidth of the devices is not known"),
    ],
)
def test_without_a_rank_or_a_bandwidth_there_is_no_floor(
    ranks: list[int], speeds: dict[int, float], why: str
) -> None:
    found = byte_floor(ledger(phase("decode", entry(GB, ranks))), steps(20), speeds, {})
    assert isinstance(found, str)
    assert why in found


def test_a_step_below_its_floor_gives_no_fraction() -> None:
    found = floor_of(ledger(phase("decode", entry(30 * GB))), steps(20), r0=TB_PER_S)
    assert (found.fraction, found.unexplained_ns, found.fraction_of_achievable) == (None, None, None)
    assert "shorter than its floor" in found.notes[0]


def test_the_measured_copy_bandwidth_stands_beside_the_bound() -> None:
    found = byte_floor(ledger(phase("decode", entry(4 * GB))), steps(20), {0: TB_PER_S}, {0: 0.8 * TB_PER_S})
    assert isinstance(found, ByteFloor)
    assert (found.floor_ns, found.achievable_ns) == (4e6, pytest.approx(5e6))
    assert (found.fraction, found.fraction_of_achievable) == (0.2, pytest.approx(0.25))


def test_intervals_follow_the_mean_step() -> None:
    """Steps of 18, 20, 22 ms: 20 +- 4.303 x 2 / sqrt(3) = 15.03 to 24.97 ms."""
    measured = Steps("decode", "rank", 0, (0,), (0,), np.array([18e6, 20e6, 22e6]))
    found = floor_of(ledger(phase("decode", entry(5 * GB))), measured, r0=TB_PER_S)
    assert found.step_interval_ns == pytest.approx((15.032e6, 24.968e6), rel=1e-4)
    assert found.unexplained_interval_ns == pytest.approx((10.032e6, 19.968e6), rel=1e-4)
    assert found.fraction_interval == pytest.approx((5 / 24.968, 5 / 15.032), rel=1e-4)


def test_one_step_has_no_interval() -> None:
    assert mean_step(np.array([7.0])) == (7.0, None)
    found = floor_of(ledger(phase("decode", entry(5 * GB))), steps(20, n=1), r0=TB_PER_S)
    assert (found.step_interval_ns, found.fraction_interval, found.unexplained_interval_ns) == (
        None,
        None,
        None,
    )


@pytest.mark.parametrize("pattern", ["^step$", "te"])
def test_applies_to_names_the_phases_of_these_steps(tmp_path: Path, pattern: str) -> None:
    made = ledger(phase("decode", entry(GB)), applies_to=pattern)
    assert [floor.phase for floor in bytes_of(tmp_path, made).floors] == ["step"]


def test_a_ledger_of_another_phase_gives_no_floor_but_the_reason(tmp_path: Path) -> None:
    made = ledger(phase("decode", entry(GB)), applies_to="^prefill$")
    found = bytes_of(tmp_path, made)
    assert (found.floors, found.ranks) == ([], [])
    assert found.why_no_floor == "no phase matches the ledger's applies_to (^prefill$)"


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ((entry(GB), entry(GB, [1], name="more")), "the memory bandwidth of the devices is not known"),
        ((entry(GB),), "the ledger holds nothing of it"),
    ],
)
def test_ranks_on_clocks_of_their_own_that_get_no_floor_are_named(
    tmp_path: Path, entries: tuple[Entry, ...], why: str
) -> None:
    one, two = loop(20_000_000, 6, ranks=2).ranks
    apart = p.Program(
        tuple(
            replace(rank, gpu="Unknown 1", threads=loop(20_000_000, 6).ranks[0].threads)
            for rank in (one, two)
        ),
        (),
    )
    capture = pipeline.read(write_kineto(simulate(apart), tmp_path))
    made = ledger(phase("decode", *entries), devices=[device(2 * TB_PER_S)], applies_to=".")
    found = pipeline.analyze(capture, ledger=written(tmp_path, made)).diagnosis.bytes
    assert found is not None
    (floor,) = found.floors
    assert (floor.rank, found.why_no_floor) == (0, "")
    assert floor.notes[-1].startswith(f"no floor of rank 1: {why}")


def test_without_applies_to_several_phases_are_too_many(tmp_path: Path) -> None:
    ops: list[p.Op] = []
    for step in range(8):
        name = f"execute_context_{1 - step % 2}(64)_generation_{step % 2}(1)"
        ops += [p.Step(name), p.Cpu(50_000), p.Launch("gemm", 7, 400_000), p.StreamSync(7), p.Pop()]
    files = write_nsys(simulate(p.single(*ops)), tmp_path)
    capture = pipeline.read(files)
    path = written(tmp_path, ledger(phase("decode", entry(GB // 10))))
    diagnosis = pipeline.analyze(capture, ledger=path).diagnosis
    phases = len({budget.phase for budget in diagnosis.budget})
    assert phases > 1
    assert diagnosis.bytes is not None
    assert diagnosis.bytes.floors == []
    assert f"which of the {phases} phases" in diagnosis.bytes.why_no_floor
    row = next(row for row in diagnosis.hypotheses if row.id == "bandwidth-bound")
    assert row.verdict == "unmeasured"
    assert "applies_to" in row.verdict_note


def uneven_kernels() -> p.Program:
    """Nothing in it tells steps: no marker, no period."""
    ops: list[p.Op] = []
    for at in range(7):
        ops += [
            p.Cpu(50_000 * (1 + at * at % 5)),
            p.Launch(f"kernel_{at}", 7, 400_000 + 90_000 * (at * at % 7)),
        ]
    return p.single(*ops, p.StreamSync(7))


def test_a_capture_without_steps_is_no_step_of_a_ledger(tmp_path: Path) -> None:
    """Its kernels would be far from the bandwidth for one step's bytes, however many steps ran in it."""
    files = write_nsys(simulate(uneven_kernels()), tmp_path)
    path = written(tmp_path, ledger(phase("decode", entry(GB // 100))))
    diagnosis = pipeline.analyze(pipeline.read(files), ledger=path).diagnosis
    assert {budget.phase for budget in diagnosis.budget} == {"whole capture"}
    assert diagnosis.bytes is not None
    assert (diagnosis.bytes.floors, diagnosis.bytes.ranks) == ([], [])
    assert "no steps were found" in diagnosis.bytes.why_no_floor
    row = next(row for row in diagnosis.hypotheses if row.id == "bandwidth-bound")
    assert row.verdict == "unmeasured"


def test_a_capture_of_one_step_is_one_where_the_ledger_says_so(tmp_path: Path) -> None:
    files = write_nsys(simulate(uneven_kernels()), tmp_path)
    path = written(tmp_path, ledger(phase("decode", entry(GB // 100)), applies_to="^whole capture$"))
    found = pipeline.analyze(pipeline.read(files), ledger=path).diagnosis.bytes
    assert found is not None
    (floor,) = found.floors
    assert floor.notes == [
        "no steps were found: the whole capture counts as one, as the ledger's applies_to says"
    ]


def test_without_device_work_there_is_no_floor(tmp_path: Path) -> None:
    ops = [
        op
        for _ in range(6)
        for op in (p.Step("decode"), p.Cpu(400_000, "prepare", "op", "framework"), p.Pop())
    ]
    files = write_kineto(simulate(p.single(*ops)), tmp_path)
    path = written(tmp_path, ledger(phase("decode", entry(GB)), devices=[device(TB_PER_S)]))
    diagnosis = pipeline.analyze(pipeline.read(files), ledger=path).diagnosis
    assert diagnosis.bytes is not None
    assert diagnosis.bytes.floors == []
    assert "no device work was recorded" in diagnosis.bytes.why_no_floor
    row = next(row for row in diagnosis.hypotheses if row.id == "bandwidth-bound")
    assert row.verdict == "unmeasured" and "holds nothing" not in row.verdict_note


def test_the_bandwidth_is_the_drivers_where_the_ledger_has_none(tmp_path: Path) -> None:
    row = bytes_of(tmp_path, ledger(phase("decode", entry(GB)))).ranks[0]
    assert (row.bandwidth_bytes_per_s, row.bandwidth_basis) == (3_352_320_000_000, "driver")
    assert row.copy_bytes_per_s is None


def test_tensors_that_no_entry_holds_are_a_finding(tmp_path: Path) -> None:
    odd = Uncounted(name="odd", dtype="I32", shape=[3], bytes=12, why="no rule knows it")
    unread = Uncounted(name="vision", dtype="BF16", shape=[3], bytes=6, why="a step does not read it")
    found = bytes_of(tmp_path, ledger(phase("decode", entry(GB)), uncounted=[odd, unread]))
    assert (found.uncounted, found.uncounted_bytes) == (1, 12)
    assert any("in no entry" in text for text in found.findings)


def test_without_a_ledger_the_floor_is_unmeasured(tmp_path: Path) -> None:
    files = write_nsys(simulate(loop(20_000_000, 4)), tmp_path)
    diagnosis = pipeline.analyze(pipeline.read(files)).diagnosis
    assert diagnosis.bytes is None
    (row,) = [row for row in diagnosis.unmeasured if row.what.startswith("byte floor")]
    assert "tracebound ledger build" in row.how_to_measure


def test_the_manifests_copies_stand_beside_the_bound_and_never_in_it(tmp_path: Path) -> None:
    """4 GB at 3.352 TB/s are 1.193 ms at least; at the measured 2.8 TB/s 1.429 ms."""
    (file,) = write_nsys(simulate(loop(20_000_000, 5)), tmp_path)
    folder = RunFolder(tmp_path)
    copied = {"copy_bandwidth": {"bytes_per_s": 2.8e12, "counted": "read and written"}}
    folder.write(
        RankRecord(0, "nsys", "complete", files=[folder.describe(file, "nsys-sqlite")], device=copied)
    )
    path = written(tmp_path, ledger(phase("decode", entry(4 * GB))))
    found = pipeline.analyze(pipeline.read([tmp_path]), ledger=path).diagnosis.bytes
    assert found is not None
    assert found.ranks[0].copy_bytes_per_s == 2.8e12
    assert found.floors[0].floor_ns == pytest.approx(4e9 / 3.35232e12 * 1e9)
    assert found.floors[0].achievable_ns == pytest.approx(4e9 / 2.8e12 * 1e9)
    assert found.floors[0].fraction_of_achievable == pytest.approx(
        found.floors[0].achievable_ns / found.floors[0].step_ns
    )
