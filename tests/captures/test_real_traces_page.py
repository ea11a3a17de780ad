"""docs/real-traces.md says what the program says."""

from __future__ import annotations

import runpy
from pathlib import Path

from tests.shared import SHARED, needs_shared

ROOT = Path(__file__).resolve().parents[2]


@needs_shared
def test_the_page_is_what_the_program_says() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "real_traces.py"))
    assert script["document"](SHARED / "traces") == (ROOT / "docs" / "real-traces.md").read_text()
