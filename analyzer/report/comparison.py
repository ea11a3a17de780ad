"""COMPARISON.md: whether it was the same work, what differs in time and where, and what nobody can tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from analyzer.apportion import largest_remainder
from analyzer.comparison.result import Comparison, Difference, PhasePair, Side, StepDelta
from analyzer.report import comparison_predictions
from analyzer.report.comparison_changes import changes, changes_intro, replaced
from analyzer.report.comparison_replays import by_graph, by_phase, by_shape
from analyzer.report.escape import cell, code, prose
from analyzer.report.labels import CATEGORY_WORDS
from analyzer.report.markdown import environment
from analyzer.report.numbers import count, fixed, int_ranges, ms, percent, signed_ms
from analyzer.report.tables import table

if TYPE_CHECKING:
    from analyzer.report.figures import FigureLink, NotDrawn

TEMPLATE = "COMPARISON.md.jinja"
DIFFERENCES_SHOWN = 12
PAIRS_SHOWN = 40
_WORDS = {
    "identical": "Identical",
    "equivalent": "Equivalent",
    "different": "Different",
    "unverifiable": "Unverifiable",
}


def render_comparison(
    comparison: Comparison, figures: Sequence[FigureLink] = (), not_drawn: Sequence[NotDrawn] = ()
) -> str:
    """The report as Markdown: the same text for the same comparison."""
    head = comparison.pairs[0]
    return (
        environment()
        .get_template(TEMPLATE)
        .render(
            version=prose(comparison.tracebound_version),
            answer=_answer(comparison),
            cautions=[prose(note) for note in comparison.notes],
            sides=_sides(comparison),
            checks=_differences(comparison.checks, DIFFERENCES_SHOWN),
            same_work=_WORDS[comparison.same_work],
            because=prose(comparison.same_work_because),
            differences=_differences(comparison.differences, DIFFERENCES_SHOWN),
            delta_intro=_delta_intro(comparison),
            delta=_delta(head),
            changes_intro=changes_intro(comparison),
            replaced=replaced(comparison.replaced),
            changes=changes(comparison.changes),
            replays=by_phase(comparison.pairs),
            shapes=by_shape(comparison),
            graphs=by_graph(comparison),
            pairs=_pairs(comparison.pairs) if len(comparison.pairs) > 1 else "",
            unpaired=_unpaired(comparison.unpaired_phases),
            predictions=comparison_predictions.not_tested(comparison),
            tested=comparison_predictions.tested_table(comparison),
            undeclared=", ".join(prose(name) for name in comparison.undeclared) or "nothing",
            figures=[(prose(link.title), prose(link.alt_text), link.path) for link in figures],
            not_drawn=[(code(one.name), prose(one.why)) for one in not_drawn],
        )
    )


def _answer(comparison: Comparison) -> list[str]:
    head = comparison.pairs[0]
    where = f"Phase {code(head.phase_b)}, {_scope(head)}"
    steps = f"{ms(head.a.mean)} ms per step in A, {ms(head.b.mean)} ms in B (means)"
    lines = [f"{where}: {steps}. {difference_text(comparison.step_delta_ns, head.a.mean)}"]
    work = f"**Work: {comparison.same_work}.**"
    if comparison.speedup is None:
        return [*lines, f"{work} {_sentence(comparison.speedup_because)}"]
    ratio = f"A's mean step over B's: **{comparison.speedup:.3f}x**{_ratio_interval(comparison)}."
    if comparison.step_delta_ns.shown:
        return [*lines, f"{work} {ratio}"]
    return [*lines, f"{work} {ratio} {_sentence(comparison.speedup_because)}"]


def _ratio_interval(comparison: Comparison) -> str:
    if comparison.speedup_ci95 is None:
        return ""
    low, high = (_ratio(end) for end in comparison.speedup_ci95)
    return f" (95 % interval {low} to {high})"


def _ratio(end: float) -> str:
    """With as many decimals as show that it is not 1."""
    told = (f"{end:.{decimals}f}" for decimals in range(3, 9))
    return f"{end:.3f}" if end == 1 else next((text for text in told if float(text) != 1), f"{end:.3f}")


def _sentence(text: str) -> str:
    return prose(text[:1].upper() + text[1:]) + "."


def difference_text(delta: StepDelta, mean_a: int) -> str:
    """The difference of the mean steps with its interval, or that none is shown."""
    if delta.ci95 is None:
        return f"**No difference is shown**: {prose(delta.because)}."
    low, high = delta.ci95
    interval = f"95 % interval {signed_ms(low)} to {signed_ms(high)} ms"
    if not delta.shown:
        return f"**No difference is shown**: {interval} includes 0."
    word = "shorter" if delta.mean < 0 else "longer"
    share = f", {percent(abs(delta.mean), mean_a)}" if mean_a else ""
    return f"**B's steps are {word}** by {ms(abs(delta.mean))} ms{share} ({interval})."


def _scope(pair: PhasePair) -> str:
    if pair.rank_a is None:
        return "all ranks together"
    return f"rank {pair.rank_a}" + (f" against rank {pair.rank_b}" if pair.rank_a != pair.rank_b else "")


def _sides(comparison: Comparison) -> str:
    a, b = comparison.a, comparison.b
    rows = [
        ["Files", _files(a), _files(b)],
        ["Kind", *(cell(", ".join(side.kinds)) for side in (a, b))],
        ["Ranks", *(int_ranges(side.ranks) for side in (a, b))],
        ["Phase", *(cell(side.phase, 40) for side in (a, b))],
        ["Boundary", a.boundary, b.boundary],
        ["Steps in the mean", f"{a.step_ns.n:,}", f"{b.step_ns.n:,}"],
        ["Steps left out (warm-up, outliers)", f"{a.warmup_excluded:,}", f"{b.warmup_excluded:,}"],
        ["Mean step, ms", ms(a.step_ns.mean), ms(b.step_ns.mean)],
        ["Median step, ms", ms(a.step_ns.median), ms(b.step_ns.median)],
        [
            "5 % to 95 % of the steps, ms",
            *(f"{ms(one.step_ns.p05)} to {ms(one.step_ns.p95)}" for one in (a, b)),
        ],
    ]
    return table(["", "A", "B"], rows)


def _files(side: Side) -> str:
    first = cell(side.inputs[0], 60) if side.inputs else "none"
    return first if len(side.inputs) < 2 else f"{first} and {len(side.inputs) - 1} more"


def _differences(differences: Sequence[Difference], limit: int) -> str:
    if not differences:
        return ""
    rows = [[cell(one.what, 90), cell(one.a, 44), cell(one.b, 44)] for one in differences[:limit]]
    text = table(["What", "A", "B"], rows, left=(0, 1, 2))
    return text + _more(len(differences), limit)


def _more(number: int, limit: int) -> str:
    return f"\n\n{count(number - limit, 'more row')} in the JSON." if number > limit else ""


def _delta_intro(comparison: Comparison) -> str:
    head = comparison.pairs[0]
    text = (
        f"Mean steps of phase {code(head.phase_b)}, {_scope(head)}, by what bound them. The differences sum to that of"
        " the mean steps."
    )
    if comparison.level == "whole replays":
        text += (
            " Replays were recorded as one row each on at least one side: what left `kernel` may stand in"
            " `graph.unresolved`."
        )
    if comparison.level == "host":
        text += " The steps are host ranges: what the device did after them is not in it."
    return text


def _delta(pair: PhasePair) -> str:
    """Both sides rounded so that what is shown sums; the differences are those of the figures shown."""
    known = (*CATEGORY_WORDS, *pair.delta_ns)
    names = list(dict.fromkeys(name for name in known if pair.a_ns.get(name) or pair.b_ns.get(name)))
    left, right = (_shown_us(side, names) for side in (pair.a_ns, pair.b_ns))
    rows = [
        [name, CATEGORY_WORDS.get(name, ""), fixed(one, 3), fixed(two, 3), _signed(two - one)]
        for name, one, two in zip(names, left, right, strict=True)
    ]
    rows.append(["**sum**", "", fixed(sum(left), 3), fixed(sum(right), 3), _signed(sum(right) - sum(left))])
    header = ["What bounds the step", "In words", "A, ms", "B, ms", "B - A, ms"]
    return table(header, rows, left=(0, 1))


def _shown_us(side: Mapping[str, int], names: Sequence[str]) -> list[int]:
    return largest_remainder([Fraction(side.get(name, 0), 1_000) for name in names])


def _signed(units: int) -> str:
    return f"{'+' if units > 0 else ''}{fixed(units, 3)}"


def _pairs(pairs: Sequence[PhasePair]) -> str:
    rows = [
        [
            cell(pair.phase_b, 40),
            _scope(pair),
            f"{pair.a.n:,} / {pair.b.n:,}",
            ms(pair.a.mean),
            ms(pair.b.mean),
            signed_ms(pair.step_delta_ns.mean),
            "yes" if pair.step_delta_ns.shown else "no",
            pair.work.same_work,
        ]
        for pair in pairs[:PAIRS_SHOWN]
    ]
    header = [
        "Phase",
        "Of",
        "Steps, A / B",
        "A, ms",
        "B, ms",
        "B - A, ms",
        "Difference shown",
        "Launched work",
    ]
    return table(header, rows, left=(0, 1)) + _more(len(pairs), PAIRS_SHOWN)


def _unpaired(phases: Sequence[Difference]) -> str:
    return ", ".join(f"{code(one.a)} in A" if one.b == "none" else f"{code(one.b)} in B" for one in phases)


def terminal_lines(comparison: Comparison) -> list[str]:
    """The answer in two or three lines for a terminal."""
    head = comparison.pairs[0]
    delta = comparison.step_delta_ns
    told = f"step {ms(head.a.mean)} -> {ms(head.b.mean)} ms"
    if delta.ci95 is None:
        told += f": no difference is shown ({delta.because})"
    else:
        interval = f"95 % interval {signed_ms(delta.ci95[0])} to {signed_ms(delta.ci95[1])} ms"
        told += f": {interval}" if delta.shown else f": no difference is shown ({interval})"
    work = f"work: {comparison.same_work}"
    if comparison.speedup is not None:
        work += f"; A's mean step over B's {comparison.speedup:.3f}x{_ratio_interval(comparison)}"
    else:
        work += f"; {comparison.speedup_because}"
    predicted = comparison_predictions.line(comparison)
    return [told, work, *([predicted] if predicted else [])]
