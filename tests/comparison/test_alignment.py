"""Two sequences under each other, against hand-made answers and all ways there are."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.comparison.alignment import EQUAL, NOWHERE, SAME_NAME, align, score_table

LETTERS = "abcdefgxyzXYZ0123"
"""Small letters are kernels, capitals kernels of the same name as the small one, digits copies."""
SCORES = score_table(
    ["copy" if letter.isdigit() else "kernel" for letter in LETTERS], [letter.lower() for letter in LETTERS]
)


def codes(text: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([LETTERS.index(letter) for letter in text], np.int64)


def under(a: str, b: str) -> list[str]:
    """Both lines, with a dot where one has nothing."""
    pairs = align(codes(a), codes(b), SCORES)
    return [
        "".join("." if place == NOWHERE else text[place] for place in side)
        for text, side in ((a, [one for one, _ in pairs]), (b, [two for _, two in pairs]))
    ]


@pytest.mark.parametrize(
    ("a", "b", "lines"),
    [
        ("", "", ["", ""]),
        ("abc", "abc", ["abc", "abc"]),
        ("abc", "", ["abc", "..."]),
        ("abc", "adc", ["abc", "adc"]),  # replaced at its place
        ("aabaab", "aadaad", ["aabaab", "aadaad"]),
        ("aaa", "aba", ["aaa", "aba"]),  # not one removed at the end and one added in between
        ("abc", "abxc", ["ab.c", "abxc"]),
        ("axyb", "azb", ["axyb", "a.zb"]),  # two became one
        ("axb", "aXYb", ["ax.b", "aXYb"]),  # of one name first
        ("a1b", "axb", ["a1.b", "a.xb"]),  # a copy is replaced by no kernel
        ("xabcx", "abcx", ["xabcx", ".abcx"]),
    ],
)
def test_by_hand(a: str, b: str, lines: list[str]) -> None:
    assert under(a, b) == lines
    assert under(b, a) == lines[::-1]


@cache
def best(a: str, b: str) -> int:
    """The highest score, by trying everything."""
    if not a or not b:
        return 0
    score = int(SCORES[LETTERS.index(a[0]), LETTERS.index(b[0])])
    return max(best(a[1:], b), best(a, b[1:]), score + best(a[1:], b[1:]) if score else 0)


texts = st.text(alphabet="abxX1", max_size=9)


@given(texts, texts)
def test_every_place_stands_once_in_order_and_no_way_scores_more(a: str, b: str) -> None:
    pairs = align(codes(a), codes(b), SCORES)
    assert [one for one, _ in pairs if one != NOWHERE] == [*range(len(a))]
    assert [two for _, two in pairs if two != NOWHERE] == [*range(len(b))]
    scores = [
        int(SCORES[LETTERS.index(a[one]), LETTERS.index(b[two])])
        for one, two in pairs
        if NOWHERE not in (one, two)
    ]
    assert 0 not in scores
    assert sum(scores) == best(a, b)


@given(texts, texts)
def test_the_other_way_round_is_the_mirror_image(a: str, b: str) -> None:
    assert align(codes(b), codes(a), SCORES) == [(two, one) for one, two in align(codes(a), codes(b), SCORES)]


def test_layers_stay_layers() -> None:
    """Sixty layers in which one kernel of five was replaced, and another two fused."""
    pairs = align(codes("abcde" * 60), codes("axfg".replace("f", "c") * 60), SCORES)
    equal = [one for one, two in pairs if NOWHERE not in (one, two) and one % 5 == 0]
    assert equal == [*range(0, 300, 5)]
    assert EQUAL > 2 * SAME_NAME
