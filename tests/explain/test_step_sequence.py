"""The order of a step's work, with loops folded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.diagnosis import Diagnosis, StepSequence
from analyzer.explain.device.loops import fold
from tests.builders import Schedule, analysis_of, schedule


def folded(text: str) -> list[tuple[int, str]]:
    codes = np.array([ord(letter) for letter in text], np.int64)
    return [(loop.repeats, text[loop.start : loop.start + loop.length]) for loop in fold(codes)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("a", [(1, "a")]),
        ("abc", [(1, "abc")]),
        ("aaaaaaaa", [(8, "a")]),
        ("abab", [(1, "abab")]),  # saves two places: not worth it
        ("xabcabcabcy", [(1, "x"), (3, "abc"), (1, "y")]),
        ("aabcaabcaabc", [(3, "aabc")]),
        ("abcdabcdxyzxyzxyz", [(2, "abcd"), (3, "xyz")]),
    ],
)
def test_loops_are_folded(text: str, expected: list[tuple[int, str]]) -> None:
    assert folded(text) == expected


@given(st.text(alphabet="abc", max_size=60))
def test_what_is_folded_unfolds_to_the_same(text: str) -> None:
    assert "".join(body * repeats for repeats, body in folded(text)) == text


def diagnosis(built: Schedule) -> Diagnosis:
    return analysis_of(built, steps="^s$").diagnosis


def places(found: Diagnosis, sequence: StepSequence) -> list[tuple[str, int]]:
    """Name and microseconds of every place, over all steps alike; of a loop's body the mean."""
    table = [row for row in found.step_work if row.phase == sequence.phase and row.rank == sequence.rank]
    return [
        (table[work].name, ns // section.repeats // 1000)
        for section in sequence.sections
        for _ in range(section.repeats)
        for work, ns in zip(section.work, section.ns, strict=True)
    ]


def test_work_stands_in_the_order_of_its_submission() -> None:
    """The copy was submitted last and ran first, on a stream of its own."""
    built = schedule()
    for at in range(0, 600, 100):
        built.range(at, at + 90, "s")
        built.launch(at, at + 2, runs=(at + 20, at + 30), name="a")
        built.launch(at + 3, at + 5, runs=(at + 30, at + 35), name="b")
        built.copy(at + 6, at + 8, runs=(at + 10, at + 12), stream=9)
    found = diagnosis(built)
    (sequence,) = found.step_sequences
    assert places(found, sequence) == [("a", 50), ("b", 25), ("copy HTOD", 10)]  # the first is short
    assert (sequence.steps, sequence.steps_alike, sequence.length, sequence.recorded) == (5, 5, 3, 3)


def test_nodes_of_a_replay_stand_in_the_order_of_their_starts() -> None:
    built = schedule().range(0, 90, "s")
    built.graph(0, 2, [(20, 30, "second", 8), (10, 40, "first", 7), (41, 50, "third", 7)])
    built.launch(3, 4, runs=(50, 60), name="after")
    found = diagnosis(built)
    (sequence,) = found.step_sequences
    assert [name for name, _ in places(found, sequence)] == ["first", "second", "third", "after"]


def test_layers_are_one_section_and_their_times_are_summed() -> None:
    built = schedule().range(0, 90, "s")
    for layer in range(6):
        built.launch(3 * layer, 3 * layer + 1, runs=(20 + 10 * layer, 24 + 10 * layer + layer), name="gemm")
        built.launch(3 * layer + 1, 3 * layer + 2, runs=(26 + 10 * layer, 29 + 10 * layer), name="add")
    (sequence,) = diagnosis(built).step_sequences
    (section,) = sequence.sections
    assert (section.repeats, section.work, section.ns) == (6, [0, 1], [39_000, 18_000])
    assert sequence.length == 12


def test_the_most_common_sequence_is_held() -> None:
    built = schedule()
    for at in range(0, 1000, 100):
        built.range(at, at + 90, "s")
        for k, name in enumerate("abc" if at % 300 else "acb"):
            built.launch(at + 10 * k, at + 10 * k + 2, runs=(at + 10 * k + 5, at + 10 * k + 9), name=name)
    found = diagnosis(built)
    (sequence,) = found.step_sequences
    assert (sequence.steps, sequence.steps_alike, sequence.window) == (9, 6, 1)  # the first is short
    assert places(found, sequence) == [("a", 24), ("b", 24), ("c", 24)]


def test_of_sequences_as_common_that_of_the_step_nearest_the_median_is_held() -> None:
    built, at = schedule(), 0
    for length, names in ((50, "abc"), (60, "acb"), (61, "bac"), (70, "bca"), (71, "cab")):
        built.range(at, at + length, "s")
        for k, name in enumerate(names):
            built.launch(
                at + k, at + k + 1, runs=(at + length - 30 + 10 * k, at + length - 20 + 10 * k), name=name
            )
        at += length
    found = diagnosis(built)
    (sequence,) = found.step_sequences
    assert [name for name, _ in places(found, sequence)] == ["b", "a", "c"]
    assert (sequence.steps, sequence.steps_alike) == (5, 1)


def test_a_sequence_too_long_is_cut_off_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analyzer.explain.device.step_sequence.MOST_WORKS", 2)
    built = schedule().range(0, 90, "s")
    for k, name in enumerate("abc"):
        built.launch(10 * k, 10 * k + 2, runs=(10 * k + 5, 10 * k + 9), name=name)
    found = diagnosis(built)
    (sequence,) = found.step_sequences
    assert (sequence.length, sequence.recorded) == (3, 2)
    assert [name for name, _ in places(found, sequence)] == ["a", "b"]


def test_phases_have_sequences_of_their_own() -> None:
    built = schedule()
    for at in range(0, 600, 100):
        shape = "context_1(64)_generation_0(0)" if at % 200 else "context_0(0)_generation_8(8)"
        name = "attend" if at % 200 else "decode"
        built.range(at, at + 90, f"execute_{shape}")
        built.launch(at, at + 2, runs=(at + 5, at + 80), name=name)
        built.launch(at + 3, at + 4, runs=(at + 80, at + 85), name="sample")
    found = analysis_of(built).diagnosis
    assert {row.phase: [name for name, _ in places(found, row)] for row in found.step_sequences} == {
        "decode": ["decode", "sample"],
        "prefill": ["attend", "sample"],
    }


def test_without_steps_the_whole_capture_is_one() -> None:
    built = schedule().launch(0, 4, runs=(5, 9), name="a").launch(5, 8, runs=(9, 12), name="b")
    found = analysis_of(built).diagnosis
    (sequence,) = found.step_sequences
    assert [name for name, _ in places(found, sequence)] == ["a", "b"]
    assert analysis_of(schedule().op(0, 9, "aten::mm")).diagnosis.step_sequences == []
