"""What token logs add to a diagnosis: the service's figures and its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from analyzer.across.split import take
from analyzer.diagnosis import Hypothesis, Rank, Service, Unmeasured
from analyzer.errors import UsageError
from analyzer.explain.ranks.joint_report import JointReport
from analyzer.explain.service.device_path import DevicePath, device_path
from analyzer.explain.service.result import service_account, unmeasured
from analyzer.explain.service.verdict import with_service
from analyzer.model import QualityEntry
from analyzer.reconstruct.rank import HOST
from analyzer.tables import SegmentTable, TokenTable
from analyzer.tokens import TokenLog

CLIENT = "client"
"""The boundary at which a step ends when the client has its output."""


@dataclass(frozen=True)
class AfterDevice:
    """What the diagnosis takes from the token logs, or says of their absence."""

    result: Service | None = None
    tokens: TokenTable | None = None
    unmeasured: list[Unmeasured] = field(default_factory=list)
    quality: list[QualityEntry] = field(default_factory=list)

    def hypotheses(
        self, rows: list[Hypothesis], limits: Mapping[str, float], distorted: str
    ) -> list[Hypothesis]:
        """The hypotheses with what the logs tell of them. ``distorted``: why absolute verdicts are weakened, or ""."""
        return rows if self.result is None else with_service(rows, self.result, limits, distorted)


def check(boundary: str, logs: Sequence[str | Path], clocks: Mapping[str, str]) -> None:
    """Raises UsageError for the client boundary, or for clocks, without a token log."""
    if clocks and not logs:
        raise UsageError(
            "--token-clock",
            "",
            "there is no token log whose clocks it could name",
            "give one with --token-log FILE",
        )
    if boundary == CLIENT and not logs:
        raise UsageError(
            "--boundary",
            CLIENT,
            "needs to know when the client had each token",
            "give a token log with `--token-log FILE`; `tracebound collect client` writes one",
        )


def of(
    logs: Sequence[TokenLog],
    joint: JointReport,
    focus: int,
    zero_ns: int | None,
    boundary: str,
    clocks: Mapping[str, str],
) -> AfterDevice:
    """Join the logs with the steps. Raises UsageError where the client boundary is asked for and nothing joins."""
    if not logs:
        return AfterDevice(unmeasured=unmeasured(None))
    path, why = _path_of(joint, [report.rank for report in joint.reports], focus, zero_ns, boundary)
    account = service_account(logs, path, why, clocks)
    if boundary == CLIENT and not account.result.budget:
        reasons = "; ".join(dict.fromkeys(log.why_not_joined for log in account.result.logs))
        raise UsageError(
            "--boundary",
            CLIENT,
            f"no token is joined with a step: {reasons or 'fewer than two steps have a token'}",
            "see docs/service.md; --token-clock names the clocks, --boundary device needs none of it",
        )
    return AfterDevice(
        account.result,
        account.tokens,
        unmeasured(account.result),
        [entry for log in logs for entry in log.quality],
    )


def _path_of(
    joint: JointReport, ranks: Sequence[Rank], focus: int, zero_ns: int | None, boundary: str
) -> tuple[DevicePath | None, str]:
    """The path, or None and why there is none."""
    by_rank = {rank.rank: rank for rank in ranks}
    if boundary == HOST:
        return None, "the steps of this report end on the host; use --boundary client or device"
    path, why = _any_path(joint, by_rank, focus, zero_ns)
    if path is not None and len(path.windows) < 2:
        return None, "fewer than two steps are explained: which one a token is from cannot be told"
    return path, why


def _any_path(
    joint: JointReport, by_rank: Mapping[int, Rank], focus: int, zero_ns: int | None
) -> tuple[DevicePath | None, str]:
    if joint.paths is not None:
        account = joint.paths.account
        host = by_rank[account.reference_rank].host
        return device_path("global", None, host, zero_ns, account.windows, joint.paths.segments), ""
    if not any(not window.empty for window in by_rank[focus].windows):
        return None, "the capture holds no step with device work"
    rank = by_rank[focus]
    path = device_path("rank", focus, rank.host, zero_ns, rank.windows, _of_rank(joint.segments, focus))
    busy = sum(any(not window.empty for window in one.windows) for one in by_rank.values())
    if busy > 1:
        path = replace(
            path, one_of=f"{busy} ranks have steps and no path leads through all ({joint.why_no_path})"
        )
    return path, ""


def _of_rank(segments: SegmentTable, rank: int) -> SegmentTable:
    return take(segments, np.flatnonzero(segments.rank == rank))
