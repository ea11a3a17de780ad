"""Options of the test run."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the expected reports in tests/golden"
    )


def pytest_report_header() -> str:
    """Which simulated programs this run draws, so that a failure can be run again."""
    from tests.laws.programs import COUNT, FIRST

    return f"simulated programs: seeds {FIRST} to {FIRST + COUNT - 1} per law"
