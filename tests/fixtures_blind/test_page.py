"""The page that scripts/accuracy.py writes, from literal outcomes."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from fixtures.blind.outcomes import Answer, Outcome

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "accuracy.py"))


RIGHT = Outcome(7, "nsys", True, 9, "", (Answer("copies", 0.30, True, "supported", 0.3, 0.2, 0.4),))
MISSED = Outcome(8, "nsys", False, 9, "", (Answer("copies", 0.20, True, "inconclusive", 0.1, 0.05, 0.15),))


def test_the_sets_that_may_be_looked_at_alone(script: dict[str, Any]) -> None:
    page = script["document"]([RIGHT, MISSED], [RIGHT], None, "abc1234")
    assert "2 captures, 1 of them complete with exact clocks." in page
    assert "| right where a cause holds at least 15 % | 1 of 2 (50.0 %) | 95 % |" in page
    assert "| intervals that hold the true share | 1 of 2 (50.0 %) | 90 % |" in page
    assert "| `copies` | 15 % and more | 1 + 0 | 1 + 0 |  |  |" in page
    assert "| 8 | `copies` | 20.00 % | 10.00 % | 5.00 % to 15.00 % | inconclusive | not supported |" in page
    assert script["FIRST_LOOK"] in page.split("## Spent sets")[1]
    assert page.endswith("## Held-out set\n\nNot looked at yet.\n")
    assert "abc1234" not in page


def test_the_held_out_set_names_the_commit_of_its_rules(script: dict[str, Any]) -> None:
    page = script["document"]([MISSED], [MISSED], [RIGHT], "abc1234")
    held_out = page.split("## Held-out set")[1]
    assert "The figures below are with the rules of commit `abc1234`." in held_out
    assert "1 of 1 (100.0 %)" in held_out
    assert "No verdict was wrong." in held_out


def test_the_page_in_the_documentation_has_the_introduction_of_the_script(script: dict[str, Any]) -> None:
    assert (ROOT / "docs" / "accuracy.md").read_text().startswith(script["INTRODUCTION"])
