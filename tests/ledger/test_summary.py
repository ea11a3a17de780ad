"""Sums over a ledger, and the floor of a known bandwidth."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer import strict_json
from analyzer.errors import UsageError
from analyzer.ledger.model import (
    FORMAT,
    DeviceBandwidth,
    Entry,
    Kind,
    Layout,
    Ledger,
    Phase,
    Workload,
)
from analyzer.ledger.summary import device_bandwidth, summarize
from analyzer.report import byte_ledger_text

GB = 10**9


def entry(size: int, *ranks: int, kind: Kind = "dense-weights", **more: Any) -> Entry:
    return Entry(kind=kind, ranks=list(ranks) or [0], bytes=size, basis="declared", source="hand", **more)


def ledger(*phases: Phase, tokens: float | None = None, **more: Any) -> Ledger:
    workload = Workload(name="decode", tokens_per_step=tokens)
    return Ledger(format=FORMAT, format_version=1, workload=workload, phase=list(phases), **more)


def test_eight_ranks_of_two_gigabytes() -> None:
    found = summarize(ledger(Phase(name="step", entry=[entry(2 * GB, *range(8))])), 4.8e12, "sheet")
    assert found.floor_ns is not None
    assert round(found.floor_ns / 1e6, 3) == 0.417
    assert found.ceiling_tokens_per_s is None  # tokens of a step are not told


def test_ten_gigabytes_and_two_hundred_tokens() -> None:
    found = summarize(ledger(Phase(name="step", entry=[entry(10 * GB)]), tokens=1), 2e12, "sheet")
    assert (found.floor_ns, found.ceiling_tokens_per_s) == (5e6, 200.0)


def test_sums_are_per_rank_and_phases_add_their_slowest() -> None:
    attention = Phase(
        name="attention",
        entry=[
            entry(6 * GB, 0, 1, flop=12 * GB, flop_dtype="bf16"),
            entry(1 * GB, 1, kind="kv-cache"),
            entry(2 * GB, 0, kind="kv-cache", name="more", flop=4 * GB, flop_dtype="bf16"),
        ],
    )
    experts = Phase(name="experts", entry=[entry(1 * GB, 0), entry(4 * GB, 1)])
    found = summarize(ledger(attention, experts), 1e12, "sheet")
    assert [(row.kind, row.sums.bytes_min, row.sums.bytes_max) for row in found.kinds] == [
        ("dense-weights", 6 * GB, 6 * GB),
        ("kv-cache", 1 * GB, 2 * GB),
        ("dense-weights", 1 * GB, 4 * GB),
    ]
    first, second = found.phases
    assert (first.sums.bytes_min, first.sums.bytes_max) == (7 * GB, 8 * GB)
    assert (first.sums.flop_max, first.sums.flop_per_byte) == (16 * GB, 2.0)
    assert (second.sums.flop_max, second.sums.flop_per_byte) == (None, None)
    assert [row.sums.flop_complete for row in found.kinds] == [True, False, False]
    assert not first.sums.flop_complete  # what one entry does not tell is in no sum
    assert (found.total.bytes_min, found.total.bytes_max) == (9 * GB, 11 * GB)
    assert found.floors is not None
    assert [(row.floor_ns, row.rank, row.bytes) for row in found.floors] == [
        (8e6, 0, 8 * GB),
        (4e6, 1, 4 * GB),
    ]
    assert found.floor_ns == 12e6  # more than any one rank's 11 ms


def test_phases_that_overlap_share_the_bandwidth() -> None:
    copies = Phase(name="copies", overlaps_previous=True, entry=[entry(3 * GB, 1, kind="activations")])
    found = summarize(
        ledger(Phase(name="work", entry=[entry(4 * GB, 0), entry(2 * GB, 1)]), copies), 1e12, "sheet"
    )
    assert found.floors is not None
    assert [(row.phases, row.floor_ns, row.rank) for row in found.floors] == [(["work", "copies"], 5e6, 1)]


def test_of_pipeline_stages_the_busiest_rank_bounds_the_rate() -> None:
    """A batch takes 2 + 3 ms; with one in each stage the second ends one every 3 ms."""
    stages = [
        Phase(name="stage 0", entry=[entry(2 * GB, 0)]),
        Phase(name="stage 1", entry=[entry(3 * GB, 1)]),
    ]
    made = ledger(*stages, tokens=3, layout=Layout(ranks=2, pipeline=2))
    found = summarize(made, 1e12, "sheet")
    assert (found.floor_ns, found.ceiling_tokens_per_s) == (5e6, 1000)
    assert "each stage works on a batch of its own" in " ".join(byte_ledger_text.text(found).split())


def test_a_phase_without_bytes_has_no_floor_and_stops_nothing() -> None:
    made = ledger(Phase(name="step", entry=[entry(2 * GB)]), Phase(name="none", entry=[entry(0)]))
    found = summarize(made, 1e12, "sheet")
    assert found.floors is not None
    assert ([row.phases for row in found.floors], found.floor_ns) == ([["step"]], 2e6)


def test_the_ledgers_own_bandwidth_goes_first_and_a_missing_one_gives_no_floor() -> None:
    own = DeviceBandwidth(ranks=[1], source="measured", bytes_per_s=1e12)
    both = ledger(Phase(name="step", entry=[entry(2 * GB, 0, 1)]), device=[own])
    found = summarize(both, 2e12, "sheet")
    assert [(row.ranks, row.bytes_per_s, row.source) for row in found.bandwidth] == [
        ([1], 1e12, "ledger: measured"),
        ([0], 2e12, "sheet"),
    ]
    assert found.floor_ns == 2e6
    alone = summarize(both)
    assert (alone.floors, alone.floor_ns, alone.ceiling_tokens_per_s) == (None, None, None)


def test_devices_of_the_table() -> None:
    assert device_bandwidth("NVIDIA H200") == (4_916_736_000_000, "H200 SXM: driver figures in public traces")
    with pytest.raises(UsageError, match="is not one device of the table"):
        device_bandwidth("NVIDIA H100")


@given(
    st.lists(
        st.lists(
            st.tuples(st.sets(st.integers(0, 3), min_size=1), st.integers(1, 10**12)), min_size=1, max_size=4
        ),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_the_floor_is_never_below_a_ranks_own_bytes(sizes: Any, beside: list[bool]) -> None:
    phases = [
        Phase(
            name=str(number),
            overlaps_previous=number > 0 and beside[number],
            entry=[entry(size, *sorted(ranks), name=str(place)) for place, (ranks, size) in enumerate(rows)],
        )
        for number, rows in enumerate(sizes)
    ]
    found = summarize(ledger(*phases), 1e12, "sheet")
    assert found.floor_ns is not None
    assert found.floor_ns >= found.total.bytes_max / 1e12 * 1e9 * (1 - 1e-12)
    assert sum(row.sums.bytes_max for row in found.phases) >= found.total.bytes_max
    assert strict_json.encode(found) == strict_json.encode(summarize(ledger(*phases), 1e12, "sheet"))
