"""What SCALING.md says of two studies: absolute times and scaling, both, also where they go opposite ways."""

from __future__ import annotations

from analyzer.report.escape import code, prose
from analyzer.report.numbers import share
from analyzer.report.scaling_words import ms, of_ranks, ratio_interval, share_interval
from analyzer.report.tables import table
from analyzer.scaling.result import Against, CommonCount

_ABSOLUTE = {"better": "shorter", "worse": "longer", "not told": "not told apart"}
_SCALING = {
    "better": "**scaling got better**",
    "worse": "**scaling got worse**",
    "not told": "the difference is within chance",
}


def against_answer(against: Against) -> list[str]:
    """Both facts in sentences."""
    if not against.common:
        return [f"{code(against.other, 60)} has no rank count in common with this study."]
    lines = [_absolute(against.common[-1])]
    if against.speedup_this is not None and against.speedup_other is not None:
        lines.append(
            f"From {of_ranks(against.fewest or 0)} to {against.most} the speedup goes from"
            f" {against.speedup_other:.3f}x{ratio_interval(against.speedup_other_ci95)} to"
            f" {against.speedup_this:.3f}x{ratio_interval(against.speedup_this_ci95)}:"
            f" {_SCALING[against.speedup_change]}"
            f"{_shares(against)}."
        )
    if opposite(against):
        lines.append(
            "Absolute performance improved while scaling got worse: what the change made faster is work that the ranks"
            " share. Judge it by the step times."
        )
    return [*lines, *(f"Pinned otherwise: {prose(one)}." for one in against.differences)]


def opposite(against: Against) -> bool:
    """Whether steps got shorter at every common count while scaling got worse."""
    return against.speedup_change == "worse" and all(one.change == "better" for one in against.common)


def _absolute(one: CommonCount) -> str:
    return (
        f"At {of_ranks(one.ranks)} the mean step goes from {ms(one.other_ns)} to {ms(one.this_ns)} ms:"
        f" **{one.ratio:.3f}x**{ratio_interval(one.ratio_ci95)}, {_ABSOLUTE[one.change]}."
    )


def _shares(against: Against) -> str:
    this, other = against.serial_share_this, against.serial_share_other
    if this is None or other is None:
        return ""
    return (
        f"; the fitted serial share goes from {share(other, 2)}{share_interval(against.serial_share_other_ci95)} to"
        f" {share(this, 2)}{share_interval(against.serial_share_this_ci95)}"
    )


def against_table(against: Against) -> str:
    """Every common rank count."""
    rows = [
        [
            str(one.ranks),
            ms(one.other_ns),
            ms(one.this_ns),
            f"{one.ratio:.3f}x",
            ratio_interval(one.ratio_ci95, bare=True),
            _ABSOLUTE[one.change],
        ]
        for one in against.common
    ]
    if not rows:
        return "Nothing to hold against one another."
    return table(["Ranks", "Earlier, ms", "Now, ms", "Ratio", "95 % interval", "Step"], rows, left=(5,))
