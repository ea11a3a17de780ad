"""Token logs and the steps of a capture become the service's part of a diagnosis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analyzer.diagnosis import ClockPair, Service, TokenLogRead, Unmeasured
from analyzer.explain.service.assign import NO_STEP
from analyzer.explain.service.client_windows import SCOPE, client_budgets, client_windows
from analyzer.explain.service.clocks import Offset
from analyzer.explain.service.device_path import DevicePath
from analyzer.explain.service.figures import gap_parts, stages
from analyzer.explain.service.gaps import Gaps, gaps_of
from analyzer.explain.service.placed import CAPTURE, Placed, place
from analyzer.stats import quantile
from analyzer.tables import NO_EVENT, TokenTable
from analyzer.tokens import ABSENT, IntArray, TokenLog

NO_LOG = Unmeasured(
    what="time from device completion to the client's receipt: no token log was given",
    how_to_measure="`tracebound collect client`, or a log of your server and client: `--token-log FILE`"
    " (docs/service.md)",
)
INSTANTS = ("completion_ns", "held_ns", "emission_ns", "last_emission_ns", "arrival_ns", "receipt_ns")
COMPLETION, EMISSION, RECEIPT = "device completion", "server emission", "client receipt"


@dataclass(frozen=True)
class ServiceAccount:
    """The service as the diagnosis has it, and every token of it."""

    result: Service
    tokens: TokenTable


def service_account(
    logs: Sequence[TokenLog], path: DevicePath | None, why_no_path: str, named: Mapping[str, str]
) -> ServiceAccount:
    """``path``: None where no device completion can be joined, then ``why_no_path`` tells."""
    placed = [place(log, path, why_no_path, named) for log in logs]
    gaps = [gaps_of(one.way) for one in placed]
    windows = [] if path is None else client_windows(path, placed)
    gap_ns = np.concatenate([one.gap_ns for one in gaps])
    result = Service(
        scope=SCOPE if path is None else path.scope,
        rank=None if path is None else path.rank,
        logs=[_log_read(one) for one in placed],
        clocks=[pair for one in placed for pair in _pairs(one)],
        stages=stages(placed),
        gaps=len(gap_ns),
        gap_ns_total=int(gap_ns.sum()),
        gap_median_ns=quantile(gap_ns, 0.5) if len(gap_ns) else None,
        gap_p95_ns=quantile(gap_ns, 0.95) if len(gap_ns) else None,
        parts=gap_parts(placed, gaps, _groups(placed, gaps)),
        windows=windows,
        budget=[] if path is None else client_budgets(path, windows),
    )
    return ServiceAccount(result, _table(placed, gaps, path))


def _groups(placed: Sequence[Placed], gaps: Sequence[Gaps]) -> IntArray:
    """(g,) of gaps of all logs, their step, else a number of their own."""
    found = []
    for number, (one, of_log) in enumerate(zip(placed, gaps, strict=True)):
        step = one.step[of_log.token]
        found.append(np.where(step == NO_STEP, of_log.token + (1 << 32), step) + (number << 48))
    return np.concatenate(found)


def _log_read(one: Placed) -> TokenLogRead:
    assignment = one.assignment
    return TokenLogRead(
        path=one.log.path,
        kind=one.log.kind,
        partial=one.log.partial,
        requests=len(one.log.requests),
        tokens=len(one.log),
        device_clock=one.clocks.device,
        server_clock=one.clocks.server,
        client_clock=one.clocks.client,
        emission_resolution_ns=one.log.resolution_ns,
        receipt_resolution_ns=one.log.receipt_resolution_ns,
        assigned_by="" if assignment is None else _assigned_by(one.log),
        joined=assignment is not None,
        why_not_joined=one.why,
        assignment="" if assignment is None else assignment.method,
        tokens_joined=int((one.step != NO_STEP).sum()),
        tokens_outside=0 if assignment is None else assignment.outside,
        tokens_ambiguous=0 if assignment is None else assignment.ambiguous,
        completion_difference_ns=one.completion_difference_ns,
    )


def _assigned_by(log: TokenLog) -> str:
    sides = ((COMPLETION, log.completion_ns), (EMISSION, log.emission_ns), (RECEIPT, log.receipt_ns))
    return next(name for name, instants in sides if (instants != ABSENT).any())


def _pairs(one: Placed) -> list[ClockPair]:
    sides = ((COMPLETION, EMISSION, one.to_server), (EMISSION, RECEIPT, one.to_client))
    return [
        _pair(one.log.path, earlier, later, offset) for earlier, later, offset in sides if offset is not None
    ]


def _pair(log: str, earlier: str, later: str, offset: Offset) -> ClockPair:
    return ClockPair(
        log=log,
        earlier=earlier,
        later=later,
        one_clock=offset.same,
        why_not=offset.why,
        pairs=offset.pairs,
        smallest_ns=offset.smallest_ns or 0,
        interval_ns=offset.interval_ns,
        drift_ppb=round(offset.slope * 1e9),
        drift_doubt_ns=offset.drift_doubt_ns,
        early=offset.early,
    )


def unmeasured(service: Service | None) -> list[Unmeasured]:
    """What the token logs, or their absence, leave open."""
    if service is None:
        return [NO_LOG]
    rows = []
    for log in service.logs:
        if not log.joined:
            rows.append(
                Unmeasured(
                    what=f"output time between device completion and emission, for {log.path}",
                    how_to_measure=f"its tokens are not joined with the steps: {log.why_not_joined}",
                )
            )
    for pair in service.clocks:
        if not pair.one_clock:
            rows.append(
                Unmeasured(
                    what=f"constant part of the time from {pair.earlier} to {pair.later}, for {pair.log}",
                    how_to_measure=f"{pair.why_not}: log both by one clock, or on hosts that are held together by PTP,"
                    f" and name the clocks: `--token-clock server={CAPTURE},client={CAPTURE}`",
                )
            )
    return rows


def _table(placed: Sequence[Placed], gaps: Sequence[Gaps], path: DevicePath | None) -> TokenTable:
    columns: dict[str, list[Any]] = {}
    requests: dict[str, int] = {}

    def add(name: str, values: npt.NDArray[Any]) -> None:
        columns.setdefault(name, []).append(values)

    index = np.array([window.index for window in path.windows] if path is not None else [], np.int64)
    for number, (one, of_log) in enumerate(zip(placed, gaps, strict=True)):
        n = len(one.log)
        codes = np.array([requests.setdefault(name, len(requests)) for name in one.log.requests], np.int64)
        gap, part = np.full(n, -1, np.int64), np.full((n, of_log.part_ns.shape[1]), -1, np.int64)
        gap[of_log.token], part[of_log.token] = of_log.gap_ns, of_log.part_ns
        mine = one.step != NO_STEP
        window = np.full(n, -1, np.int64)
        window[mine] = index[one.step[mine]]
        add("log", np.full(n, number, np.int32))
        add("request", codes[one.log.request].astype(np.int32))
        add("token", one.log.token)
        add("window", window)
        for name in INSTANTS:
            values = getattr(one.way, name)
            add(name, np.where(values == ABSENT, NO_EVENT, values))
        buffering = one.way.stages()["buffering"]
        add("buffering_ns", np.where(buffering == ABSENT, -1, buffering))
        add("gap_ns", gap)
        add("part_ns", part)
    joined: dict[str, Any] = {name: np.concatenate(parts) for name, parts in columns.items()}
    return TokenTable(
        **joined,
        logs=tuple(one.log.path for one in placed),
        requests=tuple(requests),
        zero_ns=tuple(one.zero_ns for one in placed),
    )
