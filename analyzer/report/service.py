"""After the device: from device completion to the client's receipt, and what is known of the clocks between."""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.diagnosis import Budget, ClockPair, Diagnosis, Service, Stage, TokenLogRead
from analyzer.explain.focus import leading_budgets
from analyzer.report.escape import code, prose
from analyzer.report.numbers import count, fixed, ms, ms_parts, percent, percent_parts
from analyzer.report.tables import table

LOGS_SHOWN = 6
PHASES_SHOWN = 4
PART_WORDS = {
    "device": "before the token was complete on the device",
    "output": "from completion to the server's emission",
    "transport": "from the emission until it reached the client",
    "buffering": "held for other tokens: emitted together, read together, read late",
    "unsplit": "an instant was not logged, is not on this clock, or the token's step is not told",
}
ASSIGNED_WORDS = {
    "completion": "by the completion that the log has",
    "fit": "by {}, and no other delay fits as well",
    "latest": "by {}, from the last step complete before it: assumed, a delay longer by whole steps fits, too",
}

SOUGHT_BY = {"device completion": "completion", "server emission": "emission", "client receipt": "receipt"}
COARSE_NS = 100_000


@dataclass(frozen=True)
class ServiceView:
    """The section as the template lays it out."""

    intro: str
    gaps: str
    stages: str
    windows: str
    sentences: list[str]


def after_device(diagnosis: Diagnosis) -> ServiceView | None:
    """The section; None without a token log."""
    service = diagnosis.service
    if service is None:
        return None
    return ServiceView(
        _intro(diagnosis, service),
        _gap_table(service),
        _stage_table(service.stages),
        _window_table(diagnosis, service),
        [*_log_lines(service.logs), *_clock_lines(service.clocks)],
    )


def _intro(diagnosis: Diagnosis, service: Service) -> str:
    if not service.gaps:
        return "No two receipts of one request were logged: there is no gap between tokens to explain."
    tokens = sum(log.tokens for log in service.logs)
    requests = sum(log.requests for log in service.logs)
    text = (
        f"The client waits {ms(service.gap_ns_total, service.gaps)} ms between two tokens of a request in the mean"
        f" (median {ms(service.gap_median_ns or 0)}, p95 {ms(service.gap_p95_ns or 0)} ms;"
        f" {count(tokens, 'token')} of {count(requests, 'request')})."
    )
    budgets = leading_budgets(diagnosis.budget)
    if budgets and any(log.joined for log in service.logs):
        step = budgets[0]
        text += (
            f" A step of phase {code(step.phase)} takes {ms(step.step_ns_total, max(step.windows, 1))} ms to device"
            " completion."
        )
    return text


def _gap_table(service: Service) -> str:
    # a part that nothing is attributed to is shown where it may hold a share of the gap that counts
    least = service.gap_ns_total // max(100 * service.gaps, 1)
    parts = [part for part in service.parts if part.total_ns or part.mean_interval_ns[1] > least]
    totals = [part.total_ns for part in parts]
    if not parts:
        return ""
    rows = [
        [
            part.name,
            PART_WORDS[part.name],
            mean,
            f"{ms(part.mean_interval_ns[0])} to {ms(part.mean_interval_ns[1])}",
            ms(part.median_ns),
            ms(part.p95_ns),
            share,
        ]
        for part, mean, share in zip(
            parts, ms_parts(totals, service.gaps), percent_parts(totals), strict=True
        )
    ]
    whole = sum(totals)
    rows.append(["**sum**", "", ms(whole, service.gaps), "", "", "", percent(whole, whole)])
    head = ["Part of the gap", "What it is", "Mean, ms", "95 % of the mean", "Median", "p95", "Share"]
    return table(head, rows, left=(0, 1))


def _stage_table(stages: list[Stage]) -> str:
    rows = [
        [
            stage.name,
            f"{stage.count:,}",
            ms(stage.mean_ns),
            f"{ms(stage.mean_interval_ns[0])} to {ms(stage.mean_interval_ns[1])}",
            ms(stage.median_ns),
            ms(stage.p95_ns),
            _measured(stage),
        ]
        for stage in stages
    ]
    if not rows:
        return ""
    head = ["Stage", "Count", "Mean, ms", "95 % of the mean", "Median", "p95", "Measured"]
    return table(head, rows, left=(0, 6))


def _measured(stage: Stage) -> str:
    if stage.at_least:
        return (
            "at least: longer by whole steps fits as well"
            if stage.name == "output"
            else "at least: how long some were held before their emission is not known"
        )
    return "above the smallest one" if stage.above_smallest else "as a whole"


def _window_table(diagnosis: Diagnosis, service: Service) -> str:
    """Steps to the client beside steps to the device."""
    device = {row.phase: row for row in leading_budgets(diagnosis.budget)}
    rows = [
        _window_row(budget, device.get(budget.phase), service) for budget in service.budget[:PHASES_SHOWN]
    ]
    if not rows:
        return ""
    head = [
        "Phase", "Steps", "To the client, ms", "To the device, ms", "After the device", "Under later steps",
    ]  # fmt: skip
    return table(head, rows, left=(0,))


def _window_row(budget: Budget, device: Budget | None, service: Service) -> list[str]:
    mine = [row for row in service.windows if row.phase == budget.phase]
    used = [row for row in mine if not row.left_out] or mine
    after = sum(row.after_device_ns for row in used)
    under = sum(row.under_later_steps_ns for row in used)
    return [
        code(budget.phase, 40),
        f"{budget.windows:,}",
        ms(budget.step_ns_total, max(budget.windows, 1)),
        "-" if device is None else ms(device.step_ns_total, max(device.windows, 1)),
        percent(after, budget.step_ns_total),
        percent(under, after),
    ]


def _log_lines(logs: list[TokenLogRead]) -> list[str]:
    lines = [_log_line(log) for log in logs[:LOGS_SHOWN]]
    left = len(logs) - LOGS_SHOWN
    return [*lines, *([f"{count(left, 'more log')} in `diagnosis.json`."] if left > 0 else [])]


def _log_line(log: TokenLogRead) -> str:
    head = f"{code(log.path)}: {count(log.tokens, 'token')}"
    if not log.joined:
        return f"{head}, not joined with the steps: {prose(log.why_not_joined)}."
    how = ASSIGNED_WORDS[log.assignment].format(SOUGHT_BY[log.assigned_by])
    text = f"{head}, {log.tokens_joined:,} of them given a step, {how}"
    if log.tokens_outside:
        text += f"; {log.tokens_outside:,} are of steps outside the capture"
    if log.tokens_ambiguous:
        text += f"; {log.tokens_ambiguous:,} could not be given one"
    if log.completion_difference_ns is not None:
        text += (
            "; the log has completions"
            f" {ms(abs(log.completion_difference_ns))} ms {_side(log.completion_difference_ns)}"
            " the capture's in the median, the capture's count"
        )
    for what, resolution in (
        ("emissions", log.emission_resolution_ns),
        ("receipts", log.receipt_resolution_ns),
    ):
        if resolution >= COARSE_NS:
            text += f"; its {what} are logged to {ms(resolution)} ms, what lies within is not told apart"
    return f"{text}."


def _side(difference_ns: int) -> str:
    return "before" if difference_ns < 0 else "after"


def _clock_lines(pairs: list[ClockPair]) -> list[str]:
    return [_clock_line(pair) for pair in pairs[: 2 * LOGS_SHOWN]]


def _clock_line(pair: ClockPair) -> str:
    head = f"From {pair.earlier} to {pair.later}, {code(pair.log, 60)}"
    early = f"; {pair.early:,} of {pair.pairs:,} lie before their cause and count as 0" if pair.early else ""
    if pair.one_clock:
        return f"{head}: one clock, smallest difference {ms(pair.smallest_ns)} ms{early}."
    low, high = pair.interval_ns
    allowed = f"at most {ms(high or 0)} ms" if low is None else f"{ms(low)} to {ms(high or 0)} ms"
    drift = ""
    if pair.drift_ppb:
        allowed += " at the log's begin"
        drift = (
            f" A drift of {fixed(pair.drift_ppb, 3)} ppm (a fit) is taken off, too; up to"
            f" {ms(pair.drift_doubt_ns)} ms of delay may be in it."
        )
    return (
        f"{head}: **clock offset or constant delay, not told apart**: {prose(pair.why_not)}. The smallest difference,"
        f" {ms(pair.smallest_ns)} ms, is attributed to nothing, only what exceeds it is;"
        " the intervals of the gap's parts leave room for it."
        " Causality allows an offset of"
        f" {allowed}.{drift}"
    )
