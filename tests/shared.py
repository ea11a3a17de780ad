"""Where the shared captures and cases lie; tests that need them skip visibly where they are absent."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"

needs_shared = pytest.mark.skipif(
    not (SHARED / "traces" / "MANIFEST.tsv").exists(),
    reason="the shared captures (../shared) are not here",
)


def trace_path(name: str) -> Path:
    """A capture of ../shared/traces by its path there."""
    return SHARED / "traces" / name


def case_path(name: str) -> Path:
    """A file of ../shared/cases."""
    return SHARED / "cases" / name
