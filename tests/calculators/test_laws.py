"""What holds for any input: bounds bound, fits meet their points, shares are shares, limits are refused."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from analyzer import calculators as calc
from analyzer.errors import UsageError

TIMES = st.floats(1, 1e12)
SIZES = st.integers(1, 10**12)
SHARES = st.floats(0, 1)


@given(
    st.lists(st.tuples(st.floats(1, 1e13), st.floats(1e9, 1e13)), min_size=1, max_size=8), st.integers(1, 3)
)
def test_no_rank_beats_the_floor_and_phases_add(ranks: list[tuple[float, float]], phases: int) -> None:
    phase = calc.Phase([size for size, _ in ranks], [speed for _, speed in ranks])
    found = calc.floor([phase] * phases)
    assert all(found.phase_floors_ns[0] >= size / speed * 1e9 for size, speed in ranks)
    assert found.floor_ns == pytest.approx(phases * found.phase_floors_ns[0])
    slowest = ranks[found.slowest_ranks[0]]
    assert found.phase_floors_ns[0] == slowest[0] / slowest[1] * 1e9


@given(SIZES, TIMES, TIMES)
def test_floor_and_unexplained_are_the_observed_time(size: int, speed: float, observed: float) -> None:
    found = calc.floor([calc.Phase([size], [speed])], observed_ns=observed)
    if found.unexplained_ns is None:
        assert observed < found.floor_ns
        assert found.cautions
        assert found.share_of_ceiling is None
    else:
        assert found.floor_ns + found.unexplained_ns == pytest.approx(observed)
        assert found.share_of_ceiling is not None
        assert 0 < found.share_of_ceiling <= 1


@given(st.integers(1, 512), st.integers(1, 512), TIMES, TIMES)
def test_two_points_of_a_scaling_are_met(first: int, second: int, slow: float, fast: float) -> None:
    assume(first != second)
    found = calc.scaling([(first, slow), (second, fast)])
    scale = abs(found.serial_ns) + abs(found.parallel_ns)
    for ranks, time in ((first, slow), (second, fast)):
        assert found.serial_ns + found.parallel_ns / ranks == pytest.approx(time, abs=1e-9 * scale)
    assert found.residuals_ns is None
    assert (found.serial_share is None) == (found.serial_ns < 0 or found.parallel_ns < 0)


@given(TIMES, TIMES, st.sets(st.integers(1, 64), min_size=3, max_size=6))
def test_a_scaling_without_noise_is_found_again(serial: float, parallel: float, counts: set[int]) -> None:
    found = calc.scaling([(ranks, serial + parallel / ranks) for ranks in counts])
    scale = serial + parallel
    assert found.serial_ns == pytest.approx(serial, abs=1e-6 * scale)
    assert found.parallel_ns == pytest.approx(parallel, abs=1e-6 * scale)
    assert found.rms_residual_ns == pytest.approx(0, abs=1e-6 * scale)


@given(st.lists(st.tuples(SIZES, TIMES), min_size=3, max_size=6, unique_by=lambda point: point[0]))
def test_least_squares_leaves_residuals_that_cancel(points: list[tuple[int, float]]) -> None:
    found = calc.alpha_beta(points)
    assert found.residuals_ns is not None
    assert math.fsum(found.residuals_ns) == pytest.approx(0, abs=1e-9 * sum(time for _, time in points))
    assert (found.smallest_bytes, found.largest_bytes) == (min(points)[0], max(points)[0])


@given(st.lists(st.tuples(SIZES, TIMES), min_size=2, max_size=2, unique_by=lambda point: point[0]))
def test_a_latency_is_asked_for_only_inside_the_range(points: list[tuple[int, float]]) -> None:
    (small, low), (large, high) = sorted(points)
    predicted = calc.alpha_beta(points, at_bytes=(small + large) / 2).predicted_ns
    assert predicted == pytest.approx((low + high) / 2, rel=1e-6)
    for outside in (small / 2, large * 2):
        with pytest.raises(UsageError, match="outside the fitted range"):
            calc.alpha_beta(points, at_bytes=outside)


@given(SHARES, st.integers(1, 20))
def test_expected_tokens_are_the_sum_of_the_prefixes(acceptance: float, drafted: int) -> None:
    by_hand = math.fsum(acceptance**length for length in range(drafted + 1))
    assert calc.expected_tokens(acceptance, drafted) == pytest.approx(by_hand)
    assert 1 <= by_hand <= drafted + 1


@given(SHARES, st.integers(1, 20), TIMES, TIMES, TIMES)
def test_break_even_is_where_the_speedup_is_one(
    acceptance: float, drafted: int, verify: float, draft: float, baseline: float
) -> None:
    costs = {"verify_ns": verify, "draft_ns": draft, "baseline_ns": baseline}
    even = calc.speculation(acceptance, drafted, **costs).breakeven_acceptance
    if even is None:
        assert calc.speculation(1, drafted, **costs).speedup < 1  # type: ignore[operator]
    elif even == 0:
        assert calc.speculation(0, drafted, **costs).speedup >= 1  # type: ignore[operator]
    else:
        assert calc.speculation(even, drafted, **costs).speedup == pytest.approx(1)


@given(st.integers(1, 4096), st.integers(1, 512), st.integers(1, 512))
def test_a_batch_touches_at_least_one_tokens_experts_and_at_most_all(
    batch: int, total: int, each: int
) -> None:
    assume(each <= total)
    found = calc.batching(batch, 1e6, experts=total, experts_per_token=each)
    assert found.expert_union is not None
    assert each * (1 - 1e-9) <= found.expert_union <= total * (1 + 1e-9)
    assert found.expert_union == pytest.approx(total * (1 - (1 - each / total) ** batch))


@given(st.floats(0, 1), st.floats(1, 100), st.integers(2, 1000))
def test_amdahls_scaling_stays_below_its_limit(phase: float, speedup: float, ways: int) -> None:
    found = calc.amdahl(phase, speedup, ways=ways)
    assert 1 - 1e-12 <= found.overall_speedup <= speedup * (1 + 1e-12)
    assert found.scaling_speedup is not None
    assert found.scaling_speedup <= ways * (1 + 1e-12)
    if found.serial_share:
        assert found.scaling_speedup <= 1 / found.serial_share * (1 + 1e-12)


@given(st.dictionaries(st.text(min_size=1, max_size=3), TIMES, min_size=1, max_size=6), TIMES, st.data())
def test_one_change_moves_the_path_by_its_own_difference(
    terms: dict[str, float], new: float, data: st.DataObject
) -> None:
    changed = data.draw(st.sampled_from(sorted(terms)))
    found = calc.whatif(terms, changed, new)
    assert found.saved_ns == pytest.approx(terms[changed] - new, abs=1e-9 * found.before_ns)
    assert found.speedup == pytest.approx(found.before_ns / found.after_ns)
    assert bool(found.cautions) == (new > terms[changed])


def test_a_slower_run_on_more_ranks_has_no_serial_share() -> None:
    found = calc.scaling([(1, 10e6), (8, 12e6)])
    assert found.serial_share is None
    assert "slower" in found.cautions[0]
    superlinear = calc.scaling([(2, 80e6), (8, 10e6)])
    assert superlinear.serial_share is None
    assert len(superlinear.cautions) == 2


def test_what_a_fit_holds_for_is_said_or_listed_as_undeclared() -> None:
    points = [(1024, 5e4), (2048, 6e4)]
    said = " ".join(calc.alpha_beta(points, context={"topology": "one switch", "ranks": "8"}).assumptions)
    assert "topology one switch, ranks 8" in said
    assert "undeclared: dtype, synchronization, concurrency" in said
    falling = calc.alpha_beta([(1024, 6e4), (2048, 5e4)])
    assert falling.beta_bytes_per_s is None
    assert "no bandwidth" in falling.cautions[0]


def test_calls_longer_than_the_step_have_no_share() -> None:
    found = calc.collective(1000, 58_700, step_ns=1e6)
    assert found.share_of_step is None
    assert found.cautions


NAN, INF = math.nan, math.inf
ONE = calc.Phase([1e9], [1e12])
REFUSED: list[tuple[str, Callable[[], object]]] = [
    ("bytes_per_rank", lambda: calc.floor([calc.Phase([-1], [1e12])])),
    ("bytes_per_rank", lambda: calc.floor([calc.Phase([0], [1e12])])),
    ("bytes_per_s", lambda: calc.floor([calc.Phase([1], [0])])),
    ("bytes_per_s", lambda: calc.floor([calc.Phase([1, 2], [1e12])])),
    ("bytes_per_s", lambda: calc.floor([calc.Phase([1], [INF])])),
    ("phases", lambda: calc.floor([])),
    ("observed_ns", lambda: calc.floor([ONE], observed_ns=0)),
    ("tokens", lambda: calc.floor([ONE], tokens=NAN)),
    ("stored_bytes_per_weight", lambda: calc.intensity(0)),
    ("batch", lambda: calc.intensity(2, batch=0)),
    ("bytes_per_s", lambda: calc.intensity(2, peak_flop_per_s=1e12)),
    ("step_ns", lambda: calc.slot(-1, 10)),
    ("step_ns", lambda: calc.slot(NAN, 10)),
    ("step_ns", lambda: calc.slot(True, 10)),
    ("launches", lambda: calc.slot(1e6, 0)),
    ("launches", lambda: calc.slot(1e6, 2.5)),  # type: ignore[arg-type]
    ("launches", lambda: calc.slot(1e6, 2**63)),
    ("slot", lambda: calc.Slot(slot_ns=INF, assumptions=())),
    ("calls", lambda: calc.collective(0, 1e3)),
    ("latency_ns", lambda: calc.collective(1, 0)),
    ("bytes_per_element", lambda: calc.collective(1, 1e3, elements=5)),
    ("points", lambda: calc.alpha_beta([(1024, 5e4)])),
    ("points", lambda: calc.alpha_beta([(1024, 5e4), (1024, 6e4)])),
    ("points", lambda: calc.alpha_beta([(0, 5e4), (1024, 6e4)])),
    ("context", lambda: calc.alpha_beta([(1, 5e4), (1024, 6e4)], context={"weather": "fine"})),
    ("blocks", lambda: calc.coverage(0, 132)),
    ("sm_count", lambda: calc.coverage(12, 0)),
    ("resident_blocks_per_sm", lambda: calc.coverage(12, 132, resident_blocks_per_sm=0)),
    ("capability", lambda: calc.occupancy("9.5", threads_per_block=32, registers_per_thread=32)),
    ("threads_per_block", lambda: calc.occupancy("9.0", threads_per_block=0, registers_per_thread=32)),
    ("phase_share", lambda: calc.amdahl(1.1, 2)),
    ("speedup", lambda: calc.amdahl(0.5, 0)),
    ("ways", lambda: calc.amdahl(0.5, 2, ways=1)),
    ("points", lambda: calc.scaling([(8, 1e6)])),
    ("points", lambda: calc.scaling([(8, 1e6), (8, 2e6)])),
    ("points", lambda: calc.scaling([(0, 1e6), (8, 2e6)])),
    ("points", lambda: calc.scaling([(1, 10**400), (8, 2e6)])),
    ("change", lambda: calc.whatif({"a": 1}, "b", 1)),
    ("terms_ns", lambda: calc.whatif({"a": 1}, "a", 0)),
    ("terms_ns", lambda: calc.whatif({"a": -1}, "a", 1)),
    ("acceptance", lambda: calc.speculation(1.0001, 4)),
    ("acceptance", lambda: calc.speculation(-0.1, 4)),
    ("draft_tokens", lambda: calc.speculation(0.5, 0)),
    ("baseline_ns", lambda: calc.speculation(0.5, 4, verify_ns=1, draft_ns=1)),
    ("verify_ns", lambda: calc.speculation(0.5, 4, other_ns=1)),
    ("batch", lambda: calc.batching(0, 1e6)),
    ("experts_per_token", lambda: calc.batching(1, 1e6, experts=8, experts_per_token=9)),
    ("experts_per_token", lambda: calc.batching(1, 1e6, experts=8)),
]


@pytest.mark.parametrize(
    ("named", "call"), REFUSED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_cannot_be_is_refused_by_name_with_what_is_valid(named: str, call: Callable[[], object]) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert caught.value.path == named
    assert caught.value.why
    assert caught.value.hint
