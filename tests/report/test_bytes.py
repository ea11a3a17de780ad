"""The report's section on bytes and floors."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from analyzer.diagnosis import ByteFloor, Bytes, CounterSource, FloorPart, KindBytes, MeasuredBytes, RankBytes
from analyzer.report.bytes import bytes_view
from analyzer.report.markdown import render
from tests.report.builder import diagnosis

HOSTILE = "evil`|<b>\n# x"


def floor(**changes: Any) -> ByteFloor:
    values: dict[str, Any] = {
        "phase": "decode", "scope": "rank", "rank": 0, "ranks": [0], "windows": 9, "step_ns": 20e6,
        "step_interval_ns": (19.5e6, 20.5e6), "floor_ns": 5e6,
        "parts": [FloorPart(phases=["layers"], floor_ns=5e6, rank=0)], "fraction": 0.25,
        "fraction_interval": (0.2439, 0.2564), "unexplained_ns": 15e6, "unexplained_interval_ns": (14.5e6, 15.5e6),
        "achievable_ns": None, "fraction_of_achievable": None, "tokens_per_step": 1.0,
        "ceiling_tokens_per_s": 200.0, "observed_tokens_per_s": 50.0, "fraction_of_ceiling": 0.25, "notes": [],
    }  # fmt: skip
    return ByteFloor(**{**values, **changes})


def rank(number: int = 0, **changes: Any) -> RankBytes:
    values: dict[str, Any] = {
        "phase": "decode", "rank": number, "windows": 9, "bandwidth_bytes_per_s": 2e12, "bandwidth_basis": "ledger",
        "bandwidth_source": "by hand", "copy_bytes_per_s": None, "modelled_bytes": 10_000_000_000,
        "modelled": [
            KindBytes(phase="layers", kind="dense-weights", bytes=8_000_000_000, basis=["header"], sources=["model"]),
            KindBytes(phase="layers", kind="kv-cache", bytes=2_000_000_000, basis=["model"], sources=["formula"]),
        ],
        "floor_ns": 5e6, "kernel_ns": 15e6, "measured": [], "flop": 20_000_000_000, "flop_complete": True,
        "flop_per_byte": 2.0, "ridge_flop_per_byte": 494.5, "ridge_dtype": "bf16", "peak_source": "by hand",
        "near_bandwidth_modelled": None, "near_peak_modelled": None,
    }  # fmt: skip
    return RankBytes(**{**values, **changes})


def known(**changes: Any) -> Bytes:
    values: dict[str, Any] = {
        "ledger": "ledger.toml", "ledger_name": "toy", "floors": [floor()], "ranks": [rank()], "counters": [],
        "uncounted": 0, "uncounted_bytes": 0, "why_no_floor": "", "findings": [],
    }  # fmt: skip
    return Bytes(**{**values, **changes})


def lines(found: Bytes) -> list[str]:
    view = bytes_view(diagnosis(bytes=found))
    assert view is not None
    return view.lines


def test_without_ledger_and_counters_there_is_no_section() -> None:
    assert bytes_view(diagnosis()) is None
    assert "Bytes and floors" not in render(diagnosis())


def test_a_floor_stands_beside_the_step_with_what_it_leaves_open() -> None:
    assert lines(known())[0] == (
        "**Phase `decode`**, rank 0: its bytes take at least 5.000 ms; the step took 20.000 ms (19.500 to 20.500 ms,"
        " 95 % interval), mean of 9 steps: the floor is 25.0 % of it, and 15.000 ms are not explained by bytes. At most"
        " 200.0 tokens/s; observed 50.0, 25.0 % of that ceiling."
        " Bandwidth of a device: 2,000 GB/s (the ledger's: by hand)."
    )


def test_far_above_a_floor_locates_nothing_in_words() -> None:
    assert lines(known())[1].startswith("Being far above a floor locates no bottleneck")


def test_a_floor_of_several_ranks_says_who_sets_it() -> None:
    parts = [
        FloorPart(phases=["a"], floor_ns=2e6, rank=3),
        FloorPart(phases=["b", "c"], floor_ns=3e6, rank=1),
    ]
    text = lines(known(floors=[floor(scope="global", rank=None, ranks=[0, 1, 2, 3], parts=parts)]))[0]
    assert "all ranks on one clock: its bytes" in text
    assert "Set by `a` 2.000 ms (rank 3), `b` beside `c` 3.000 ms (rank 1)." in text


def test_copies_are_told_apart_from_the_bound() -> None:
    text = lines(known(floors=[floor(achievable_ns=6.25e6, fraction_of_achievable=0.3125)]))[0]
    assert text.endswith("At the measured copy bandwidth (no bound): 6.250 ms, 31.3 % of the step.")


def test_a_step_below_its_floor_has_no_share() -> None:
    below = floor(fraction=None, unexplained_ns=None, fraction_interval=None, unexplained_interval_ns=None,
                  fraction_of_ceiling=None, notes=["the step is shorter than its floor"])  # fmt: skip
    text = lines(known(floors=[below]))
    assert "%" not in text[0].replace("95 % interval", "")
    assert text[1] == "The step is shorter than its floor."


def test_the_same_bytes_are_another_share_of_ranks_that_move_more() -> None:
    view = bytes_view(diagnosis(bytes=known(ranks=[rank(0), rank(1, modelled_bytes=16_000_000_000)])))
    assert view is not None
    assert re.search(r"\| dense-weights +\| 0-1 +\| +8\.000 \| +50\.0 to 80\.0 % \|", view.kinds)
    alone = bytes_view(diagnosis(bytes=known()))
    assert alone is not None
    assert re.search(r"\| dense-weights +\| 0 +\| +8\.000 \| +80\.0 % \|", alone.kinds)


def test_no_floor_says_why_and_findings_stand_out() -> None:
    found = known(floors=[], why_no_floor="no phase matches", findings=["counted less than modelled"])
    assert lines(found) == ["No floor: no phase matches.", "**Finding**: counted less than modelled."]


def test_counters_alone_say_what_they_are_and_what_a_floor_takes() -> None:
    (line,) = lines(known(ledger=None, ledger_name=None, floors=[]))
    assert (
        line == "Counted bytes are a measurement. No ledger was given (`--ledger FILE`): there is no floor."
    )
    assert not any("No ledger" in one for one in lines(known()))


def test_modelled_and_counted_bytes_stand_side_by_side() -> None:
    counted = MeasuredBytes(
        by="nsight-compute", bytes=9e9, interval=(9e9, 9.5e9), of_kernel_time=0.97, disagreement=-0.1
    )
    view = bytes_view(diagnosis(bytes=known(ranks=[rank(measured=[counted]), rank(1, flop_complete=False)])))
    assert view is not None
    first, second = view.ranks.splitlines()[2:]
    alike = bytes_view(diagnosis(bytes=known(ranks=[rank(number) for number in (0, 1, 2, 5)])))
    assert alike is not None
    (row,) = alike.ranks.splitlines()[2:]
    assert "| 0-2, 5 |" in row
    assert "9.000 (9.000 to 9.500) Nsight Compute, of 97.0 % of kernel time, -10 %" in first
    assert "10.000" in first and "2,000" in first
    assert "2 or more" in second


def test_equal_ranks_share_a_row_of_kinds() -> None:
    view = bytes_view(diagnosis(bytes=known(ranks=[rank(number) for number in range(4)])))
    assert view is not None
    rows = view.kinds.splitlines()[2:]
    assert len(rows) == 2
    assert "0-3" in rows[0] and "80.0 %" in rows[0]


def test_sources_say_what_kind_of_number_they_bring() -> None:
    sources = [
        CounterSource(
            kind="nsight-compute", path="ncu.csv", rank=None, names=["gone"], kernels=3, launches=7
        ),
        CounterSource(kind="gpu-metrics", path="a.sqlite", rank=0, names=["DRAM"], kernels=0, launches=0),
    ]
    view = bytes_view(diagnosis(bytes=known(counters=sources)))
    assert view is not None
    assert "Its bytes are a model" in view.sources[0]
    assert view.sources[1] == "Arithmetic peaks behind the ridge, dense: by hand."
    assert "Not by name in this trace: `gone`" in view.sources[2]
    assert "no real export" in view.sources[3]


def test_texts_of_files_are_data() -> None:
    odd = rank(
        bandwidth_source=HOSTILE,
        modelled=[KindBytes(phase=HOSTILE, kind="kv-cache", bytes=1, basis=["model"], sources=[HOSTILE])],
    )
    found = known(
        ledger=HOSTILE, ledger_name=HOSTILE, ranks=[odd], findings=[HOSTILE],
        floors=[floor(notes=[HOSTILE], parts=[FloorPart(phases=[HOSTILE], floor_ns=1.0, rank=0)] * 2)],
        counters=[CounterSource(kind="nsight-compute", path=HOSTILE, rank=0, names=[HOSTILE], kernels=1, launches=1)],
    )  # fmt: skip
    text = render(diagnosis(bytes=found))
    assert "<b>" not in re.sub(r"`[^`\n]*`", "", text)  # a code span shows it as it is
    assert "\n# x" not in text


def test_the_json_holds_every_figure() -> None:
    found = diagnosis(bytes=known())
    data = msgspec.json.decode(msgspec.json.encode(found))
    assert data["bytes"]["floors"][0]["floor_ns"] == 5e6
