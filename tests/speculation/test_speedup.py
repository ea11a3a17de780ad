"""What measured acceptance gains: tokens per cycle x baseline step / cycle time."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from analyzer.calculators import speculation as modelled
from analyzer.errors import UsageError
from analyzer.report.speculation import render_speculation
from analyzer.speculation.counts import Totals, from_histogram
from analyzer.speculation.result import Speculation
from analyzer.speculation.speedup import given, speculate, timed
from tests.scaling.runs import PINS, alternating, diagnosis, on_device, with_pins

COUNTS = from_histogram("file", {0: 20, 1: 16, 2: 64}, 2)


def test_given_times_make_a_model() -> None:
    """2.44 tokens per cycle of 16 ms against 9 ms a token."""
    found = speculate("file", COUNTS, given(9e6), given(16e6))
    assert found.speedup == pytest.approx(2.44 * 9 / 16)
    assert found.speedup_kind == "model"
    assert found.breakeven_tokens == pytest.approx(16 / 9)
    assert found.breakeven_ci95 is None
    assert found.speedup_ci95 is not None and found.acceptance.tokens_ci95 is not None
    assert found.speedup_ci95[1] == pytest.approx(found.acceptance.tokens_ci95[1] * 9 / 16, rel=0.01)
    assert found.verdict == "faster"


def test_the_model_beside_it_is_the_calculators() -> None:
    found = speculate("file", COUNTS, given(9e6), given(16e6))
    by_hand = modelled(0.8, 2, verify_ns=16e6, draft_ns=0, baseline_ns=9e6)
    assert found.model is not None
    assert found.model.speedup == pytest.approx(by_hand.speedup)
    assert found.model.breakeven_chance == pytest.approx(by_hand.breakeven_acceptance)


def test_measured_times_make_a_measurement() -> None:
    found = speculate(
        "file",
        COUNTS,
        timed("a", diagnosis(alternating(980, 40))),
        timed("b", diagnosis(alternating(1_580, 40))),
    )
    assert found.speedup_kind == "measurement"
    assert found.baseline is not None and found.cycle is not None
    assert (found.baseline.source, found.baseline.phase, found.baseline.steps) == ("measured", "step", 10)
    ratio = found.cycle.mean_ns / found.baseline.mean_ns
    assert ratio == pytest.approx(1.6, rel=0.01)
    assert found.breakeven_tokens == pytest.approx(ratio)
    assert found.speedup == pytest.approx(2.44 / ratio)
    assert found.speedup_ci95 is not None and found.breakeven_ci95 is not None
    alone = speculate("file", COUNTS, given(found.baseline.mean_ns), given(found.cycle.mean_ns))
    assert alone.speedup_ci95 is not None
    assert found.speedup_ci95[0] < alone.speedup_ci95[0] < alone.speedup_ci95[1] < found.speedup_ci95[1]


def verdict(cycle_ns: float) -> str | None:
    return speculate("file", COUNTS, given(9e6), given(cycle_ns)).verdict


def test_verdicts() -> None:
    assert [verdict(ns) for ns in (16e6, 22e6, 30e6)] == ["faster", "not told", "slower"]


def test_totals_give_a_speedup_without_an_interval() -> None:
    found = speculate("file", Totals(144, 100, 200), given(9e6), given(16e6))
    assert found.speedup == pytest.approx(2.44 * 9 / 16)
    assert (found.speedup_ci95, found.verdict, found.model) == (None, "not told", None)
    assert found.speedup_because.startswith("no interval: totals do not tell")
    assert found.speedup_because.count("no interval") == 1


@pytest.mark.parametrize(
    ("sides", "told"),
    [
        ((None, None), "of the baseline's step and of a cycle is not given"),
        ((given(9e6), None), "the time of a cycle is not given"),
    ],
)
def test_without_times_there_is_no_speedup(sides: tuple[None, None], told: str) -> None:
    found = speculate("file", COUNTS, *sides)
    assert (found.speedup, found.breakeven_tokens, found.verdict) == (None, None, None)
    assert told in found.speedup_because


def test_without_cycles_there_is_no_speedup() -> None:
    found = speculate("file", Totals(144, None, 200), given(9e6), given(16e6))
    assert found.speedup is None
    assert "number of verifications" in found.speedup_because


def test_runs_asked_for_other_work_have_no_speedup() -> None:
    plain = timed("a", diagnosis(alternating(980), PINS))
    drafted = timed("b", diagnosis(alternating(1_580), {**PINS, "batch": "16", "flags": "--speculative"}))
    found = speculate("file", COUNTS, plain, drafted)
    assert [(one.what, one.baseline, one.speculative) for one in found.differences] == [("batch", "8", "16")]
    assert found.speedup is None
    assert "(batch): no speedup is claimed" in found.speedup_because
    same = replace(drafted, diagnosis=with_pins(diagnosis(alternating(1_580)), {**PINS, "flags": "other"}))
    assert speculate("file", COUNTS, plain, same).speedup is not None


def test_undeclared_pins_are_listed() -> None:
    plain = timed("a", diagnosis(alternating(980)))
    found = speculate("file", COUNTS, plain, timed("b", diagnosis(alternating(1_580))))
    assert "batch" in found.undeclared and "flags" not in found.undeclared


def test_what_else_differs_is_told_beside_the_speedup() -> None:
    """A baseline on another device, as one profiler saw it: the speedup is not of speculation alone."""
    a, b = (on_device(diagnosis(alternating(step)), "NVIDIA H200") for step in (980, 1_580))
    drafted = timed("b", b)
    assert speculate("file", COUNTS, timed("a", a), drafted).beside == []
    inputs = [msgspec.structs.replace(one, kind="nsys-sqlite") for one in a.inputs]
    other = msgspec.structs.replace(on_device(a, "NVIDIA L4"), inputs=inputs)
    found = speculate("file", COUNTS, timed("a", other), drafted)
    assert [(one.what, one.baseline) for one in found.beside] == [
        ("device", "NVIDIA L4"),
        ("profiler", "nsys-sqlite"),
    ]
    text = render_speculation(found)
    assert "differ in device, too: `NVIDIA L4` in the baseline" in text
    assert "not that of speculation alone" in text


def test_it_comes_back_from_its_json() -> None:
    found = speculate("file", COUNTS, given(9e6), given(16e6))
    assert msgspec.json.decode(found.to_json(), type=Speculation) == found


def exact(accepted: int, rejected: int, draft_tokens: int = 7) -> dict[int, int]:
    """Cycles by accepted tokens that have exactly the chance accepted / (accepted + rejected) at every position."""
    whole = accepted + rejected
    reached = [accepted**at * whole ** (draft_tokens - at) for at in range(draft_tokens + 1)]
    return {at: reached[at] - (reached[at + 1] if at < draft_tokens else 0) for at in range(draft_tokens + 1)}


@pytest.mark.parametrize(
    ("chance", "tokens", "speedup"), [((4, 1), 4.161, 2.34), ((1, 4), 1.25, 0.70)], ids=["0.8", "0.2"]
)
def test_the_worked_example_comes_out_of_counts(
    chance: tuple[int, int], tokens: float, speedup: float
) -> None:
    """Verify 12, draft 3, other 1 ms against 9 ms, 7 tokens drafted."""
    found = speculate("file", from_histogram("file", exact(*chance), 7), given(9e6), given(16e6))
    assert found.acceptance.tokens_per_cycle == pytest.approx(tokens, abs=5e-4)
    assert found.acceptance.constant is not None and found.acceptance.constant.describes
    assert found.acceptance.constant.chance == pytest.approx(chance[0] / sum(chance))
    assert found.speedup == pytest.approx(speedup, abs=5e-3)
    assert found.model is not None and found.model.speedup == pytest.approx(found.speedup)


def test_cycles_that_are_all_alike_leave_the_speedup_its_interval() -> None:
    """What an unseen kind of cycle could change of the tokens, it changes of the speedup."""
    found = speculate("file", from_histogram("file", {3: 100}, 3), given(9e6), given(16e6))
    tokens = found.acceptance.tokens_ci95
    assert tokens is not None and tokens[0] < tokens[1]
    assert found.speedup_ci95 == pytest.approx((tokens[0] * 9 / 16, tokens[1] * 9 / 16))


def test_one_capture_is_not_both_sides() -> None:
    same = timed("a", diagnosis(alternating(980, 40)))
    with pytest.raises(UsageError, match="are one capture"):
        speculate("file", COUNTS, same, same)


def test_a_report_to_the_client_is_of_the_same_device_steps() -> None:
    client = msgspec.structs.replace(diagnosis(alternating(1_580, 40)), boundary="client")
    found = speculate("file", COUNTS, timed("a", diagnosis(alternating(980, 40))), timed("b", client))
    assert found.differences == [] and found.speedup is not None
