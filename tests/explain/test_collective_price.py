"""What a collective costs, worked out by hand: fits, refusals, contention, and the share of the step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec import structs
from scipy.stats import binomtest

from analyzer.analysis import Analysis
from analyzer.diagnosis import AlphaBeta, CollectiveCost
from analyzer.errors import UsageError
from analyzer.explain.ranks.price_points import contention
from analyzer.explain.ranks.protocols import Protocol, protocol_of
from analyzer.explain.ranks.transfers import Transfers
from fixtures.simulator.program import (
    Collective,
    EventRecord,
    Graph,
    GraphLaunch,
    Group,
    Launch,
    Node,
    Op,
    StreamWait,
)
from fixtures.simulator.recording import Recording
from tests.across.programs import Form, analyzed, host, meet, team, work

LINE = {4_096: 10_041, 65_536: 10_655, 1_048_576: 20_486}
"""Transfer in ns by elements of two bytes: 10 us and 200 bytes per ns."""


def of_sizes(*sizes: int, apart_ns: int = 30_000) -> object:
    """Every step one all-reduce of each size; rank 1 comes ``apart_ns`` later."""

    def ops(rank: int, step: int) -> tuple[Op, ...]:
        del step
        calls = [meet(elements=size, transfer_ns=LINE[size]) for size in sizes]
        return (host(50_000 + apart_ns * rank), *(op for call in calls for op in (work(5_000), call)))

    return ops


def price(
    folder: Path, ops: object, form: Form = "kineto", recording: Recording | None = None, **how: int
) -> AlphaBeta:
    (row,) = analyzed(team(2, ops, streams=(7, 20), **how), folder, form, recording).diagnosis.alpha_beta  # type: ignore[arg-type]
    return row


def only_cost(analysis: Analysis) -> CollectiveCost:
    (row,) = analysis.diagnosis.collective_costs
    return row


@pytest.mark.parametrize("form", ["kineto", "nsys"])
def test_three_sizes_on_one_line_give_it_back(form: Form, tmp_path: Path) -> None:
    row = price(tmp_path, of_sizes(*LINE), form)
    assert row.alpha_ns == pytest.approx(10_000, rel=1e-3)
    assert row.beta_bytes_per_s == pytest.approx(200e9, rel=1e-3)
    assert (row.sizes, row.range_bytes, row.calls, row.calls_split) == (3, (8_192, 2_097_152), 24, 24)
    assert (row.basis, row.interval_over, row.calls_contended) == ("uncontended", "steps", 0)
    assert (row.op, len(row.ranks), row.reason_if_absent) == ("all_reduce", 2, None)
    assert [(p.bytes, p.calls, p.median_ns) for p in row.points] == [
        (2 * size, 8, ns) for size, ns in LINE.items()
    ]
    assert row.size_ratio == 256 and row.latency_ratio == 20_486 / 10_041
    assert row.notes == []


def test_a_late_rank_and_wrong_clocks_cost_nothing(tmp_path: Path) -> None:
    """The price is that of the transfer: half a millisecond of waiting and 4 ms between the clocks are not in it."""
    recording = Recording(clock_offset_ns={1: 4_000_000}, drift_ppb={1: 40_000})
    row = price(tmp_path, of_sizes(*LINE, apart_ns=500_000), recording=recording)
    assert row.alpha_ns == pytest.approx(10_000, rel=2e-3)
    assert row.beta_bytes_per_s == pytest.approx(200e9, rel=2e-3)


def test_one_size_is_refused(tmp_path: Path) -> None:
    row = price(tmp_path, of_sizes(4_096))
    assert (row.alpha_ns, row.beta_bytes_per_s, row.ci95, row.range_bytes) == (None,) * 4
    assert row.reason_if_absent is not None and "one size, 8,192 bytes" in row.reason_if_absent
    assert row.remedy is not None and "several sizes" in row.remedy
    assert [point.median_ns for point in row.points] == [10_041]
    with pytest.raises(UsageError, match="no fit: all calls have one size"):
        row.latency_ns(8_192)


def test_a_size_of_one_step_alone_is_not_drawn_by_steps(tmp_path: Path) -> None:
    """One prefill among decode steps: no other step tells how its calls scatter from step to step."""

    def ops(rank: int, step: int) -> tuple[Op, ...]:
        large = step == 3
        calls = [meet(elements=2**20, transfer_ns=20_000 + 500 * at) for at in range(6)] if large else []
        calls += [meet(elements=4_096, transfer_ns=10_000 + 100 * at) for at in range(3)]
        return (host(50_000 + 30_000 * rank), *(op for call in calls for op in (work(5_000), call)))

    row = price(tmp_path, ops)
    assert row.interval_over == "calls"
    assert any("one half of the range in one step alone" in note for note in row.notes)
    assert row.ci95 is not None and row.beta_bytes_per_s is not None
    low, high = row.ci95.beta_bytes_per_s
    assert low is not None and high is not None and high / low > 1.1  # calls of 20 to 22.5 us


def test_a_size_outside_of_the_range_is_refused(tmp_path: Path) -> None:
    row = price(tmp_path, of_sizes(*LINE))
    assert row.latency_ns(131_072) == pytest.approx(10_655, rel=1e-3)
    assert row.latency_ns(8_192) == pytest.approx(10_041, rel=1e-3)
    for size in (8_191, 2_097_153):
        with pytest.raises(UsageError, match="outside the fitted range, 8192 to 2097152 bytes"):
            row.latency_ns(size)


def test_a_line_whose_bandwidth_is_not_told_is_a_line_all_the_same(tmp_path: Path) -> None:
    row = price(tmp_path, of_sizes(*LINE))
    untold = structs.replace(row, beta_bytes_per_s=None)  # as where the interval of the slope holds 0
    for size in (8_192, 131_072, 2_097_152):
        assert untold.latency_ns(size) == pytest.approx(row.latency_ns(size), rel=1e-4)


def test_sizes_less_than_twice_apart_are_refused(tmp_path: Path) -> None:
    def ops(rank: int, step: int) -> tuple[Op, ...]:
        return host(50_000 + 10_000 * rank), meet(elements=4_096 + 1_000 * (step % 4))

    reason = price(tmp_path, ops).reason_if_absent
    assert reason is not None and "8,192 to 14,192 bytes are too close" in reason


def test_too_few_calls_are_refused(tmp_path: Path) -> None:
    row = price(tmp_path, of_sizes(4_096, 1_048_576), steps=3)
    assert row.reason_if_absent is not None and row.reason_if_absent.startswith("6 calls, 3 of them")


def test_calls_that_are_not_split_say_why(tmp_path: Path) -> None:
    run = team(2, of_sizes(*LINE))  # type: ignore[arg-type]
    (row,) = analyzed(run, tmp_path, recording=Recording(lost_ranks=frozenset({1}))).diagnosis.alpha_beta
    assert row.reason_if_absent is not None and "not told apart" in row.reason_if_absent
    assert row.remedy == "give the captures of all ranks of the group in one call"
    assert (row.calls_split, row.points) == (0, [])


def test_unknown_sizes_say_so(tmp_path: Path) -> None:
    row = price(tmp_path, of_sizes(*LINE), recording=Recording(collective_metadata=False))
    assert row.reason_if_absent == "the sizes of its calls are not recorded"
    assert row.remedy is not None and "--include-json=true" in row.remedy


@pytest.mark.parametrize("form", ["kineto", "nsys"])
def test_calls_of_no_bytes_are_a_size_and_no_part_of_the_line(form: Form, tmp_path: Path) -> None:
    """An all-to-all without tokens: its time is measured, the fit rests on the other sizes."""

    def ops(rank: int, step: int) -> tuple[Op, ...]:
        del step
        calls = [meet(elements=size, transfer_ns=ns) for size, ns in {0: 4_000, **LINE}.items()]
        return (host(50_000 + 30_000 * rank), *calls)

    row = price(tmp_path, ops, form)
    assert row.alpha_ns == pytest.approx(10_000, rel=1e-3)
    assert (row.range_bytes, row.size_ratio, row.latency_ratio) == ((8_192, 2_097_152), 256, 20_486 / 10_041)
    assert (row.points[0].bytes, row.points[0].median_ns) == (0, 4_000)
    assert row.notes == ["8 calls of no bytes are left out"]


def test_only_calls_of_no_bytes_have_no_price(tmp_path: Path) -> None:
    row = price(tmp_path, lambda rank, step: (host(50_000 + 30_000 * rank), meet(elements=0)))
    assert row.alpha_ns is None and row.reason_if_absent is not None and "no bytes" in row.reason_if_absent


def test_a_switch_of_protocol_hidden_in_one_name_is_no_line(tmp_path: Path) -> None:
    """From 128 KiB on twice the latency and a tenth of the slope; the sizes themselves are measured all the same."""
    elements = [2**at for at in range(11, 23, 2)]

    def ops(rank: int, step: int) -> tuple[Op, ...]:
        calls = [
            meet(
                elements=size,
                transfer_ns=(5_000 + size // 20 if size < 2**16 else 20_000 + size // 200) + 10 * step,
            )
            for size in elements
        ]
        return (host(50_000 + 10_000 * rank), *calls)

    row = price(tmp_path, ops, steps=12)
    assert row.alpha_ns is None and row.reason_if_absent is not None
    assert "latency is no line over size: with 6 sizes" in row.reason_if_absent
    assert [point.bytes for point in row.points] == [2 * size for size in elements]
    assert {point.fitted_ns for point in row.points} == {None}


def test_calls_inside_graphs_have_no_size(tmp_path: Path) -> None:
    nodes = [meet(elements=size, transfer_ns=ns) for size, ns in LINE.items()]
    graph = Graph("decode", tuple(Node(node, (at - 1,) if at else ()) for at, node in enumerate(nodes)))

    def ops(rank: int, step: int) -> tuple[Op, ...]:
        del step
        return host(50_000 + 10_000 * rank), GraphLaunch(graph)

    row = price(tmp_path, ops)
    assert (row.in_graphs, row.calls_split) == (True, 24)
    assert row.reason_if_absent == "no profiler records sizes of calls inside graphs"
    assert row.remedy is not None and "without graphs" in row.remedy


def test_no_growth_with_size_leaves_a_lower_bound(tmp_path: Path) -> None:
    def ops(rank: int, step: int) -> tuple[Op, ...]:
        jitter = (step * 7919 + 13) % 400
        sizes = (4_096, 32_768, 262_144)
        return (host(50_000 + 10_000 * rank),
                *(meet(elements=size, transfer_ns=20_000 + (jitter * size) % 400) for size in sizes))  # fmt: skip

    row = price(tmp_path, ops, steps=16)
    assert row.beta_bytes_per_s is None and row.alpha_ns == pytest.approx(20_200, rel=0.02)
    assert row.ci95 is not None
    low, high = row.ci95.beta_bytes_per_s
    assert high is None and low is not None and low > 524_288 / 1e-6
    assert any("no dependence on size is seen up to 524,288 bytes" in note for note in row.notes)


def test_algorithms_that_the_name_tells_are_priced_apart(tmp_path: Path) -> None:
    names = (
        "ncclSymkDevKernel_AllReduce_AGxLL_R_sum_bf16",
        "ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_bf16",
    )

    def ops(rank: int, step: int) -> tuple[Op, ...]:
        calls = [
            Collective("tp", "all_reduce", "BFloat16", size, ns * (1 + which), kernel=name)
            for which, name in enumerate(names)
            for size, ns in LINE.items()
        ]
        return (host(50_000 + 10_000 * rank), *calls)

    rows = analyzed(team(2, ops), tmp_path).diagnosis.alpha_beta
    assert [(row.algorithm, round((row.alpha_ns or 0) / 1_000)) for row in rows] == [
        ("AGxLL_R", 10), ("RSxLD_AGxST", 20)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kernel", "told"),
    [
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", Protocol()),
        ("ncclDevKernel_AllReduce_Sum_bf16_TREE_LL(ncclDevKernelArgsStorage<4096ul>)", Protocol("TREE")),
        ("ncclDevKernel_Generic(ncclDevComm*, unsigned long, ncclWork*)", Protocol()),
        ("ncclKernel_AllReduce_TREE_LL_Sum_float(ncclWorkElem)", Protocol("TREE")),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", Protocol("RING")),
        ("ncclAllReduceRingLLKernel_sum_f32(ncclColl)", Protocol("RING", "LL")),
        ("ncclAllGatherRingKernel_copy_i8(ncclColl)", Protocol("RING", "SIMPLE")),
        ("ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16", Protocol("RSxLDMC_AGxSTMC")),
        ("ncclSymDevKernel_AllGather_LLMC(ncclSymDevArgs)", Protocol("LLMC")),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(RankData*)", Protocol("one stage")),
        ("two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 2>", Protocol("two stages")),
        (None, Protocol()),
    ],
)
def test_what_a_kernel_name_tells(kernel: str | None, told: Protocol) -> None:
    assert protocol_of(kernel) == told


# -- contention -----------------------------------------------------------------------------------


def beside(rank: int, step: int) -> tuple[Op, ...]:
    """Every other step runs a kernel beside the all-reduces, which then take half as long again."""
    shared = step % 2 == 0
    ops: list[Op] = [host(50_000 + 10_000 * rank)]
    if shared:
        ops += [
            EventRecord("ready"),
            StreamWait(20, "ready"),
            Launch("gemm", 20, 900_000),
            EventRecord("done", 20),
        ]
    ops += [meet(elements=size, transfer_ns=ns * (3 if shared else 2) // 2) for size, ns in LINE.items()]
    return (*ops, *([StreamWait(7, "done")] if shared else []))


def test_contended_calls_are_told_and_left_out_where_others_are_enough(tmp_path: Path) -> None:
    row = price(tmp_path, beside, steps=24)
    assert (row.calls_contended, row.basis) == (36, "uncontended")
    assert row.alpha_ns == pytest.approx(10_000, rel=1e-3)
    assert row.contended_ratio == pytest.approx(1.5, rel=1e-3)
    assert row.contended_ratio_ci95 == (pytest.approx(1.5, rel=1e-3), pytest.approx(1.5, rel=1e-3))
    assert [(p.contended_calls, p.contended_ratio) for p in row.points] == [
        (12, pytest.approx(1.5, rel=1e-3))
    ] * 3


def test_contended_calls_count_where_nothing_else_is_there(tmp_path: Path) -> None:
    row = price(tmp_path, lambda rank, step: beside(rank, 2 * step), steps=10)
    assert (row.calls_contended, row.calls_split, row.basis) == (30, 30, "all")
    assert row.alpha_ns == pytest.approx(15_000, rel=1e-3)
    assert row.contended_ratio is None
    assert any("30 contended ones" in note for note in row.notes)


def test_contention_is_not_told_of_calls_whose_size_is_unknown(tmp_path: Path) -> None:
    """The large calls run beside a kernel that slows nothing down: they take longer since they are large."""

    def ops(rank: int, step: int) -> tuple[Op, ...]:
        del step
        small, large = meet(elements=4_096, transfer_ns=10_000), meet(elements=4_194_304, transfer_ns=90_000)
        kernel = (EventRecord("ready"), StreamWait(20, "ready"), Launch("gemm", 20, 900_000))
        return (host(50_000 + 10_000 * rank), small, *kernel, EventRecord("done", 20), large,
                StreamWait(7, "done"))  # fmt: skip

    row = price(tmp_path, ops, recording=Recording(collective_metadata=False), steps=12)
    assert (row.calls_split, row.calls_contended) == (24, 12)
    assert (row.contended_ratio, row.contended_ratio_ci95) == (None, None)


def test_a_kernel_that_ends_before_the_last_rank_comes_contends_with_nothing(tmp_path: Path) -> None:
    """It ran while the others waited."""

    def ops(rank: int, step: int) -> tuple[Op, ...]:
        if rank == 0:
            early = (EventRecord("ready"), StreamWait(20, "ready"), Launch("gemm", 20, 60_000))
            return (host(20_000), *early, meet(elements=list(LINE)[step % 3], transfer_ns=30_000))
        return host(300_000), meet(elements=list(LINE)[step % 3], transfer_ns=30_000)

    row = price(tmp_path, ops, steps=12)
    assert (row.calls_split, row.calls_contended) == (12, 0)


# -- what it costs a step -------------------------------------------------------------------------


def test_the_published_product_and_share(tmp_path: Path) -> None:
    """92 calls of 58.7 us are 5.4004 ms, 1.92 % of a step of 281.6 ms."""

    def ops(rank: int, step: int) -> tuple[Op, ...]:
        del rank, step
        each = [op for _ in range(92) for op in (meet(transfer_ns=58_700, elements=7_168), work(2_980_000))]
        return tuple(each)

    analysis = analyzed(team(2, ops, steps=3), tmp_path)
    row = only_cost(analysis)
    assert (row.scope, row.calls_per_step, row.median_duration_ns) == ("global", 92, 58_700)
    assert row.naive_ns_total == row.naive_transfer_ns_total == row.windows * 5_400_400
    step = row.step_ns_total / row.windows
    assert step == pytest.approx(281.6e6, rel=0.01)
    assert round(100 * row.naive_ns_total / row.windows / 281.6e6, 2) == 1.92
    (point,) = analysis.diagnosis.alpha_beta[0].points
    assert point.bytes == 14_336
    assert sum(row.path_ns_total.values()) == row.naive_ns_total  # nothing overlaps here


def test_the_published_growth_with_payload(tmp_path: Path) -> None:
    """512 times the payload, 14 KiB to 7 MiB, for 1.45 times the latency."""

    def ops(rank: int, step: int) -> tuple[Op, ...]:
        del step
        return (host(50_000 + 20_000 * rank), meet(elements=7_168, transfer_ns=58_700), work(5_000),
                meet(elements=3_670_016, transfer_ns=85_000))  # fmt: skip

    row = price(tmp_path, ops)
    assert row.size_ratio == 512
    assert row.latency_ratio is not None and round(row.latency_ratio, 2) == 1.45
    assert row.notes == ["two sizes: every line meets them, so that nothing checks whether latency is a line"]


def test_calls_of_unknown_sizes_each_cost_their_own(tmp_path: Path) -> None:
    """10 us three times and 100 us twice a step: 230 us, not five times the median."""

    def ops(rank: int, step: int) -> tuple[Op, ...]:
        del rank, step
        return host(50_000), *(meet(elements=ns, transfer_ns=ns) for ns in [10_000] * 3 + [100_000] * 2)

    row = only_cost(analyzed(team(2, ops), tmp_path, recording=Recording(collective_metadata=False)))
    assert row.naive_ns_total == row.naive_transfer_ns_total == row.windows * 230_000
    assert sum(row.path_ns_total.values()) == row.windows * 230_000


def test_a_hidden_collective_costs_nothing_on_the_path_and_all_of_the_product(tmp_path: Path) -> None:
    def ops(rank: int, step: int) -> tuple[Op, ...]:
        del rank, step
        hidden = Collective("tp", "all_reduce", "BFloat16", 4_096, 100_000, stream=20)
        return host(50_000), EventRecord("a"), StreamWait(20, "a"), hidden, work(500_000)

    row = only_cost(analyzed(team(2, ops, streams=(7, 20)), tmp_path))
    assert row.naive_ns_total == pytest.approx(row.windows * 100_000, rel=0.02)
    assert sum(row.path_ns_total.values()) == 0


def test_a_late_rank_is_in_the_product_and_not_on_the_path(tmp_path: Path) -> None:
    """Rank 1 waits 400 us for rank 2, rank 0 twice as long; the path is with rank 2 meanwhile."""
    row = only_cost(analyzed(team(3, of_sizes(4_096, apart_ns=400_000)), tmp_path))  # type: ignore[arg-type]
    assert row.median_duration_ns == 410_041
    assert row.naive_ns_total == row.windows * 410_041
    assert row.naive_transfer_ns_total == row.windows * 10_041
    assert row.path_ns_total == {
        "collective.transfer": row.windows * 10_041, "collective.wait": 0, "collective.unsplit": 0
    }  # fmt: skip


def test_without_a_common_path_every_rank_has_its_own_costs(tmp_path: Path) -> None:
    run = team(2, of_sizes(4_096))  # type: ignore[arg-type]
    row = only_cost(analyzed(run, tmp_path, recording=Recording(lost_ranks=frozenset({1}))))
    assert (row.scope, row.rank, row.calls_per_step) == ("rank", 0, 1)
    assert row.naive_ns_total == sum(row.path_ns_total.values())
    assert row.naive_transfer_ns_total is None
    assert row.path_ns_total["collective.unsplit"] > row.windows * 10_041


def test_groups_have_prices_of_their_own(tmp_path: Path) -> None:
    groups = (Group("tp0", (0, 1), "tp", "1"), Group("tp1", (2, 3), "tp", "2"))

    def ops(rank: int, step: int) -> tuple[Op, ...]:
        del step
        of, factor = f"tp{rank // 2}", 1 + rank // 2
        calls = [meet(of, elements=size, transfer_ns=ns * factor) for size, ns in LINE.items()]
        return (host(50_000 + 10_000 * rank), *calls)

    rows = analyzed(team(4, ops, groups=groups), tmp_path).diagnosis.alpha_beta
    assert {tuple(row.ranks): round((row.alpha_ns or 0) / 1_000) for row in rows} == {(0, 1): 10, (2, 3): 20}


def test_a_send_ends_with_its_receiver(tmp_path: Path) -> None:
    """Senders of small messages leave early, which says nothing of the transfer."""

    def ops(rank: int, step: int) -> tuple[Op, ...]:
        del step
        op = "send" if rank == 0 else "recv"
        calls = [
            meet("pp", op, elements=size, transfer_ns=2_000 if op == "send" else ns)
            for size, ns in LINE.items()
        ]
        return (host(50_000 + 30_000 * rank), *(each for call in calls for each in (call, work(40_000))))

    groups = (Group("pp", (0, 1), "pp", "1"),)
    row = price(tmp_path, ops, groups=groups)  # type: ignore[arg-type]
    assert row.op == "send/recv"
    assert row.alpha_ns == pytest.approx(10_000, rel=0.02)
    assert any("ends with the receiver" in note for note in row.notes)


def test_of_uneven_sizes_the_largest_counts(tmp_path: Path) -> None:
    """Ranks of an all-to-all have shares of their own."""

    def ops(rank: int, step: int) -> tuple[Op, ...]:
        del step
        calls = [
            meet(op="all_to_all", elements=size // (1 + rank), transfer_ns=ns) for size, ns in LINE.items()
        ]
        return (host(50_000 + 10_000 * rank), *calls)

    row = price(tmp_path, ops)
    assert [point.bytes for point in row.points] == [2 * size for size in LINE]


def transfers_of(seed: int, step_noise: float) -> Transfers:
    """12 steps of five calls, every other step beside other work, which makes them 1.4 times as long."""
    draw = np.random.default_rng(seed)
    step = np.repeat(np.arange(12), 5)
    beside = step % 2 == 1
    common = np.exp(step_noise * draw.standard_normal(12))[step]
    latency = 20_000 * np.where(beside, 1.4, 1.0) * common * np.exp(0.05 * draw.standard_normal(len(step)))
    return Transfers(np.full(len(step), 4_096), np.rint(latency).astype(np.int64), step, beside)


@pytest.mark.parametrize("step_noise", [0.0, 0.1])
def test_the_interval_of_contention_holds_what_steps_share(step_noise: float) -> None:
    held = 0
    for seed in range(80):
        ratio, interval = contention(transfers_of(seed, step_noise))
        assert ratio is not None and interval is not None
        held += interval[0] <= 1.4 <= interval[1]
    assert binomtest(held, 80, 0.95, alternative="less").pvalue >= 0.01, held


def test_a_single_call_that_runs_alone_is_held_against_nothing() -> None:
    size = np.repeat(np.arange(1_000, 7_000, 1_000), 4)
    beside = np.tile([False, True, True, True], 6)
    assert contention(Transfers(size, size * 10, np.arange(24), beside)) == (None, None)
