"""SCALING.md: how the step time goes with the ranks, what of it does not shrink, and what nobody can tell."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from analyzer.apportion import largest_remainder
from analyzer.report.escape import cell, code, prose
from analyzer.report.labels import BOUNDARY_WORDS
from analyzer.report.markdown import environment
from analyzer.report.numbers import fixed, share
from analyzer.report.scaling_against import against_answer, against_table
from analyzer.report.scaling_words import interval_ms, ms, of_ranks, ratio_interval, sentence, share_interval
from analyzer.report.tables import table
from analyzer.scaling.result import Scaling, ScalingFit, ScalingPoint, ScalingRun

if TYPE_CHECKING:
    from analyzer.report.figures import FigureLink, NotDrawn

TEMPLATE = "SCALING.md.jinja"
BEHAVIOUR_WORDS = {
    "grows": "**grows with the ranks**",
    "spreads": "shrinks with the ranks",
    "not told": "P not told from 0",
}


def render_scaling(
    scaling: Scaling, figures: Sequence[FigureLink] = (), not_drawn: Sequence[NotDrawn] = ()
) -> str:
    """The report as Markdown: the same text for the same study."""
    return (
        environment()
        .get_template(TEMPLATE)
        .render(
            version=prose(scaling.tracebound_version),
            answer=_answer(scaling),
            cautions=_cautions(scaling),
            against="" if scaling.against is None else against_table(scaling.against),
            against_answer=[] if scaling.against is None else against_answer(scaling.against),
            points=_points(scaling.points),
            points_note=_points_note(scaling),
            figures=[(prose(link.title), prose(link.alt_text), link.path) for link in figures],
            fit=_fit(scaling),
            categories=_categories(scaling),
            categories_note=_categories_note(scaling),
            limits=_limits(scaling.fit, scaling.points),
            runs=_runs(scaling),
            differing=_differing(scaling),
            unknown=_unknown(scaling),
            not_drawn=[(code(one.name), prose(one.why)) for one in not_drawn],
        )
    )


def _answer(scaling: Scaling) -> list[str]:
    first, last = scaling.points[0], scaling.points[-1]
    lines = []
    if last is not first:
        lines.append(
            f"From {of_ranks(first.ranks)} to {last.ranks} the mean step goes from {ms(first.mean_step_ns)} to"
            f" {ms(last.mean_step_ns)} ms: **{last.speedup:.3f}x**{ratio_interval(last.speedup_ci95)},"
            f" efficiency {share(last.efficiency)} (measured)."
        )
    if scaling.fit is None:
        return [*lines, f"**No fit**: {prose(scaling.fit_because)}."]
    return [*lines, _fit_answer(scaling.fit)]


def _fit_answer(fit: ScalingFit) -> str:
    split = (
        f"Fit of `S + P / N`: **S {ms(fit.serial_ns)} ms**{interval_ms(fit.serial_ci95_ns)}, P {ms(fit.parallel_ns)} ms"
        f"{interval_ms(fit.parallel_ci95_ns)}"
    )
    if fit.serial_share is None:
        return f"{split}: **no serial share**, as a part of it is negative."
    text = f"{split}: serial share **{share(fit.serial_share, 2)}**{share_interval(fit.serial_share_ci95)}."
    if fit.growing_ns > 0:
        text += (
            f" Of S, {ms(fit.growing_ns)} ms are added by what grows with the ranks: a price of the ranks, no serial"
            " time of the program."
        )
    if fit.growing_ns > 0 and fit.own_serial_share is not None:
        text += f" Without it the serial share is {share(fit.own_serial_share, 2)}."
    return text


def _cautions(scaling: Scaling) -> list[str]:
    found = [_unlike(run) for run in scaling.runs if run.unlike]
    if scaling.undeclared:
        names = ", ".join(map(prose, scaling.undeclared))
        found.append(f"Undeclared in some run, so that nothing says whether it agrees: {names}.")
    if scaling.fit is not None:
        found += [prose(sentence(one)) for one in scaling.fit.cautions]
    return [*found, *(prose(note) for note in scaling.notes)]


def _unlike(run: ScalingRun) -> str:
    done = "it is in the fit because that was asked for" if run.used else "it is left out"
    pins = ", ".join(map(prose, run.unlike))
    return f"✻ {code(run.name, 60)} is unlike the others ({pins}): {done}."


def _points(points: Sequence[ScalingPoint]) -> str:
    header = [
        "Ranks",
        "Runs",
        "Mean step, ms",
        "95 % interval, ms",
        "Fitted, ms",
        "Speedup",
        "95 % interval",
        "Efficiency",
        "Than before",
    ]
    return table(header, [_point(point) for point in points], left=())


def _point(point: ScalingPoint) -> list[str]:
    return [
        str(point.ranks),
        str(point.runs),
        ms(point.mean_step_ns),
        interval_ms(point.ci95_ns, bare=True),
        "-" if point.fitted_ns is None else ms(point.fitted_ns),
        f"{point.speedup:.3f}x",
        ratio_interval(point.speedup_ci95, bare=True),
        share(point.efficiency),
        point.than_before or "-",
    ]


def _points_note(scaling: Scaling) -> str:
    first = scaling.points[0]
    text = f"Speedup and efficiency are measured, against {of_ranks(first.ranks)}."
    once = [point.ranks for point in scaling.points if point.runs == 1 and point.ci95_ns is not None]
    if once:
        text += (
            " Where one run stands for a count, its intervals are those of that capture's steps: how runs of one"
            " program differ is not in them."
        )
    if scaling.stops_improving_at is None:
        return f"{text} Where more ranks stop helping is not known: {prose(scaling.stops_because)}."
    return (
        f"{text} **The step stops getting shorter at {of_ranks(scaling.stops_improving_at)}**: every larger count that"
        " was measured is at most 1 % faster."
    )


def _fit(scaling: Scaling) -> str:
    fit = scaling.fit
    if fit is None:
        return f"None: {prose(scaling.fit_because)}."
    rows = [
        ["S, ms", ms(fit.serial_ns), interval_ms(fit.serial_ci95_ns, bare=True)],
        ["P, ms", ms(fit.parallel_ns), interval_ms(fit.parallel_ci95_ns, bare=True)],
        [
            "S / (S + P)",
            "none" if fit.serial_share is None else share(fit.serial_share, 2),
            share_interval(fit.serial_share_ci95, bare=True),
        ],
        [
            "of S, added by what grows with the ranks, ms",
            ms(fit.growing_ns) if fit.growing_ns > 0 else "none shown to grow",
            "-",
        ],
    ]
    if fit.rms_residual_ns is not None:
        rows.append(["root mean square of the residuals, ms", ms(fit.rms_residual_ns), "-"])
    return "\n\n".join([table(["", "Value", "95 % interval"], rows), _method(scaling, fit)])


def _method(scaling: Scaling, fit: ScalingFit) -> str:
    if fit.residuals_ns is None:
        return "Exact through two runs: there is no residual that could speak against it."
    used = [run for run in scaling.runs if run.used]
    told = ", ".join(
        f"{one / 1e6:+.3f} at {run.ranks}" for run, one in zip(used, fit.residuals_ns, strict=True)
    )
    scatter = (
        "" if fit.misfit_p is None else f" As large from the steps' noise alone: p = {fit.misfit_p:.2g}."
    )
    return f"Least squares through {len(used)} runs. Residuals, measured less fitted, ms: {told}.{scatter}"


def _categories(scaling: Scaling) -> str:
    if scaling.fit is None or not scaling.categories:
        return ""
    counts = sorted(scaling.categories[0].mean_ns)
    columns = [_units([one.mean_ns[ranks] for one in scaling.categories]) for ranks in counts]
    serial = _units([one.serial_ns for one in scaling.categories])
    parallel = _units([one.parallel_ns for one in scaling.categories])
    rows = [
        [
            one.category,
            *(fixed(column[at], 3) for column in columns),
            fixed(serial[at], 3),
            fixed(parallel[at], 3),
            BEHAVIOUR_WORDS[one.behaviour],
        ]
        for at, one in enumerate(scaling.categories)
    ]
    sums = [fixed(sum(column), 3) for column in (*columns, serial, parallel)]
    rows.append(["**sum**", *sums, ""])
    header = ["What bounds the step", *(f"N = {ranks}" for ranks in counts), "S", "P", "With the ranks"]
    return table(header, rows, left=(0, len(header) - 1))


def _units(values_ns: Sequence[float]) -> list[int]:
    """In whole us, so that what is shown sums to the rounded sum."""
    return largest_remainder([Fraction(value) / 1_000 for value in values_ns])


def _categories_note(scaling: Scaling) -> str:
    growing = [one for one in scaling.categories if one.behaviour == "grows"]
    if not growing:
        return ""
    names = ", ".join(f"`{one.category}`" for one in growing)
    return (
        f"P below 0 beyond chance: {names}. There S is what the category grows towards as ranks are added, and -P what"
        " they add to what one rank spends."
    )


def _limits(fit: ScalingFit | None, points: Sequence[ScalingPoint]) -> str:
    if fit is None or fit.limit_speedup is None:
        return ""
    rows = [
        ["Step with ranks without end, ms", ms(fit.serial_ns), "model"],
        ["Speedup over one rank then, (S + P) / S", f"{fit.limit_speedup:.3f}x", "model"],
    ]
    text = (
        f"Right only if `S + P / N` holds beyond {of_ranks(points[-1].ranks)}, which nothing here shows; what grows"
        " with the ranks makes it worse."
    )
    return "\n\n".join([table(["", "Value", "Kind"], rows), text])


def _runs(scaling: Scaling) -> str:
    header = [
        "Run",
        "Ranks",
        "Captured",
        "Phase",
        "Steps of",
        "Steps",
        "Left out",
        "Mean step, ms",
        "In the fit",
    ]
    return table(header, [_run(run) for run in scaling.runs], left=(0, 3, 4))


def _run(run: ScalingRun) -> list[str]:
    mark = "✻ " if run.unlike else ""
    return [
        mark + cell(run.name, 50),
        f"{run.ranks}{' (declared)' if run.ranks_from == 'declared' else ''}",
        str(run.ranks_captured),
        cell(run.phase, 40),
        "all ranks" if run.rank is None else f"rank {run.rank}",
        f"{run.steps:,}",
        f"{run.steps_excluded:,}",
        ms(run.mean_step_ns),
        "yes" if run.used else "no",
    ]


def _differing(scaling: Scaling) -> str:
    if not scaling.differing:
        return ""
    header = ["Pin", *(of_ranks(run.ranks) for run in scaling.runs)]
    rows = [
        [name, *(cell(value, 44) if value else "undeclared" for value in values)]
        for name, values in scaling.differing.items()
    ]
    return table(header, rows, left=tuple(range(len(header))))


def _unknown(scaling: Scaling) -> list[str]:
    boundaries = sorted({run.boundary for run in scaling.runs})
    lines = [f"Boundary, {prose(BOUNDARY_WORDS.get(name, name))}." for name in boundaries]
    if scaling.fit is not None and not scaling.fit.between_runs:
        lines.append(
            "**How much runs differ from one another**: the intervals are of the steps of these captures. Repeat each"
            " rank count to see."
        )
    lines.append(
        "**Why a category grows or stays**: the diagnosis of each run says what bounds its step; a smaller share of the"
        " work per rank also changes kernel shapes and what the caches hold."
    )
    return lines


def terminal_lines(scaling: Scaling) -> list[str]:
    """The answer for a terminal."""
    lines = [*_answer(scaling), *([] if scaling.against is None else against_answer(scaling.against))]
    marked = [_unlike(run) for run in scaling.runs if run.unlike]
    return [line.replace("**", "").replace("`", "") for line in [*lines, *marked]]
