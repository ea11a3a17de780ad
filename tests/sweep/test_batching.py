"""Rates and marginal costs against the batch, by hand, and where the aggregate rate stops rising."""

from __future__ import annotations

import pytest

from analyzer.sweep import Given, sweep
from analyzer.swept import Batching
from tests.sweep.builder import diagnosis, run, steps_of


def batching(times: dict[int, int], **more: object) -> Batching:
    runs = [run(f"b{batch}", mean, context=1_000, batch=batch) for batch, mean in times.items()]
    (only,) = sweep(runs, **more).batching  # type: ignore[arg-type]
    return only


def test_rates_and_marginal_costs_are_those_of_the_measured_steps() -> None:
    found = batching({1: 30, 2: 40, 8: 100})
    steps = [point.step_ns.value for point in found.points]
    assert steps[1] - steps[0] == pytest.approx(10_000)
    assert [point.tokens_per_s.value for point in found.points] == pytest.approx(
        [1e9 / steps[0], 2e9 / steps[1], 8e9 / steps[2]]
    )
    assert found.points[2].tokens_per_s_per_stream.value == pytest.approx(1e9 / steps[2])
    assert found.points[0].marginal_ns is None
    assert [point.marginal_ns.value for point in found.points[1:]] == pytest.approx([10_000, 10_000])
    low, high = found.points[1].marginal_ns.ci95
    assert low < 10_000 < high
    assert found.stops_at is None
    assert "still rises at the largest batch measured, 8" in found.statement


def test_the_rate_stops_where_no_larger_batch_is_shown_to_have_more() -> None:
    # from batch 4 on the step grows as the batch does: 61 + 39 = 100 us, then twice and four times that
    found = batching({1: 30, 2: 35, 4: 39, 8: 139, 16: 339})
    assert found.stops_at == 4
    assert "up to 16" in found.statement


def test_repeats_of_a_batch_widen_its_interval_by_their_scatter() -> None:
    runs = [run(f"b{batch}", 20 * batch, context=1_000, batch=batch) for batch in (1, 2)]
    alone = sweep(runs).batching[0].points[1].step_ns
    again = run("again", 60, context=1_000, batch=2)
    both = sweep([*runs, again]).batching[0].points[1].step_ns
    assert both.value == pytest.approx(alone.value + 10_000)
    assert both.ci95[1] - both.ci95[0] > 5 * (alone.ci95[1] - alone.ci95[0])


def test_experts_are_a_model_and_absent_unless_declared() -> None:
    assert all(point.expert_union is None for point in batching({1: 30, 2: 40}).points)
    found = batching({1: 30, 2: 40}, experts=(64, 4))
    assert [point.expert_union for point in found.points] == pytest.approx([4, 64 * (1 - (1 - 4 / 64) ** 2)])


def test_prefill_has_no_token_rate() -> None:
    runs = [
        Given(f"b{batch}", diagnosis(steps_of(20 * batch), phase="prefill"), {"batch": str(batch)})
        for batch in (1, 2)
    ]
    runs = [Given(one.name, _as_prefill(one), one.declared) for one in runs]
    found = sweep(runs)
    assert found.phase == "prefill"
    assert found.batching == []
    assert found.cells[0].tokens_per_s is None
    assert [one.axis for one in found.lines] == ["batch"]


def _as_prefill(given: Given) -> object:
    import msgspec

    text = msgspec.json.encode(given.diagnosis).replace(b'"phase":"step"', b'"phase":"prefill"')
    return msgspec.json.decode(text, type=type(given.diagnosis))
