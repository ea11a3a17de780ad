"""The client's own log of a real local server, joined with a simulated capture that ends when the server says."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from analyzer import pipeline
from analyzer.analysis import Analysis
from fixtures.simulator import program as p
from fixtures.simulator.engine import simulate
from fixtures.simulator.kineto_writer import write_kineto
from fixtures.simulator.nsys_writer import write_nsys
from fixtures.simulator.recording import CAPTURE_EPOCH_NS, Recording
from fixtures.simulator.run import Run as SimulatedRun
from tests.collectors.client_runs import Run, taken
from tests.collectors.streaming_server import Proxy, Server, Talk, token

pytest.importorskip("httpx")
MS = 1_000_000
STEPS = 12
OUTPUT_NS, HELD_NS, WAY_NS = 4 * MS, 3 * MS, 8 * MS
ONE_CLOCK = {"server": "trace", "client": "trace"}


def steps_of_10_ms() -> SimulatedRun:
    """A decode loop whose device step takes 10 ms and varies a little."""
    ops: list[p.Op] = []
    for step in range(STEPS):
        ops += [
            p.Step(f"ProfilerStep#{step}"),
            p.Launch("gemm", duration_ns=9_700_000 + 37_000 * (step * step % 7)),
            p.StreamSync(7),
            p.Pop(),
        ]
    return simulate(p.Program((p.Rank(0, (p.Thread(tuple(ops)),), (p.Stream(7),)),)))


@dataclass
class Truth:
    """What the server did, by its own clock: when each step was complete, when each token was emitted."""

    ends_ns: list[int]  # relative to the first step's start
    start_ns: int = 0
    emitted_ns: list[int] = field(default_factory=list)

    @property
    def completed_ns(self) -> list[int]:
        return [self.start_ns + end for end in self.ends_ns]


def until(instant_ns: int) -> None:
    while (left := instant_ns - time.time_ns()) > 0:
        time.sleep(left / 1e9)


def script(truth: Truth, clock_ns: int = 0, pairs: bool = False) -> Callable[[Talk], None]:
    """Each token is emitted OUTPUT_NS after its step; with ``pairs`` every first one is held back for the second."""

    def talk_(talk: Talk) -> None:
        talk.head()
        truth.start_ns = time.time_ns() + 2 * MS
        held = []
        for step, end in enumerate(truth.ends_ns):
            until(truth.start_ns + end + OUTPUT_NS)
            truth.emitted_ns.append(time.time_ns())
            held.append(token(f"t{step}", emitted_ns=truth.emitted_ns[-1] + clock_ns))
            if not pairs or step % 2:
                talk.events(*held)
                held = []
        talk.finish()

    return talk_


def ends_of(run: SimulatedRun) -> list[int]:
    return [max(work.end_ns for work in run.works_of(0)[: step + 1]) for step in range(STEPS)]


def joined(
    run: SimulatedRun, truth: Truth, log: Path, folder: Path, clock_ns: int = 0, **options: object
) -> Analysis:
    """The capture, moved to when the server worked, with the client's log."""
    folder.mkdir(exist_ok=True)
    write = write_nsys if options.pop("nsys", False) else write_kineto
    moved = Recording(clock_offset_ns={0: truth.start_ns + clock_ns - CAPTURE_EPOCH_NS})
    capture = pipeline.read(write(run, folder, moved))
    return pipeline.analyze(capture, token_logs=[log], own_changes=False, **options)


def logged(run: Run, url: str, taken_: bool = True) -> Path:
    log = run(url)
    assert log.code == 0
    return log.folder / "rank0.tokens.jsonl"


@pytest.mark.parametrize("nsys", [False, True])
def test_every_planted_delay_is_in_its_category(run: Run, watched: None, tmp_path: Path, nsys: bool) -> None:
    simulated = steps_of_10_ms()
    truth = Truth(ends_of(simulated))
    with Server(script(truth)) as server:
        server.taken = taken
        log = logged(run, server.url)
    writes = [write for write in server.talks[0].writes if write.events][:STEPS]
    analysis = joined(
        simulated, truth, log, tmp_path / "capture", nsys=nsys, token_clocks=ONE_CLOCK, boundary="client"
    )
    tokens, service = analysis.tokens, analysis.diagnosis.service
    assert tokens is not None and service is not None
    assert tokens.window.tolist() == list(range(STEPS))
    output = np.array(truth.emitted_ns) - np.array(truth.completed_ns)
    assert (tokens.emission_ns - tokens.completion_ns).tolist() == output.tolist()
    for at, write in enumerate(writes):
        arrived = tokens.arrival_ns[at] + tokens.zero_ns[0]
        assert truth.emitted_ns[at] <= arrived
        assert write.taken_ns is not None and arrived <= write.taken_ns
    parts = tokens.part_ns[1:]
    assert parts.sum(axis=1).tolist() == np.diff(tokens.receipt_ns).tolist()
    assert (
        parts[:, 1].tolist()
        == np.minimum(output[1:], tokens.emission_ns[1:] - tokens.receipt_ns[:-1]).tolist()
    )
    assert parts[:, 4].tolist() == [0] * (STEPS - 1)
    assert [pair.one_clock for pair in service.clocks] == [True]
    (budget,) = service.budget
    assert sum(budget.path_ns_total.values()) == budget.step_ns_total
    assert budget.path_ns_total["service.output"] >= OUTPUT_NS * (STEPS - 1)
    assert analysis.diagnosis.boundary == "client"
    (row,) = [row for row in analysis.diagnosis.hypotheses if row.id == "output-path"]
    assert row.verdict == "supported"


def test_tokens_that_are_held_for_others_are_buffered(run: Run, watched: None, tmp_path: Path) -> None:
    simulated = steps_of_10_ms()
    truth = Truth(ends_of(simulated))
    with Server(script(truth, pairs=True)) as server:
        server.taken = taken
        log = logged(run, server.url)
    analysis = joined(simulated, truth, log, tmp_path / "capture", token_clocks=ONE_CLOCK)
    tokens = analysis.tokens
    assert tokens is not None
    emitted = np.array(truth.emitted_ns)
    first = np.arange(0, STEPS, 2)
    held = emitted[first + 1] - emitted[first]
    late = tokens.receipt_ns - tokens.arrival_ns
    assert (tokens.buffering_ns[first] - late[first]).tolist() == held.tolist()
    assert tokens.gap_ns[first + 1].tolist() == [0] * len(first)
    later = first[1:]
    assert (tokens.part_ns[later, 3] >= held[1:]).all()


def test_a_slow_way_is_transport(run: Run, tmp_path: Path) -> None:
    simulated = steps_of_10_ms()
    truth = Truth(ends_of(simulated))

    def slow(data: bytes, send: Callable[[bytes], None]) -> None:
        time.sleep(WAY_NS / 1e9)
        send(data)

    with Server(script(truth)) as server, Proxy(server.port, slow) as proxy:
        log = logged(run, proxy.url)
    analysis = joined(simulated, truth, log, tmp_path / "capture", token_clocks=ONE_CLOCK)
    tokens, service = analysis.tokens, analysis.diagnosis.service
    assert tokens is not None and service is not None
    assert (tokens.arrival_ns - tokens.emission_ns >= WAY_NS).all()
    assert service.clocks[0].one_clock and service.clocks[0].smallest_ns >= WAY_NS
    stages = {stage.name: stage for stage in service.stages}
    assert stages["transport"].median_ns >= WAY_NS and not stages["transport"].above_smallest
    (budget,) = service.budget
    assert budget.path_ns_total["service.transport"] >= 0.5 * WAY_NS * (STEPS - 1)


@pytest.mark.parametrize("named", [{"server": "trace"}, ONE_CLOCK])
@pytest.mark.parametrize("offset_ns", [3_000 * MS, -3_000 * MS])
def test_a_constant_clock_offset_is_detected_and_not_attributed(
    run: Run, tmp_path: Path, offset_ns: int, named: dict[str, str]
) -> None:
    """The server's and the capture's clock run ahead of, or behind, the client's, also where they are named as one."""
    simulated = steps_of_10_ms()
    truth = Truth(ends_of(simulated))
    with Server(script(truth, clock_ns=offset_ns)) as server:
        log = logged(run, server.url)
    analysis = joined(simulated, truth, log, tmp_path / "capture", offset_ns, token_clocks=named)
    service, tokens = analysis.diagnosis.service, analysis.tokens
    assert service is not None and tokens is not None
    (pair,) = service.clocks
    assert not pair.one_clock
    low, high = pair.interval_ns
    assert low is not None and high is not None and low <= -offset_ns <= high
    assert sum(tokens.part_ns[1:, 2]) <= 0.05 * abs(offset_ns)
    stages = {stage.name: stage for stage in service.stages}
    assert stages["transport"].above_smallest and stages["transport"].median_ns < 100 * MS
    assert (tokens.emission_ns - tokens.completion_ns >= OUTPUT_NS).all()
    assert "clock offset or constant delay" in str(render_of(analysis))


def render_of(analysis: Analysis) -> str:
    from analyzer.report.markdown import render

    return render(analysis.diagnosis)
