"""Accepted drafts counted by hand: tokens per cycle, chances by position, and whether one chance describes them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from analyzer.calculators import expected_tokens
from analyzer.speculation.acceptance import measured
from analyzer.speculation.counts import Row, Totals, cycles_of, from_histogram, from_positions
from analyzer.speculation.result import Acceptance


def of_histogram(cycles_by_accepted: dict[int, int], draft_tokens: int) -> Acceptance:
    return measured("file", from_histogram("file", cycles_by_accepted, draft_tokens))[0]


def of_requests(*requests: list[int], drafted: int = 3) -> Acceptance:
    rows = [
        Row("row", accepted, drafted, request=f"r{at}")
        for at, lengths in enumerate(requests)
        for accepted in lengths
    ]
    return measured("file", cycles_of("file", "cycles", rows, None))[0]


def test_by_hand() -> None:
    """100 cycles of 2 drafted tokens: 20 accept none, 16 one, 64 both."""
    found = of_histogram({0: 20, 1: 16, 2: 64}, 2)
    assert (found.cycles, found.accepted, found.drafted) == (100, 144, 200)
    assert found.tokens_per_cycle == pytest.approx(2.44)
    assert [(one.trials, one.accepted, one.chance) for one in found.positions] == [
        (100, 80, pytest.approx(0.8)),
        (80, 64, pytest.approx(0.8)),
    ]
    assert found.constant is not None
    assert found.constant.chance == pytest.approx(0.8)  # 144 accepted of 180 judged
    assert found.constant.expected_tokens == pytest.approx(expected_tokens(0.8, 2))
    assert found.constant.describes is True
    assert found.constant.statistic == pytest.approx(0, abs=1e-12)


def test_an_engines_counter_is_not_the_chance() -> None:
    found = of_histogram({0: 20, 1: 16, 2: 64}, 2)
    assert found.accepted_per_drafted == pytest.approx(0.72)
    assert found.constant is not None and found.constant.chance == pytest.approx(0.8)


def test_the_interval_of_a_chance_is_clopper_and_pearsons() -> None:
    found = of_histogram({0: 20, 1: 16, 2: 64}, 2)
    expected = binomtest(80, 100).proportion_ci(method="exact")
    assert found.positions[0].ci95 == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_the_interval_of_the_mean_is_students() -> None:
    found = of_histogram({0: 20, 1: 16, 2: 64}, 2)
    values = np.repeat([1, 2, 3], [20, 16, 64])
    half = 1.9842 * values.std(ddof=1) / 10  # t of 99 degrees of freedom
    assert found.tokens_ci95 == pytest.approx((2.44 - half, 2.44 + half), abs=1e-4)


def test_acceptance_that_falls_with_the_position_is_no_constant_chance() -> None:
    found = of_histogram({0: 100, 1: 450, 2: 300, 3: 150}, 3)  # 90 %, 50 %, 33 %
    constant = found.constant
    assert constant is not None
    assert (constant.describes, constant.shape) == (False, "falls")
    assert "falls with the position" in constant.because
    assert found.tokens_per_cycle == pytest.approx(2.5)  # measured, whatever describes it


def test_acceptance_that_rises_is_told_so() -> None:
    found = of_histogram({0: 500, 1: 150, 2: 30, 3: 320}, 3)  # 50 %, 70 %, 91 %
    assert found.constant is not None and found.constant.shape == "rises"


def test_totals_give_a_mean_but_no_chance() -> None:
    found, tokens = measured("file", Totals(accepted=1_900, cycles=1_000, drafted=3_000))
    assert found.tokens_per_cycle == pytest.approx(2.9)
    assert tokens is not None and tokens.variance is None
    assert (found.tokens_ci95, found.constant, found.positions) == (None, None, [])
    assert found.accepted_per_drafted == pytest.approx(0.6333, abs=1e-4)
    assert "not the chance of the model" in found.constant_because


def test_totals_without_cycles_do_not_even_give_a_mean() -> None:
    found, tokens = measured("file", Totals(accepted=1_900, cycles=None, drafted=3_000))
    assert (found.tokens_per_cycle, tokens) == (None, None)
    assert "number of verifications was not counted" in found.tokens_because


def test_counters_by_position_are_a_histogram() -> None:
    """Of 1,000 cycles 850 accept position 1, 620 position 2: 150 accept none, 230 one, 620 two."""
    counts = from_positions("file", [850, 620], 1_000, 2_000, None)
    assert dict(zip(counts.accepted.tolist(), counts.times.tolist(), strict=True)) == {0: 150, 1: 230, 2: 620}
    found = measured("file", counts)[0]
    assert found.tokens_per_cycle == pytest.approx(1 + 1_470 / 1_000)
    assert found.positions[1].chance == pytest.approx(620 / 850)


def test_drafts_of_unknown_lengths_have_no_chances() -> None:
    found = measured("file", from_positions("file", [850, 620], 1_000, 1_900, None))[0]
    assert found.tokens_per_cycle == pytest.approx(2.47)
    assert (found.positions, found.constant) == ([], None)
    assert "some drafts were shorter" in found.constant_because


def test_shorter_drafts_are_judged_where_they_were_drafted() -> None:
    rows = [Row("", 2, 2, 30), Row("", 1, 2, 10), Row("", 1, 1, 60)]
    found = measured("file", cycles_of("file", "cycles", rows, None))[0]
    assert [(one.trials, one.accepted) for one in found.positions] == [(100, 100), (40, 30)]
    assert found.constant is not None
    model = 0.6 * expected_tokens(130 / 140, 1) + 0.4 * expected_tokens(130 / 140, 2)
    assert found.constant.expected_tokens == pytest.approx(model)


def test_requests_that_resemble_themselves_widen_every_interval() -> None:
    apart = of_requests(*([[3] * 20] * 5), *([[0] * 20] * 5))
    alone = of_histogram({0: 100, 3: 100}, 3)
    assert apart.tokens_per_cycle == alone.tokens_per_cycle == 2.5
    assert apart.tokens_ci95 is not None and alone.tokens_ci95 is not None
    # ten requests of 1 or 4 tokens: t of 9 degrees of freedom times 1.5 / sqrt(9)
    assert apart.tokens_ci95[1] == pytest.approx(2.5 + 2.262 * 0.5, abs=1e-3)
    assert alone.tokens_ci95[1] < 2.75
    first, other = apart.positions[0].ci95, alone.positions[0].ci95
    assert first is not None and other is not None
    assert first[1] - first[0] > 3 * (other[1] - other[0])


def test_few_requests_have_no_interval() -> None:
    found = of_requests([1, 2, 3, 1], [0, 2, 2])
    assert found.tokens_ci95 is None
    assert "fewer than 5 requests" in found.tokens_because
    assert found.positions[0].ci95 is None


def test_cycles_that_are_all_alike_still_leave_doubt() -> None:
    found = of_histogram({3: 50}, 3)
    assert found.tokens_per_cycle == 4
    assert found.tokens_ci95 is not None
    unseen = 1 - 0.025 ** (1 / 50)
    assert found.tokens_ci95 == pytest.approx((4 - 3 * unseen, 4))
    assert found.positions[0].ci95 is not None and found.positions[0].ci95[0] < 0.94


def test_neighbours_that_resemble_each_other_widen_a_list_of_cycles() -> None:
    blocks = [Row("", accepted, 3) for accepted in ([3] * 25 + [0] * 25) * 4]
    mixed = [Row("", accepted, 3) for accepted in [3, 0] * 100]
    wide, narrow = (measured("f", cycles_of("f", "cycles", rows, None))[0] for rows in (blocks, mixed))
    assert wide.tokens_ci95 is not None and narrow.tokens_ci95 is not None
    assert wide.tokens_ci95[1] - 2.5 > 3 * (narrow.tokens_ci95[1] - 2.5)


@given(
    lengths=st.lists(st.integers(0, 4), min_size=1, max_size=60),
    requests=st.one_of(st.none(), st.lists(st.integers(0, 7), min_size=60, max_size=60)),
)
def test_laws(lengths: list[int], requests: list[int] | None) -> None:
    rows = [
        Row("", accepted, 4, request=None if requests is None else str(requests[at]))
        for at, accepted in enumerate(lengths)
    ]
    found, tokens = measured("f", cycles_of("f", "cycles", rows, None))
    assert found.tokens_per_cycle == pytest.approx(1 + sum(lengths) / len(lengths))
    assert found.positions[0].trials == len(lengths)
    for before, after in zip(found.positions, found.positions[1:], strict=False):
        assert after.trials == before.accepted
    assert sum(one.accepted for one in found.positions) == sum(lengths)
    for one in found.positions:
        if one.ci95 is not None and one.chance is not None:
            assert 0 <= one.ci95[0] <= one.chance <= one.ci95[1] <= 1
    if found.tokens_ci95 is not None:
        assert 1 <= found.tokens_ci95[0] <= found.tokens_per_cycle <= found.tokens_ci95[1] <= 5
    assert tokens is not None
