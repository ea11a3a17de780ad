"""Fills of everything that is drawn: colour tells the group, hatch tells the member.

The seven group colours lie at least 10 steps of CIE lightness (L*) and 20 of 255 steps of grey (ITU-R BT.601,
what a greyscale conversion keeps) apart, and 25 in CIELAB under normal sight and under full protanopia and
deuteranopia (simulated with the matrices of Machado, Oliveira and Fernandes, 2009). Tests hold every legend to
differences of that kind.
"""

from __future__ import annotations

from typing import NamedTuple

from analyzer.report.labels import PATH_GROUPS


class Fill(NamedTuple):
    """How an area is filled. ``hatch`` is matplotlib's pattern, empty for none."""

    colour: str
    hatch: str = ""

    @property
    def ink(self) -> str:
        """Black or white, whichever reads better on the colour."""
        return "#FFFFFF" if luminance(self.colour) < INK_LIMIT else "#000000"


INK_LIMIT = 0.179
"""Relative luminance at which black and white text have the same contrast (WCAG 2: (Y + 0.05) / 0.05)."""

GROUP_COLOURS = {
    "kernels": "#11378D",
    "collectives": "#9E376D",
    "copies": "#69ADC8",
    "launches": "#C85F2D",
    "device gaps": "#EBEBE9",
    "CPU": "#ECC228",
    "other": "#181918",
}
"""By the groups of the rank table."""

HATCHES = ("", "//", "\\\\", "xx", "--", "||")
"""Straight lines only: matplotlib writes dots and circles into an SVG as half a megabyte of outlines."""
SMALLER = Fill("#FFFFFF", "++")
"""The parts too small to be drawn by themselves."""

PATH_FILLS: dict[str, Fill] = {
    name: Fill(GROUP_COLOURS[group], HATCHES[at])
    for group, members in PATH_GROUPS.items()
    for at, name in enumerate(members)
}

EXPOSURE_FILLS: dict[str, Fill] = {
    "kernel": PATH_FILLS["kernel"],
    "graph.unresolved": PATH_FILLS["graph.unresolved"],
    "prior_work": PATH_FILLS["prior_work"],
    "collective": Fill(GROUP_COLOURS["collectives"]),
    "copy": PATH_FILLS["copy"],
    "idle.host": Fill(GROUP_COLOURS["CPU"]),
    "idle.launch": Fill(GROUP_COLOURS["launches"]),
    "idle.dependency": Fill(GROUP_COLOURS["device gaps"]),
    "idle.unlinked": Fill(GROUP_COLOURS["other"]),
    "idle.profiler": Fill(GROUP_COLOURS["other"], "//"),
    "idle.after_last": Fill(GROUP_COLOURS["device gaps"], "xx"),
}

FAMILY_COLOURS = {
    "gemm, conv, moe": GROUP_COLOURS["kernels"],
    "attention, rope, kv cache": "#469358",
    "other kernels": "#C6CC79",
    "collective": GROUP_COLOURS["collectives"],
    "copy, fill": GROUP_COLOURS["copies"],
    "graph, prior work": GROUP_COLOURS["other"],
}
"""Device work by what it does, coarse enough for narrow bars."""

OTHER_KERNELS = "other kernels"
_FAMILY_OF = {
    head: family
    for family, heads in {
        "gemm, conv, moe": ("gemm", "conv", "moe", "linalg"),
        "attention, rope, kv cache": ("attention", "rope", "kv_cache"),
        "collective": ("collective",),
        "copy, fill": ("copy", "fill", "set"),
        "graph, prior work": ("graph", "prior_work"),
    }.items()
    for head in heads
}


def family(class_: str) -> str:
    """The family of a kernel class by the part before its first dot; what is not listed is other kernels."""
    return _FAMILY_OF.get(class_.partition(".")[0], OTHER_KERNELS)


def linear_rgb(colour: str) -> tuple[float, float, float]:
    """``#RRGGBB`` (sRGB) as linear light, 0..1 each (IEC 61966-2-1)."""
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)
    return red, green, blue


def luminance(colour: str) -> float:
    """Relative luminance, 0..1."""
    red, green, blue = linear_rgb(colour)
    return 0.2126729 * red + 0.7151522 * green + 0.0721750 * blue
