"""Programs run again with one change, and the example made from the decode loop."""

from __future__ import annotations

import gzip
import json
import math
import sqlite3
from pathlib import Path

import pytest

from analyzer import example
from analyzer.categories import Category
from fixtures.make_example import make_example
from fixtures.simulator import changes, decode_loop
from fixtures.simulator.engine import simulate
from fixtures.simulator.program import (
    Collective,
    CopyAsync,
    Cpu,
    EventRecord,
    Graph,
    GraphLaunch,
    Group,
    Launch,
    Malloc,
    Node,
    Op,
    Pop,
    Program,
    Rank,
    Step,
    StreamSync,
    StreamWait,
    Thread,
    single,
)
from fixtures.simulator.run import Run
from fixtures.simulator.truth import truth_of


def step_ns(run: Run, rank: int = 0) -> float:
    windows = truth_of(run).ranks[rank][1:]
    return sum(w.window.end_ns - w.window.start_ns for w in windows) / len(windows)


def shares(run: Run) -> dict[Category, float]:
    """Share of each category on the global path."""
    found: dict[Category, int] = {}
    for _, path in truth_of(run).global_paths:
        for segment in path:
            found[segment.category] = found.get(segment.category, 0) + segment.end_ns - segment.start_ns
    return {category: ns / sum(found.values()) for category, ns in found.items()}


def test_scaling_a_kernel_family_reaches_into_graphs() -> None:
    graph = Graph("g", (Node(Launch("gemm", 7, 10_000)), Node(Launch("norm", 7, 10_000), (0,))))
    changed = changes.scale_kernels(single(Launch("gemm", 7, 10_000), GraphLaunch(graph)), "gemm", 0.5)
    works = [(w.name, w.duration_ns) for w in simulate(changed).works]
    assert works == [("gemm", 5_000), ("gemm", 5_000), ("norm", 10_000)]


def test_scaling_the_host_leaves_calls_alone() -> None:
    program = single(Cpu(10_000), Launch("a", api_ns=4_000), Cpu(30_000), Launch("b", api_ns=4_000))
    run = simulate(changes.scale_host(program, 0.5))
    assert run.call_spans() == [(5_000, 9_000), (24_000, 28_000)]


def test_without_synchronization_nothing_is_held() -> None:
    ops: tuple[Op, ...] = (
        Launch("a", duration_ns=90_000),
        StreamSync(),
        Malloc(syncs=True),
        CopyAsync("DtoH", 64, 3_000, host_memory="pageable"),
    )
    run = simulate(changes.remove_syncs(single(*ops)))
    assert all(span.held_by is None for spans in run.spans.values() for span in spans)
    assert [call.name for call in run.calls] == ["cudaLaunchKernel", "cudaMalloc", "cudaMemcpyAsync"]


def collectives(program: Program) -> list[tuple[int, int]]:
    return [(w.rank, w.end_ns - w.start_ns) for w in simulate(program).works if w.meeting is not None]


def test_no_skew_leaves_only_transfers_and_alpha_beta_sets_them() -> None:
    meet = Collective("g", "all_reduce", "BFloat16", 1_000_000, transfer_ns=30_000)
    ranks = tuple(Rank(i, (Thread((Cpu(1 + 50_000 * i), meet)),), device=i) for i in (0, 1))
    program = Program(ranks, (Group("g", (0, 1)),))
    assert collectives(program) == [(0, 80_000), (1, 30_000)]
    assert collectives(changes.no_skew(program)) == [(0, 30_000), (1, 30_000)]
    faster = changes.set_collectives(program, alpha_ns=5_000, bytes_per_s=2e11)
    assert collectives(changes.no_skew(faster)) == [(0, 15_000), (1, 15_000)]


def test_a_captured_run_keeps_its_order_as_edges() -> None:
    ops: list[Op] = [Step("s"), Cpu(9_000), Launch("a", 7), EventRecord("e", 7), StreamWait(20, "e")]
    ops += [Launch("b", 20), EventRecord("f", 20), Launch("c", 7), StreamWait(7, "f"), Launch("d", 7), Pop()]
    captured = changes.capture_graphs(single(*ops, streams=(7, 20)), least=4)
    kinds = [type(op).__name__ for op in captured.ranks[0].threads[0].ops]
    assert kinds == ["Step", "Cpu", "GraphLaunch", "EventRecord", "EventRecord", "Pop"]
    launch = captured.ranks[0].threads[0].ops[2]
    assert isinstance(launch, GraphLaunch)
    assert [(node.op.stream, node.after) for node in launch.graph.nodes] == [
        (7, ()),
        (20, (0,)),
        (7, (0,)),
        (7, (1, 2)),
    ]


def test_the_eager_loop_is_launch_bound_on_its_late_rank_and_the_twin_is_not() -> None:
    eager = simulate(decode_loop.eager(ranks=6, steps=4, layers=2))
    twin = simulate(decode_loop.captured(ranks=6, steps=4, layers=2))
    before, after = shares(eager), shares(twin)
    launching = (Category.LAUNCH_API, Category.LAUNCH_DISPATCH, Category.LAUNCH_LATENCY)
    assert sum(before.get(c, 0.0) for c in launching) > 0.6
    assert sum(after.get(c, 0.0) for c in launching) < 0.2
    assert step_ns(twin) < 0.6 * step_ns(eager)
    path = truth_of(eager).global_paths[2][1]
    assert {segment.rank for segment in path} == {decode_loop.LATE_RANK}
    same = [sorted((w.name, w.rank) for w in run.works) for run in (eager, twin)]
    assert same[0] == same[1]


def test_replays_of_every_step_share_one_executable() -> None:
    run = simulate(decode_loop.captured(ranks=3, steps=4, layers=2))
    assert {work.replay.exec_id for work in run.works if work.replay is not None} == {1}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example")
    make_example(folder)
    return folder


def content(data: bytes) -> object:
    """A file's content apart from what the compressor or SQLite's version adds."""
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    if data.startswith(b"{"):
        return json.loads(data)
    if not data.startswith(b"SQLite format 3"):
        return data
    database = sqlite3.connect(":memory:")
    database.deserialize(data)
    dump = list(database.iterdump())
    database.close()
    return dump


def alike(one: object, other: object) -> bool:
    """Equal, figures up to the rounding in which processors differ."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other


def test_the_shipped_example_is_what_the_simulator_makes(made: Path) -> None:
    fresh = {path.name.replace("-", "/", 1): path.read_bytes() for path in made.iterdir()}
    shipped = example.files()
    assert sorted(fresh) == sorted(shipped)
    for name, data in shipped.items():
        same = alike(content(data), content(fresh[name]))
        assert same, f"{name}: run python -m fixtures.make_example"


def test_the_shipped_example_stays_small() -> None:
    compressed = {n: len(d if n.endswith(".gz") else gzip.compress(d)) for n, d in example.files().items()}
    assert sum(compressed.values()) < 1_000_000
    assert compressed["nsys/decode_1gpu.sqlite"] < 300_000


def test_the_example_is_written_as_folders(tmp_path: Path) -> None:
    paths = example.write(tmp_path / "demo")
    names = [path.relative_to(tmp_path / "demo").as_posix() for path in paths]
    assert {Path(name).parts[0] for name in names} == {"checkpoint", "eager", "graph", "inputs", "nsys"}
    assert len(names) == 23
    first = paths[names.index("eager/rank0.pt.trace.json.gz")]
    file = json.loads(gzip.decompress(first.read_bytes()))
    steps = [e for e in file["traceEvents"] if e["name"] == decode_loop.STEP_NAME]
    assert len(steps) == decode_loop.STEPS
