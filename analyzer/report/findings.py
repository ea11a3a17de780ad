"""The verdicts: at most three findings at the top, all hypotheses in the appendix."""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.diagnosis import Diagnosis, HostCulprit, Hypothesis, Kernel, Measured
from analyzer.explain.focus import leading_budgets
from analyzer.report import whole_capture
from analyzer.report.escape import code, prose
from analyzer.report.numbers import count, ms, percent, plain, share
from analyzer.report.predictions import against
from analyzer.report.ranks import late_rank_sentence

FINDINGS_SHOWN = 3
SUSPECTS_SHOWN = 3
PHASES_NAMED = 5
OPEN_SHOWN = 2
CPU_CATEGORIES = {
    "launch-bound": ("launch.dispatch", "launch.api"),
    "host-bound": ("host.framework", "host.untraced", "host.api", "host.wait"),
    "synchronization": ("host.sync_return",),
    "output-path": ("host.output",),
}
"""Whose records a reader looks at first."""
TO_CLIENT = ("host.output", "service.output", "service.transport", "service.buffering")
KINDS_OF_WORK = {
    "kernel-bound": ("kernel", "graph"),
    "small-grids": ("kernel",),
    "copies": ("copy", "set"),
}


@dataclass(frozen=True)
class Finding:
    """One supported hypothesis as the template lays it out."""

    title: str
    claim: str
    lines: list[tuple[str, str]]


def supported(diagnosis: Diagnosis) -> list[Hypothesis]:
    """Supported hypotheses, those that cover the most time of the capture first."""
    client = diagnosis.service.budget if diagnosis.service is not None else []
    steps = {(row.phase, row.scope, row.rank): row.step_ns_total for row in [*diagnosis.budget, *client]}

    def covered(row: Hypothesis) -> float:
        weight = steps.get(_budget_key(row), 0)
        return row.share.value * weight if row.share else 0.0

    rows = [row for row in diagnosis.hypotheses if row.verdict == "supported"]
    return sorted(rows, key=lambda row: -covered(row))


def _budget_key(row: Hypothesis) -> tuple[str, str, int | None]:
    """Which budget a hypothesis is a part of: that of all ranks has no rank of its own."""
    return row.phase, row.scope, None if row.scope == "global" else row.rank


def by_explanation(diagnosis: Diagnosis) -> list[list[Hypothesis]]:
    """The supported hypotheses, those of one id together: the phase where it covers the most time first."""
    groups: dict[str, list[Hypothesis]] = {}
    for row in supported(diagnosis):
        groups.setdefault(row.id, []).append(row)
    return list(groups.values())


def findings(diagnosis: Diagnosis) -> list[Finding]:
    """The first few supported explanations."""
    return [_finding(diagnosis, rows) for rows in by_explanation(diagnosis)[:FINDINGS_SHOWN]]


def no_finding(diagnosis: Diagnosis) -> str:
    """Why there is no finding, with the nearest candidate."""
    if not diagnosis.hypotheses:
        return "None: no hypothesis was tested."
    open_rows = [row for row in diagnosis.hypotheses if row.verdict == "inconclusive" and row.share]
    if not open_rows:
        return "None: the evidence supports no explanation, and none is left open by a measured share."
    best = max(open_rows, key=lambda row: row.share.interval[1] if row.share else 0.0)
    return (
        f"None: no explanation is supported. The largest one left open is {code(best.id)} in"
        f" {_where(best)}, {share_text(best)} of {whose_step(diagnosis, best)}."
    )


def left_open(diagnosis: Diagnosis) -> list[str]:
    """Explanations that could hold much of the step but are not supported: what decides, and where to look."""
    limit = diagnosis.constants.thresholds.get("supported_share", 1.0)
    rows = [
        row
        for row in diagnosis.hypotheses
        if row.verdict == "inconclusive" and row.share is not None and row.share.interval[1] >= limit
    ]
    rows.sort(key=lambda row: -(row.share.interval[1] if row.share else 0.0))
    first: dict[str, Hypothesis] = {}
    for row in rows:
        first.setdefault(row.id, row)
    return [
        f"**Open**: {code(row.id)}, {share_text(row)} of {whose_step(diagnosis, row)}, {_where(row)}."
        f" {prose(row.claim)} To decide: {prose(row.discriminating_check)}. Longest: {_evidence(row)}."
        for row in list(first.values())[:OPEN_SHOWN]
        if row.evidence
    ]


def unsplit_collectives(diagnosis: Diagnosis) -> list[str]:
    """Leading phases of which collectives hold much that could not be told apart, and why."""
    limit = diagnosis.constants.thresholds.get("supported_share", 1.0)
    lines = []
    for budget in leading_budgets(diagnosis.budget)[:OPEN_SHOWN]:
        held = budget.path_ns_total.get("collective.unsplit", 0)
        if held >= limit * budget.step_ns_total and held:
            where = "all ranks" if budget.rank is None else f"rank {budget.rank}"
            lines.append(
                f"**Not split**: collectives hold {percent(held, budget.step_ns_total)} of the step in phase"
                f" {code(budget.phase)}, {where}, in which moving data and waiting for a late rank are not told"
                f" apart: {_why_unsplit(diagnosis)}."
            )
    return lines


def _why_unsplit(diagnosis: Diagnosis) -> str:
    """The most frequent reason for which calls were not split."""
    reasons: dict[str, int] = {}
    for row in diagnosis.collectives:
        for reason, calls in row.unsplit.items():
            reasons[reason] = reasons.get(reason, 0) + calls
    return prose(
        min(reasons, key=lambda reason: (-reasons[reason], reason), default="the clocks are too unsure")
    )


def more_supported(diagnosis: Diagnosis) -> str:
    """Which supported explanations stand only in the appendix."""
    left = by_explanation(diagnosis)[FINDINGS_SHOWN:]
    if not left:
        return ""
    names = ", ".join(f"{code(rows[0].id)} ({share(rows[0].share.value)})" for rows in left if rows[0].share)
    return f"Supported too, see all hypotheses below: {names}."


def _where(row: Hypothesis) -> str:
    rank = "" if row.rank is None else f", rank {row.rank}"
    if row.scope == "client":
        rank = ", to the client's receipt"
    if row.scope == "global":
        rank = ", all ranks" + ("" if row.rank is None else f", most of it on rank {row.rank}")
    return f"phase {code(row.phase)}{rank}"


def whose_step(diagnosis: Diagnosis, row: Hypothesis) -> str:
    """What a share is of: the whole capture where it has no steps; steps at the client stand beside the device's."""
    if row.phase == whole_capture.PHASE:
        return "the capture"
    if row.scope == "client":
        return "the client's step"
    return "the device's step" if diagnosis.boundary == "client" else "the step"


def share_text(row: Hypothesis) -> str:
    """``62.0 % (55.1 to 66.0 %)``."""
    if row.share is None:
        return "-"
    low, high = row.share.interval
    return f"{share(row.share.value)} ({share(low)[:-2]} to {share(high)})"


def value_text(row: Hypothesis) -> str:
    """The number alone, in milliseconds where it is a time."""
    measured = row.measured
    if measured is None:
        return "-"
    unit, _, rest = measured.unit.partition(" ")
    rest = whole_capture.per(row.phase) if rest == "per step" else rest
    if unit == "ns" and measured.value.is_integer():
        return f"{ms(int(measured.value))} ms {prose(rest)}".rstrip()
    return f"{plain(measured.value)} {prose(measured.unit)}".rstrip()


def gain_text(row: Hypothesis) -> str:
    """The bound on what one change could give."""
    if row.gain_upper_bound_ns is None:
        return "-"
    return f"at most {ms(row.gain_upper_bound_ns)} ms {whole_capture.per(row.phase)}"


def _finding(diagnosis: Diagnosis, rows: list[Hypothesis]) -> Finding:
    """One explanation: its leading phase in full, the others by share."""
    row = rows[0]
    note = f" {sentence(row.verdict_note)}" if row.verdict_note else ""
    lines = [
        ("Measured", _measured_of_step(diagnosis, row)),
        ("At most", _bound(row)),
        ("Predicted", _predicted(diagnosis, row)),
        ("Look first", look_first(diagnosis, row)),
        ("One change", " ".join(filter(None, (sentence(row.intervention), sentence(row.undo))))),
        ("Check", f"{sentence(row.discriminating_check)} Disproof: {sentence(row.disproof)}"),
        ("Evidence", _evidence(row)),
        ("Concentrated", _concentrated(row)),
        ("Also in", _other_phases(rows[1:])),
        ("Overlaps", _overlaps(row)),
    ]
    return Finding(
        title=f"{code(row.id)}: {share_text(row)} of {whose_step(diagnosis, row)}, {_where(row)}",
        claim=prose(row.claim) + note,
        lines=[(head, text) for head, text in lines if text],
    )


def sentence(text: str) -> str:
    """A text of the catalogue as a sentence of its own; empty stays empty."""
    shown = prose(text).strip()
    if not shown:
        return ""
    return shown[0].upper() + shown[1:] + ("" if shown.endswith((".", "!", "?")) else ".")


def _measured_of_step(diagnosis: Diagnosis, row: Hypothesis) -> str:
    """The number behind the verdict, beside the step that it is a part of."""
    if row.measured is None:
        return "-"
    client = diagnosis.service.budget if diagnosis.service is not None else []
    rows = [*diagnosis.budget, *client]
    budget = next((b for b in rows if (b.phase, b.scope, b.rank) == _budget_key(row)), None)
    of = "" if budget is None else f" of {ms(budget.step_ns_total, max(budget.windows, 1))} ms"
    per = whole_capture.per(row.phase)
    value = value_text(row).removesuffix(f" {per}")
    if not row.measured.unit.endswith("per step"):
        return f"{value} ({row.measured.kind}{_over(row.measured)}): {prose(row.measured.name)}"
    where = f", rank {row.measured.rank}" if row.measured.rank is not None else ""
    steps = "" if row.phase == whole_capture.PHASE else f", mean of {count(row.measured.windows, 'step')}"
    return f"{value}{of} {per} ({row.measured.kind}{where}{steps}): {prose(row.measured.name)}"


def _over(measured: Measured) -> str:
    where = "" if measured.rank is None else f", rank {measured.rank}"
    return f"{where}, over {count(measured.windows, 'step')}"


def _bound(row: Hypothesis) -> str:
    if row.gain_upper_bound_ns is None:
        return "no bound known"
    span = whole_capture.per(row.phase)
    less = f"less {span}" if row.phase == whole_capture.PHASE else f"{span} less"
    return (
        f"{ms(row.gain_upper_bound_ns)} ms {less}: a bound on what any change of it can give, no prediction"
    )


def _predicted(diagnosis: Diagnosis, row: Hypothesis) -> str:
    """The mean step that a replay gives with one change, and what that change is."""
    if row.scope == "client":
        return ""  # what a replay predicts is the step at the device
    for found in diagnosis.whatif.changes if diagnosis.whatif is not None else ():
        if row.id in found.hypotheses and found.phase == row.phase and found.predicted_step_ns is not None:
            low, high = found.predicted_step_ns
            change = against(found.predicted_step_ns, found.step_ns or 0)
            told = f"{ms(low)} to {ms(high)} ms per step with {code(found.change)}"
            return f"{told} ({change}; a model, to be tested by it)"
    return ""


def look_first(diagnosis: Diagnosis, row: Hypothesis) -> str:
    """What to look at first: the largest culprit on the CPU, or the kernels with the most time on the path."""
    if row.scope == "client":
        return _parts_to_client(diagnosis, row)
    if row.id in CPU_CATEGORIES:
        return _cpu_suspects(diagnosis, row)
    if row.id in KINDS_OF_WORK:
        return _kernel_suspects(diagnosis, row)
    if row.id == "collective-late-rank":
        return " ".join(late_rank_sentence(late) for late in diagnosis.late_ranks[:SUSPECTS_SHOWN])
    return ""


def _parts_to_client(diagnosis: Diagnosis, row: Hypothesis) -> str:
    """What the way to the client is made of, the longest part first."""
    client = diagnosis.service.budget if diagnosis.service is not None else []
    budget = next((one for one in client if one.phase == row.phase), None)
    parts = {} if budget is None else budget.path_ns_total
    mine = sorted((-parts[name], name) for name in TO_CLIENT if parts.get(name))
    return ", ".join(f"{name} {ms(-ns, budget.windows if budget else 1)} ms per step" for ns, name in mine)


def _cpu_suspects(diagnosis: Diagnosis, row: Hypothesis) -> str:
    """What the CPU did in this explanation's own categories: the longest records."""
    rows = [
        culprit
        for culprit in diagnosis.host_culprits
        if (culprit.rank, culprit.phase) == (row.rank, row.phase)
        and culprit.category in CPU_CATEGORIES[row.id]
    ]
    rows.sort(key=lambda culprit: (-culprit.path_ns, culprit.name))
    return ", ".join(_cpu_suspect(culprit) for culprit in rows[:SUSPECTS_SHOWN])


def _cpu_suspect(culprit: HostCulprit) -> str:
    outer = [part for part in culprit.stack if part != culprit.name][-1:]
    inside = f" in {code(outer[0], 44)}" if outer else ""
    when = f", in {culprit.windows_with:,} of {count(culprit.windows, 'step')}"
    span = whole_capture.per(culprit.phase) + ("" if culprit.phase == whole_capture.PHASE else when)
    return f"{code(culprit.name, 56)}{inside} ({ms(culprit.path_ns, max(culprit.windows, 1))} ms {span})"


def _kernel_suspects(diagnosis: Diagnosis, row: Hypothesis) -> str:
    """Work of that rank with the most time on the path; for small grids only kernels that are small."""
    limit = diagnosis.constants.thresholds.get("small_grid_coverage", 0.0)
    kernels = [
        kernel
        for kernel in diagnosis.kernels
        if kernel.rank == row.rank and kernel.path_ns and kernel.kind in KINDS_OF_WORK[row.id]
        and (row.id != "small-grids" or (kernel.coverage is not None and kernel.coverage < limit))
        and not kernel.class_.startswith("collective")
    ]  # fmt: skip
    kernels.sort(key=lambda kernel: (-kernel.path_ns, kernel.name))
    named = ", ".join(_suspect(kernel) for kernel in kernels[:SUSPECTS_SHOWN])
    classes = _classes(diagnosis, row) if row.id == "kernel-bound" else ""
    return f"{classes}; {named}" if classes and named else classes or named


def _classes(diagnosis: Diagnosis, row: Hypothesis) -> str:
    """The classes with the most of the device work on the path, in percent of it."""
    rows = [entry for entry in diagnosis.classes if (entry.rank, entry.phase) == (row.rank, row.phase)]
    rows.sort(key=lambda entry: (-entry.path_ns, entry.class_))
    total = sum(entry.path_ns for entry in rows)
    shown = ", ".join(
        f"{prose(entry.class_)} {percent(entry.path_ns, total)}"
        for entry in rows[:SUSPECTS_SHOWN]
        if entry.path_ns
    )
    return f"by class {shown} of the device work on the path" if shown else ""


def _suspect(kernel: Kernel) -> str:
    grid = "" if kernel.coverage is None else f", its grid covers {share(kernel.coverage)} of the SMs"
    return f"{code(kernel.name, 56)} ({ms(kernel.path_ns)} ms on the path in all{grid})"


def _evidence(row: Hypothesis) -> str:
    """The longest segments behind it, as lines of the table and events of the input."""
    shown = [
        f"line {entry.line:,} (step {entry.window}, {ms(entry.end_ns - entry.start_ns)} ms, {code(entry.event, 44)})"
        for entry in row.evidence
    ]
    return f"{code(f'diagnosis/{row.evidence[0].file}')} {'; '.join(shown)}" if shown else ""


def _concentrated(row: Hypothesis) -> str:
    """Where one segment holds most of the quantity: then it is that one event, not a habit of every step."""
    if not row.evidence or row.measured is None or row.measured.unit != "ns per step":
        return ""
    longest = row.evidence[0].end_ns - row.evidence[0].start_ns
    total = round(row.measured.value * row.measured.windows)
    if not total or longest * 2 < total or longest > total:
        return ""
    return (
        f"one segment of {ms(longest)} ms, the first named as evidence, holds {percent(longest, total)} of all of"
        " it: look at that event before changing the rest"
    )


def _other_phases(rows: list[Hypothesis]) -> str:
    shown = [f"{code(row.phase, 40)} {share(row.share.value)}" for row in rows[:PHASES_NAMED] if row.share]
    left = len(rows) - PHASES_NAMED
    return ", ".join(shown) + (f" and {count(left, 'more phase')}" if left > 0 else "")


def _overlaps(row: Hypothesis) -> str:
    if not row.overlaps_with:
        return ""
    others = ", ".join(code(other) for other in row.overlaps_with)
    return f"its share must not be added to that of {others}"
