"""After the device: tokens between device completion, server emission and client receipt."""

from __future__ import annotations

import msgspec

from analyzer.diagnosis.steps import Budget


class TokenLogRead(msgspec.Struct, frozen=True, kw_only=True):
    """One token log and how it was joined with the steps."""

    path: str
    kind: str  # csv | jsonl | parquet | client
    partial: bool
    requests: int
    tokens: int
    device_clock: str | None  # name of the clock of each column, None: nothing tells
    server_clock: str | None
    client_clock: str | None
    emission_resolution_ns: int
    receipt_resolution_ns: int = 1
    joined: bool
    why_not_joined: str
    assignment: str  # completion | fit | latest (assumed) | "" where not joined
    assigned_by: str = "server emission"  # device completion | server emission | client receipt | ""
    tokens_joined: int
    tokens_outside: int  # of steps before or after those of the capture
    # without an instant, between steps, or emitted together with others by steps that nothing tells
    tokens_ambiguous: int
    completion_difference_ns: (
        int | None
    )  # median of the log's completion minus the capture's; None: not logged


class ClockPair(msgspec.Struct, frozen=True, kw_only=True):
    """What the clocks of two columns have to do with one another. The difference is later minus earlier instant."""

    log: str
    earlier: str  # device completion | server emission
    later: str  # server emission | client receipt
    one_clock: bool
    why_not: str
    pairs: int
    smallest_ns: (
        int  # difference; where the clocks are not one: clock offset or constant delay, not attributed
    )
    interval_ns: tuple[int | None, int | None]  # holds the clock offset for certain
    drift_ppb: int  # a fit, taken off
    drift_doubt_ns: int  # so much of a delay the fit may have taken for drift
    early: int  # instants before their cause


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """Time that tokens spent in one stage of their way. Stages of different tokens overlap: never added up."""

    name: str  # output | transport | buffering
    count: int
    mean_ns: int
    mean_interval_ns: tuple[int, int]  # 95 %, over steps or tokens and with the log's resolution
    median_ns: int
    p95_ns: int
    above_smallest: bool  # the smallest one is taken off: clock offset or constant delay
    # output: longer by whole steps fits as well; buffering: some before emissions is unknown
    at_least: bool = False


class GapPart(msgspec.Struct, frozen=True, kw_only=True):
    """One part of the gaps between a request's tokens at the client; totals of all parts sum to that of the gaps."""

    name: str  # device | output | transport | buffering | unsplit
    total_ns: int
    median_ns: int
    p95_ns: int
    mean_interval_ns: tuple[int, int]


class ClientWindow(msgspec.Struct, frozen=True, kw_only=True):
    """One step at the client: from the receipt of the step before to that of its last token.

    ``path_ns`` sums to ``end_ns - start_ns``, which is 0 where its tokens came with those of a step before. ``index``:
    the window of the device boundary.
    """

    index: int
    step: str
    phase: str
    start_ns: int
    end_ns: int
    tokens: int
    warmup: bool
    outlier: bool
    path_ns: dict[str, int]
    inferred_ns: int
    after_device_ns: int  # of the path, after the device was done with the step
    unsplit_ns: int  # of that, not told apart: it stands under unattributed
    under_later_steps_ns: int  # of that, while recorded work of later steps was on the device's path
    recorded_work_ns: (
        int  # of the window: while recorded work of any step, but for output, was on the device's path
    )

    @property
    def left_out(self) -> bool:
        """Whether the phase's mean leaves it out."""
        return self.warmup or self.outlier


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """Token logs joined with the steps of the capture. ``scope`` and ``rank``: whose path leads to the device."""

    scope: str
    rank: int | None
    logs: list[TokenLogRead]
    clocks: list[ClockPair]
    stages: list[Stage]
    gaps: int
    gap_ns_total: int
    gap_median_ns: int | None
    gap_p95_ns: int | None
    parts: list[GapPart]
    windows: list[ClientWindow]
    budget: list[Budget]
