"""The text of ``tracebound ledger show``: the golden one, and what hostile names may not do to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.ledger.model import FORMAT, Entry, Layout, Ledger, Phase, Uncounted, Workload
from analyzer.ledger.summary import summarize
from analyzer.report import byte_ledger_text
from tests.report.test_markdown import HOSTILE

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "byte_ledger.txt"


def ledger(name: str = "decode, batch 8") -> Ledger:
    attention = Phase(
        name="attention",
        entry=[
            Entry(kind="dense-weights", ranks=[0, 1], bytes=1_250_000_000, basis="header", source="headers",
                  flop=20_000_000_000, flop_dtype="bf16"),
            Entry(kind="kv-cache", ranks=[0], bytes=330_000, basis="model", source="context"),
        ],
    )  # fmt: skip
    experts = Phase(
        name="feed-forward",
        overlaps_previous=True,
        entry=[
            Entry(kind="routed-experts", ranks=[0], bytes=999, basis="measured", source="counts"),
            Entry(kind="routed-experts", ranks=[1], bytes=2_000_000_000, basis="measured", source="counts"),
        ],
    )
    head = Phase(
        name="head",
        entry=[Entry(kind="dense-weights", ranks=[1], bytes=5_000, basis="header", source="headers")],
    )
    spare = [
        Uncounted(name=f"mtp.*.{letter}.weight", dtype="BF16", shape=[4, 4096], bytes=9_000_000 - number,
                  why="not read", tensors=3)
        for number, letter in enumerate("abcdefghijklm")
    ]  # fmt: skip
    foreign = Uncounted(name="odd", dtype="F32", shape=[], bytes=4, why="no rule knows it")
    return Ledger(
        format=FORMAT,
        format_version=1,
        workload=Workload(
            name=name,
            tokens_per_step=8,
            model="tiny (LlamaForCausalLM)",
            assumptions=[
                "each weight is read once",
                "every sequence has 4096 tokens in the cache, " + "and so on " * 20,
            ],
        ),
        phase=[attention, experts, head],
        layout=Layout(ranks=2, tensor=2),
        uncounted=[*spare, foreign],
    )


def test_the_golden_text(request: pytest.FixtureRequest) -> None:
    found = byte_ledger_text.text(summarize(ledger(), 4.8e12, "--bandwidth"))
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(found, encoding="utf-8")
    assert found == GOLDEN.read_text(encoding="utf-8")


def test_without_a_bandwidth_there_is_no_floor_and_the_way_to_one_is_told() -> None:
    found = byte_ledger_text.text(summarize(ledger()))
    assert "no memory bandwidth is known for every rank; --device NAME or --bandwidth RATE tells it" in found
    assert "at least" not in found


def test_a_foreign_tensor_stands_before_larger_ones_that_are_not_read() -> None:
    rows = byte_ledger_text.text(summarize(ledger())).split("Not counted\n")[1].splitlines()
    assert rows[2].startswith("odd ")
    assert "and 6 more tensors of 18 MB: the ledger lists all" in rows


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_on_their_line(name: str) -> None:
    plain = byte_ledger_text.text(summarize(ledger("x")))
    found = byte_ledger_text.text(summarize(ledger(name or "x")))
    assert len(found.splitlines()) >= len(plain.splitlines())
    assert "\x1b" not in found
    assert found.split("Bytes per step")[1] == plain.split("Bytes per step")[1]
