"""Work matched by its place in the step: replaced, fused, moved, removed here and kept there."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.comparison.changes import work_changes
from analyzer.comparison.places import OrderedWork, Places, Replacement, match_places
from analyzer.comparison.result import Comparison, PlacedWork
from analyzer.comparison.runs import compare
from analyzer.comparison.sides import WorkKey
from analyzer.diagnosis import Diagnosis
from analyzer.report.comparison import render_comparison
from tests.builders import analysis_of, schedule

LAYERS = 6


def key(letter: str) -> WorkKey:
    """Letters are kernels; digits are copies of that many bytes, to the device below 5."""
    if letter.isdigit():
        return ("copy", "copy HTOD" if int(letter) < 5 else "copy DTOH", int(letter))
    return ("kernel", letter)


def letter(one: WorkKey) -> str:
    return str(one[-1])


def step(text: str) -> OrderedWork:
    return OrderedWork(tuple(key(letter) for letter in text), tuple(Fraction(10) for _ in text))


def matched(a: str, b: str) -> Places:
    found = match_places(step(a), step(b))
    assert isinstance(found, Places)
    return found


def replacements(found: Places) -> dict[tuple[str, str], int]:
    def text(keys: Sequence[WorkKey]) -> str:
        return "".join(map(letter, keys))

    return {(text(pair.a), text(pair.b)): at.places for pair, at in found.found.items()}


@pytest.mark.parametrize(
    ("a", "b", "replaced", "alone_a", "alone_b"),
    [
        ("gab" * 4, "hab" * 4, {("g", "h"): 4}, "", ""),
        ("gabc" * 4, "gfc" * 4, {("ab", "f"): 4}, "", ""),  # fused
        ("gac" * 4, "gbdc" * 4, {("a", "bd"): 4}, "", ""),  # split in two
        ("gab" * 4, "gb" * 4, {}, "a", ""),
        ("gb" * 4, "gab" * 4, {}, "", "a"),
        ("mgabc", "gabcm", {}, "", ""),  # moved
        (
            "gxmabcd",
            "gyabcdm",
            {("x", "y"): 1},
            "",
            "",
        ),  # moved away from a place where something was replaced
        ("1gab", "2gab", {("1", "2"): 1}, "", ""),  # a copy by a copy
        ("1gab", "xgab", {}, "1", "x"),  # a copy by a kernel is none
        ("1gab", "7gab", {}, "1", "7"),  # nor by one in the other direction
        (
            "gab" + "lmnopqrst" + "abg" * 4,
            "gab" + "uvwxyzLMN" + "abg" * 4,
            {},
            "lmnopqrst",
            "uvwxyzLMN",
        ),  # too long
    ],
)
def test_by_hand(a: str, b: str, replaced: dict[tuple[str, str], int], alone_a: str, alone_b: str) -> None:
    found = matched(a, b)
    assert replacements(found) == replaced
    assert {letter(one) for one in found.a.alone} == {*alone_a}
    assert {letter(one) for one in found.b.alone} == {*alone_b}


def test_shares_are_of_calls_and_of_time() -> None:
    """``g`` runs at two places per layer, three times as long at the second, where it is replaced."""
    keys = tuple(key(letter) for letter in "gagb" * 2)
    a = OrderedWork(keys, tuple(Fraction(ns) for ns in (10, 1, 30, 1) * 2))
    found = match_places(a, step("gahb" * 2))
    assert isinstance(found, Places)
    swap = Replacement((key("g"),), (key("h"),))
    assert found.a.replaced == {swap: {key("g"): (Fraction(1, 2), Fraction(3, 4))}}
    assert found.b.replaced == {swap: {key("h"): (Fraction(1), Fraction(1))}}
    assert found.found[swap].after == key("a")


def test_two_steps_that_have_little_in_common_are_not_aligned() -> None:
    assert match_places(step("abcdef"), step("abuvwx")) == (
        "only 2 of the shorter step's 6 works stand at equal places"
    )


texts = st.text(alphabet="abcxy12", min_size=1, max_size=12)


@given(texts, texts)
@settings(max_examples=200)
def test_the_other_way_round_is_the_mirror_image(a: str, b: str) -> None:
    there, back = match_places(step(a), step(b)), match_places(step(b), step(a))
    if isinstance(there, str) or isinstance(back, str):
        assert there == back
        return
    assert (there.matched, there.a.alone, there.b.alone) == (back.matched, back.b.alone, back.a.alone)
    assert {(pair.a, pair.b): at for pair, at in there.found.items()} == {
        (pair.b, pair.a): at for pair, at in back.found.items()
    }


@given(texts, texts)
def test_no_work_is_told_twice(a: str, b: str) -> None:
    found = match_places(step(a), step(b))
    if isinstance(found, str):
        return
    for side, text in ((found.a, a), (found.b, b)):
        parts = [side.alone, *side.replaced.values()]
        for one in {key(each) for each in text}:
            calls = sum((part[one][0] for part in parts if one in part), Fraction(0))
            ns = sum((part[one][1] for part in parts if one in part), Fraction(0))
            assert 0 <= calls == ns <= 1


# -- through whole diagnoses ---------------------------------------------------------------------------


def run(layer: Sequence[tuple[str, int]], *, head: str = "", count: int = 8) -> Diagnosis:
    """Steps of six layers: names and microseconds of their kernels, 200 us per layer; one kernel before them."""
    built = schedule()
    length = 200 * LAYERS + 100
    for at in range(0, count * length, length):
        built.range(at, at + length, "decode")
        if head:
            built.launch(at, at + 1, runs=(at + 10, at + 30), name=head)
        for k in range(LAYERS):
            start = at + 40 + 200 * k
            for name, us in layer:
                built.launch(start - 10, start - 9, runs=(start, start + us), name=name)
                start += us
        built.launch(
            at + length - 40, at + length - 39, runs=(at + length - 30, at + length - 5), name="sample"
        )
    return analysis_of(built, steps="^decode$").diagnosis


BASE = (("norm", 5), ("gemm64", 40), ("act", 10), ("gemm32", 20))
GRID = "grid 1x1x1, block 32x1x1"


def kernels(*names: str) -> list[PlacedWork]:
    return [PlacedWork(name=name, kind="kernel", detail=GRID) for name in names]


def test_another_kernel_at_the_same_place() -> None:
    found = compare(run(BASE), run((("norm", 5), ("gemm128", 30), ("act", 10), ("gemm32", 20))))
    (row,) = found.replaced
    assert (row.a, row.b, row.change, row.places) == (kernels("gemm64"), kernels("gemm128"), "faster", LAYERS)
    assert row.after == kernels("norm")[0]
    assert (row.calls_a, row.calls_b, row.ns_a, row.ns_b) == (LAYERS, LAYERS, 240_000, 180_000)
    assert {change.change for change in found.changes} == {"same"}
    assert (found.matched_by, found.matched_because) == ("place", "")


def test_two_kernels_fused_into_one() -> None:
    found = compare(run(BASE), run((("norm", 5), ("fused", 45), ("gemm32", 20))))
    (row,) = found.replaced
    assert (row.a, row.b) == (kernels("gemm64", "act"), kernels("fused"))
    assert (row.ns_a, row.ns_b, row.calls_a, row.calls_b) == (300_000, 270_000, 2 * LAYERS, LAYERS)


def test_the_time_is_that_of_the_place() -> None:
    """One kernel runs at two places of a layer; only the longer run of it is replaced."""
    a = run((("gemm", 10), ("act", 5), ("gemm", 30), ("add", 5)))
    b = run((("gemm", 10), ("act", 5), ("other", 20), ("add", 5)))
    found = compare(a, b)
    (row,) = found.replaced
    assert (row.ns_a, row.ns_b) == (30_000 * LAYERS, 20_000 * LAYERS)
    (gemm,) = [change for change in found.changes if change.name == "gemm"]
    assert (gemm.change, gemm.ns_a, gemm.ns_b) == ("same", 10_000 * LAYERS, 10_000 * LAYERS)


def test_one_of_two_places_gone_is_a_row_of_its_own() -> None:
    a = run((("gemm", 10), ("act", 5), ("add", 5), ("act", 7)))
    found = compare(a, run((("gemm", 10), ("act", 5), ("add", 5))))
    told = {
        (row.change, row.name, row.calls_a, row.calls_b, row.ns_a)
        for row in found.changes
        if row.name == "act"
    }
    assert told == {("same", "act", 6.0, 6.0, 30_000), ("removed", "act", 6.0, None, 42_000)}
    assert found.replaced == []


def everything(found: Comparison) -> tuple[int, int]:
    """The time of all rows, on both sides."""
    rows = [*found.changes, *found.replaced]
    return sum(row.ns_a or 0 for row in rows), sum(row.ns_b or 0 for row in rows)


def work_ns(diagnosis: Diagnosis) -> float:
    (budget,) = diagnosis.budget
    return sum(row.total_ns for row in diagnosis.step_work) / budget.windows


@pytest.mark.parametrize(
    "layer",
    [
        BASE,
        (("norm", 5), ("gemm128", 30), ("act", 10), ("gemm32", 20)),
        (("norm", 5), ("fused", 45), ("gemm32", 20)),
        (("norm", 5), ("gemm64", 40), ("gemm32", 20)),
        (("act", 10), ("norm", 5), ("gemm64", 40), ("gemm32", 20)),
        (("one", 5), ("two", 6), ("three", 7)),
    ],
)
def test_rows_sum_to_all_work_and_mirror(layer: Sequence[tuple[str, int]]) -> None:
    a, b = run(BASE), run(layer, head="embed")
    there, back = compare(a, b), compare(b, a)
    assert everything(there) == pytest.approx((work_ns(a), work_ns(b)), abs=9)
    assert everything(back) == everything(there)[::-1]
    assert [(row.a, row.b, row.places) for row in there.replaced] == [
        (row.b, row.a, row.places) for row in back.replaced
    ]


def test_what_is_not_in_order_is_matched_by_name() -> None:
    a, b = run(BASE), run((("norm", 5), ("gemm128", 30), ("act", 10), ("gemm32", 20)))
    found = compare(msgspec.structs.replace(a, step_sequences=[]), b)
    assert (found.matched_by, found.matched_because, found.replaced) == (
        "name", "the order of the steps' work is not recorded on both sides", [],
    )  # fmt: skip
    assert {(row.change, row.name) for row in found.changes if row.change != "same"} == {
        ("removed", "gemm64"), ("added", "gemm128"),
    }  # fmt: skip
    assert "matched by what it is, not by its place" in render_comparison(found)


def test_a_sequence_that_was_cut_off_is_not_aligned() -> None:
    a = run(BASE)
    (sequence,) = a.step_sequences
    cut = msgspec.structs.replace(sequence, length=9_000, recorded=8_192)
    found = compare(a, msgspec.structs.replace(a, step_sequences=[cut]))
    assert found.matched_because == "a step has 9,000 works, of which the first 8,192 are recorded"


def test_a_sequence_of_few_steps_is_told() -> None:
    a = run(BASE)
    (sequence,) = a.step_sequences
    rare = msgspec.structs.replace(a, step_sequences=[msgspec.structs.replace(sequence, steps_alike=3)])
    assert compare(a, rare).matched_because == (
        "no sequence is that of most steps: aligned is that of 3 of B's 8 steps"
    )
    assert "(no sequence is that of most steps: aligned is that of" in render_comparison(compare(rare, a))


def test_different_programs_are_matched_by_name() -> None:
    found = compare(run(BASE), run((("one", 5), ("two", 6), ("three", 7))))
    assert found.matched_by == "name"
    assert found.matched_because == "only 1 of the shorter step's 19 works stand at equal places"


def test_ranks_add_up_and_one_that_cannot_be_aligned_is_named() -> None:
    def two_ranks(one: Diagnosis) -> Diagnosis:
        tables = {
            name: [*getattr(one, name), *(msgspec.structs.replace(row, rank=1) for row in getattr(one, name))]
            for name in ("budget", "step_work", "step_sequences")
        }
        return msgspec.structs.replace(one, **tables)

    a = two_ranks(run(BASE))
    b = two_ranks(run((("norm", 5), ("gemm128", 30), ("act", 10), ("gemm32", 20))))
    ranks = [(0, 0), (1, 1)]
    found = work_changes(a, b, "step", "step", ranks)
    assert [(row.places, row.ns_a, row.calls_b) for row in found.replaced] == [(12, 480_000, 12.0)]
    assert (found.by_place, found.because) == (True, "")
    one = work_changes(
        a, msgspec.structs.replace(b, step_sequences=b.step_sequences[:1]), "step", "step", ranks
    )
    assert [(row.places, row.ns_a) for row in one.replaced] == [(6, 240_000)]
    assert {(row.change, row.name, row.ns_a) for row in one.changes if row.change != "same"} == {
        ("removed", "gemm64", 240_000), ("added", "gemm128", None),
    }  # fmt: skip
    assert one.by_place
    assert one.because == "not on rank 1: the order of the steps' work is not recorded on both sides"


def test_the_report_says_what_replaced_what() -> None:
    shown = render_comparison(compare(run(BASE), run((("norm", 5), ("fused", 45), ("gemm32", 20)))))
    assert "matched by its place in the step: 1 replaced at 6 places; 3 within 5 % per call" in shown
    (line,) = [line for line in shown.splitlines() if line.startswith("| `gemm64")]
    cells = [part.strip() for part in line.split("|")[1:-1]]
    assert cells[:2] == [f"`gemm64 ({GRID})` + `act ({GRID})`", f"`fused ({GRID})`"]
    assert cells[2:] == ["`norm`", "6", "0.300", "0.270", "-0.030"]
