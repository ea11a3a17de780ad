"""What the writers say of collectives: names, sizes, peers, numbers; and ranks without a file."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from analyzer import pipeline
from fixtures.simulator.collective_rows import kernel_name, nccl_payload, torch_args, torch_title
from fixtures.simulator.engine import simulate
from fixtures.simulator.kineto_writer import kineto_text, write_kineto
from fixtures.simulator.nsys_writer import write_nsys
from fixtures.simulator.program import (
    Collective,
    Cpu,
    Graph,
    GraphLaunch,
    Group,
    Node,
    Op,
    Pop,
    Program,
    Rank,
    Step,
    Thread,
)
from fixtures.simulator.recording import Recording

PAIR = Group("stage 1", (1, 5), "pp", "3")
FOUR = Group("tensor 0", (0, 2, 4, 6), "tp", "1")


def meet(op: str, group: Group = FOUR, elements: int = 4_000) -> Collective:
    return Collective(group.name, op, "BFloat16", elements, 10_000, kernel=kernel_name(op))


@pytest.mark.parametrize(
    ("op", "recorded", "sizes"),
    [
        ("all_reduce", "allreduce", (4_000, 4_000)),
        ("all_gather", "_allgather_base", (1_000, 4_000)),
        ("reduce_scatter", "_reduce_scatter_base", (4_000, 1_000)),
        ("all_to_all", "all_to_allv", (4_000, 4_000)),
    ],
)
def test_torch_spells_operations_its_own_way(op: str, recorded: str, sizes: tuple[int, int]) -> None:
    args = torch_args(meet(op), FOUR, 4, 7)
    assert (args["Collective name"], args["In msg nelems"], args["Out msg nelems"]) == (recorded, *sizes)
    assert (args["Process Group Name"], args["Process Group Ranks"]) == ("1", "[0, 2, 4, 6]")
    assert (args["Group size"], args["Rank"], args["Seq"]) == (4, 2, 7)
    assert not {"Src Rank", "Dst Rank"} & set(args)
    assert torch_title(meet(op), FOUR, 4) == f"nccl:{op}"


def test_each_side_of_a_send_names_the_other_one() -> None:
    sends = torch_args(meet("send", PAIR), PAIR, 1, 1)
    receives = torch_args(meet("recv", PAIR), PAIR, 5, 1)
    assert (sends["Dst Rank"], sends["Rank"], "Src Rank" in sends) == (5, 1, False)
    assert (receives["Src Rank"], receives["Rank"], "Dst Rank" in receives) == (1, 0, False)
    assert torch_title(meet("send", PAIR), PAIR, 1) == "nccl:send 0->1"
    assert torch_title(meet("recv", PAIR), PAIR, 5) == "nccl:recv 1<-0"


def test_nccl_counts_bytes_and_names_peers() -> None:
    assert nccl_payload(meet("all_reduce"), FOUR, 0, 9) == {
        "NCCL communicator ID": 9,
        "Message size [bytes]": 8_000,
        "Reduction operation": "Sum",
    }
    assert nccl_payload(meet("all_gather"), FOUR, 0, 9)["Message size [bytes]"] == 2_000
    assert nccl_payload(meet("recv", PAIR), PAIR, 5, 9) == {
        "NCCL communicator ID": 9,
        "Message size [bytes]": 8_000,
        "Peer rank": 0,
    }


def pipeline_of_two() -> Program:
    """A rank that sends and one that receives 30 us later; each then replays an all-reduce and launches one."""
    group = Group("stage", (0, 1), "pp", "2")
    reduce = meet("all_reduce", group)
    graph = Graph("decode", (Node(reduce),))
    ranks = []
    for rank, (op, late) in enumerate((("send", 0), ("recv", 30_000))):
        ops: tuple[Op, ...] = (
            Step("step"),
            Cpu(100_000 + late, "prepare", "range", "framework"),
            meet(op, group),
            GraphLaunch(graph),
            reduce,
            Pop(),
        )
        ranks.append(Rank(rank, (Thread(ops, tid=1_000 + rank),), device=rank, pid=1_000 + rank))
    return Program(tuple(ranks), (group,))


def test_both_ends_of_a_send_end_together_and_replays_have_no_number(tmp_path: Path) -> None:
    run = simulate(pipeline_of_two())
    first = run.meetings[0]
    assert {work.end_ns for work in first.works.values()} == {first.works[1].start_ns + 10_000}
    traces = pipeline.read(write_kineto(run, tmp_path)).traces
    for trace, op in zip(traces, ("send", "recv"), strict=True):
        infos = [trace.collectives[code] if code >= 0 else None for code in trace.device.collective.tolist()]
        found = [None if info is None else (info.op, info.sequence, info.group) for info in infos]
        assert found == [(op, 1, "2"), None, ("allreduce", 2, "2")]
        assert infos[0] is not None
        assert (infos[0].src_rank, infos[0].dst_rank) == ((None, 1) if op == "send" else (0, None))


def test_nsys_names_the_calls_of_both_ends(tmp_path: Path) -> None:
    paths = write_nsys(simulate(pipeline_of_two()), tmp_path)
    for path, function in zip(paths, ("ncclSend", "ncclRecv"), strict=True):
        with sqlite3.connect(path) as database:
            rows = database.execute(
                "SELECT value, jsonText FROM NVTX_EVENTS JOIN StringIds ON id = textId WHERE jsonText IS NOT NULL"
            ).fetchall()
        database.close()
        assert [name for name, _ in rows] == [function, "ncclAllReduce"]
        assert json.loads(rows[0][1])["Peer rank"] == (1 if function == "ncclSend" else 0)


def test_a_lost_rank_has_no_file_but_is_counted(tmp_path: Path) -> None:
    run = simulate(pipeline_of_two())
    recording = Recording(lost_ranks=frozenset({0}))
    assert [path.name for path in write_kineto(run, tmp_path, recording)] == ["rank1.pt.trace.json"]
    assert [path.name for path in write_nsys(run, tmp_path, recording)] == ["rank1.sqlite"]
    (one_file,) = write_nsys(run, tmp_path, recording, one_file=True)
    with sqlite3.connect(one_file) as database:
        assert database.execute("SELECT pid FROM PROCESSES").fetchall() == [(1_001,)]
    database.close()
    head: dict[str, Any] = json.loads(kineto_text(run, 1, recording))["distributedInfo"]
    assert (head["rank"], head["world_size"]) == (1, 2)
    assert [group["pg_name"] for group in head["pg_config"]] == ["2"]
