"""Text in figures: names are data, every glyph exists, and what is written fits its place.

DejaVu Sans ships with matplotlib, so widths are the same everywhere. Characters that it has no glyph for
are spelled out like invisible ones (``⟨U+6F22⟩``), and so are combining marks.
"""

from __future__ import annotations

import unicodedata
from functools import cache, lru_cache

from analyzer.diagnosis import Budget, Diagnosis
from analyzer.report.escape import visible
from analyzer.report.labels import BOUNDARY_WORDS

FAMILY = "DejaVu Sans"
POINTS_PER_INCH = 72
_MARKS = frozenset({"Mn", "Me", "Mc"})
_REFERENCE_POINTS = 10
_LOOKED_AT = 400
"""A name is shortened to less than this, so no character beyond it is looked at."""


@cache
def _glyphs() -> frozenset[int]:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(get_font(findfont(FontProperties(family=FAMILY))).get_charmap())


@lru_cache(maxsize=4096)
def _needs_spelling(char: str) -> bool:
    return ord(char) not in _glyphs() or unicodedata.category(char) in _MARKS or _right_to_left(char)


def _right_to_left(char: str) -> bool:
    return unicodedata.bidirectional(char) in {"R", "AL", "AN"}


def whose(budget: Budget) -> str:
    """Whose steps a budget is of."""
    return "all ranks" if budget.rank is None else f"rank {budget.rank}"


def shown(text: str, limit: int = 90) -> str:
    """``text`` on one line as at most ``limit`` characters that the font has; long ones end in a digest."""
    ends = text if len(text) <= 2 * _LOOKED_AT else text[:_LOOKED_AT] + text[-_LOOKED_AT:]
    also = "".join(sorted({char for char in ends if _needs_spelling(char)}))
    return visible(text, limit, also)


@lru_cache(maxsize=4096)
def _advance(char: str) -> float:
    """Width of one character in em."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    prop = FontProperties(family=FAMILY, size=_REFERENCE_POINTS)
    # between two bars, since the outline of a blank has no extent
    with_char, without = (TextPath((0, 0), f"|{inner}|", prop=prop) for inner in (char, ""))
    return float(with_char.get_extents().width - without.get_extents().width) / _REFERENCE_POINTS


def width_in(text: str, points: float) -> float:
    """Width of one line in inches."""
    return sum(map(_advance, text)) * points / POINTS_PER_INCH


def fitted(text: str, points: float, room_in: float) -> str:
    """The beginning of ``text`` that fits, with an ellipsis where it is cut; empty where nothing fits."""
    if width_in(text, points) <= room_in:
        return text
    room = room_in - width_in("…", points)
    used, taken = 0.0, []
    for char in text:
        used += _advance(char) * points / POINTS_PER_INCH
        if used > room:
            break
        taken.append(char)
    return "".join(taken).rstrip() + "…" if taken else ""


def middle_fitted(name: str, points: float, room_in: float, most: int = 120) -> str:
    """``name`` as it fits, shortened in the middle with a digest, so that two long names stay two."""
    for limit in range(most, 20, -6):
        text = shown(name, limit)
        if width_in(text, points) <= room_in:
            return text
    return fitted(shown(name, 20), points, room_in)


def wrapped(text: str, points: float, room_in: float) -> list[str]:
    """``text`` in lines of at most ``room_in`` inches, broken at blanks; one long word is cut."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_in(longer, points) <= room_in:
            lines[-1] = longer
        else:
            lines.append(fitted(word, points, room_in))
    return lines


def boundary_text(diagnosis: Diagnosis) -> str:
    """Where a step that is drawn ends, in two words."""
    return BOUNDARY_WORDS.get(diagnosis.step_boundary, diagnosis.step_boundary).partition(":")[0]
