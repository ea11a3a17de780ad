from decimal import ROUND_HALF_EVEN, Decimal

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analyzer.readers.kineto_json.events import Event, proven_ns, text_ns

PROFILER_NS = st.integers(-(2**53), 2**53 * 200)


def read(*texts: str) -> list[object]:
    text = "[" + ",".join(f'{{"ts":{t}}}' for t in texts) + "]"
    return [event.ts for event in msgspec.json.decode(text, type=list[Event])]


def with_three_decimals(ns: int) -> str:
    sign = "-" if ns < 0 else ""
    return f"{sign}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"


@given(PROFILER_NS)
@example(4458676524648797)  # between 2**42 us and 2**52 ns: ts * 1000 rounds wrongly for such values
@example(4458676524648501)
@example(1712195495519689047)
def test_three_decimals_are_read_exactly_or_not_claimed(ns: int) -> None:
    text = with_three_decimals(ns)
    claimed = proven_ns(read(text))  # type: ignore[arg-type]
    assert claimed is None or claimed.tolist() == [ns]
    assert text_ns(text.encode()) == ns
    if abs(ns) < 2**43 * 1000:
        assert claimed is not None, "the fast path must carry the files that profilers write"


@given(st.integers(0, 10**9))
def test_multiplying_the_double_is_not_exact_where_profilers_write(offset: int) -> None:
    ns = 4_398_046_511_104_000 + offset * 100  # 2**42 us and what follows
    claimed = proven_ns(read(with_three_decimals(ns)))  # type: ignore[arg-type]
    assert claimed is not None
    assert claimed.tolist() == [ns]


@given(st.decimals(-(10**12), 2 * 10**15, allow_nan=False, allow_infinity=False, places=None))
def test_any_decimal_text_is_rounded_half_to_even(value: Decimal) -> None:
    expected = (
        int(value.scaleb(3).to_integral_value(rounding=ROUND_HALF_EVEN)) if len(str(value)) < 25 else None
    )
    got = text_ns(str(value).encode())
    if expected is not None:
        assert got == expected
    claimed = proven_ns(read(format(value, "f") if value else "0"))  # type: ignore[arg-type]
    assert claimed is None or claimed.tolist() == [got]


@given(st.lists(st.integers(-(2**40), 4_611_686_018_427_386), min_size=1, max_size=4))
def test_integers_are_exact(values: list[int]) -> None:
    claimed = proven_ns(list(values))
    assert claimed is not None
    assert claimed.tolist() == [value * 1000 for value in values]


@pytest.mark.parametrize(
    "bad", ['"x"', "null", '"1e999"', '"nan"', '"inf"', "[]", "{}", "true", "1e30", '""']
)
def test_what_is_no_time_is_none(bad: str) -> None:
    assert text_ns(bad.encode()) is None


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ('"1000.250"', 1000250),
        ('"30.5"', 30500),
        ("1.5e3", 1_500_000),
        ("-0.001", -1),
        ("7", 7000),
        ('" 5 "', 5000),
    ],
)
def test_numbers_and_numeric_strings(text: str, ns: int) -> None:
    assert text_ns(text.encode()) == ns


def test_epoch_decimals_are_never_taken_from_a_double() -> None:
    assert proven_ns(read("1778655624745710.848")) is None  # type: ignore[arg-type]


def test_ints_and_floats_mixed_are_exact_or_not_claimed() -> None:
    assert proven_ns([1, 2.5]).tolist() == [1000, 2500]  # type: ignore[union-attr]
    assert proven_ns([1778655624745710, 2.5]) is None
    assert proven_ns([2**70, 1]) is None
