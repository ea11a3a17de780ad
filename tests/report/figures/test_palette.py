"""Colours that stand in one legend can be told apart: in grey, and without red or green cones."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from analyzer.categories import CATEGORY_NAMES, EXPOSURE_NAMES
from analyzer.report.figures import NAMES
from analyzer.report.figures.lane_bars import CALL_FILLS, NESTED_FILLS
from analyzer.report.figures.palette import (
    EXPOSURE_FILLS,
    FAMILY_COLOURS,
    GROUP_COLOURS,
    PATH_FILLS,
    SMALLER,
    Fill,
    family,
    linear_rgb,
    luminance,
)
from analyzer.report.figures.rank_step import LOOKS
from analyzer.report.figures.sheet import drawing
from tests.report.figures.test_layout import INPUTS, OF_ONE_RANK, draft

Matrix = npt.NDArray[np.float64]

# Machado, Oliveira, Fernandes: A Physiologically-based Model for Simulation of Color Vision Deficiency
# (2009), severity 1.0
SIGHT = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE_D65 = np.array([0.95047, 1.0, 1.08883])


def lab(colour: str, sight: Matrix) -> Matrix:
    """CIE 1976 L*a*b* of a colour as that sight sees it."""
    scaled = TO_XYZ @ np.clip(sight @ np.array(linear_rgb(colour)), 0, 1) / WHITE_D65
    x, y, z = np.where(scaled > (6 / 29) ** 3, np.cbrt(scaled), scaled / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def grey(colour: str) -> float:
    """ITU-R BT.601, as image programs and printers convert."""
    return sum(w * int(colour[at : at + 2], 16) for w, at in ((0.299, 1), (0.587, 3), (0.114, 5)))


def too_alike(fills: list[Fill], distance: float, lightness: float, greys: float) -> list[tuple[Fill, Fill]]:
    """Pairs that neither hatch nor colour tells apart."""
    pairs = []
    for a, b in combinations(dict.fromkeys(fills), 2):
        if a.hatch != b.hatch:
            continue
        apart = min(float(np.linalg.norm(lab(a.colour, m) - lab(b.colour, m))) for m in SIGHT.values())
        light = abs(lab(a.colour, SIGHT["normal"])[0] - lab(b.colour, SIGHT["normal"])[0])
        if apart < distance or light < lightness or abs(grey(a.colour) - grey(b.colour)) < greys:
            pairs.append((a, b))
    return pairs


def test_known_values_of_the_simulation() -> None:
    assert lab("#FFFFFF", SIGHT["normal"]) == pytest.approx([100, 0, 0], abs=0.02)
    assert lab("#FF0000", SIGHT["normal"]) == pytest.approx([53.24, 80.09, 67.20], abs=0.05)
    red, green = (lab(colour, SIGHT["deuteranopia"]) for colour in ("#B04040", "#5A7A30"))
    assert np.linalg.norm(red - green) < 25  # the classic confusion
    assert too_alike([Fill("#B04040"), Fill("#5A7A30")], 25, 10, 20)
    assert luminance("#FFFFFF") == pytest.approx(1)


def test_group_and_family_colours_differ_in_grey_and_for_the_colour_blind() -> None:
    assert too_alike([Fill(colour) for colour in GROUP_COLOURS.values()], 25, 10, 20) == []
    assert too_alike([Fill(colour) for colour in FAMILY_COLOURS.values()], 25, 10, 20) == []


def test_each_category_and_label_has_a_fill_of_its_own() -> None:
    assert set(PATH_FILLS) == set(CATEGORY_NAMES.values())
    assert set(EXPOSURE_FILLS) == set(EXPOSURE_NAMES.values())
    for fills in (PATH_FILLS, EXPOSURE_FILLS):
        every = [*fills.values(), SMALLER]
        assert len(set(every)) == len(every)
        assert too_alike(every, 25, 10, 20) == []


def test_the_looks_of_ranks_differ() -> None:
    fills = list(LOOKS.values())
    assert len(set(fills)) == len(fills)
    assert too_alike(fills, 25, 10, 20) == []


def test_what_threads_show_differs() -> None:
    fills = [*NESTED_FILLS.values(), *CALL_FILLS.values()]
    assert len(set(fills)) == len(fills)
    assert too_alike(fills, 15, 9, 20) == []


@pytest.mark.parametrize("kind", ["small", "many steps"])
def test_no_legend_holds_one_fill_for_two_things(kind: str) -> None:
    for name in NAMES if kind == "small" else OF_ONE_RANK:
        with drawing():
            sheet = draft(name, INPUTS[kind]())
        for title, entries in sheet.legends:
            looks = [(entry.fill, entry.width, entry.dashes) for entry in entries]
            assert len(set(looks)) == len(looks), (name, title)
            filled = [entry.fill for entry in entries if entry.width is None]
            assert too_alike(filled, 15, 9, 20) == [], (name, title)


@pytest.mark.parametrize(
    "fill", [*PATH_FILLS.values(), *(Fill(colour) for colour in FAMILY_COLOURS.values())]
)
def test_text_on_a_fill_has_contrast(fill: Fill) -> None:
    low, high = sorted((luminance(fill.colour), luminance(fill.ink)))
    assert (high + 0.05) / (low + 0.05) >= 4.5  # WCAG 2, level AA


def test_families_go_by_the_first_part_of_a_class() -> None:
    assert family("moe.gemm") == "gemm, conv, moe"
    assert family("collective.ep") == "collective"
    assert family("attention") == family("rope") == "attention, rope, kv cache"
    assert family("something of the user's") == "other kernels"
