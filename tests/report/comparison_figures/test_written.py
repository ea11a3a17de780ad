"""What a reader sees of both figures, and that the same comparison gives the same bytes."""

from __future__ import annotations

import hashlib
import importlib
import io
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib
import pytest
from PIL import Image

from analyzer.report.comparison_figures import NAMES, figures
from analyzer.report.figures import NotDrawn
from analyzer.report.figures.sheet import Sheet, drawing
from tests.report.comparison_builder import A_NS, comparison
from tests.report.comparison_figures.cases import CASES
from tests.report.figures.tables import layout_problems
from tests.report.figures.test_palette import too_alike

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", CASES)
def test_no_text_overlaps_or_is_cut_off(case: str, name: str) -> None:
    with drawing():
        sheet = importlib.import_module(f"analyzer.report.comparison_figures.{name}").draw(CASES[case]())
        assert isinstance(sheet, Sheet)
        sheet.finish()
        assert layout_problems(sheet) == []
        for _, entries in sheet.legends:
            assert too_alike([entry.fill for entry in entries], 15, 9, 20) == []


def test_both_figures_are_drawn_and_described() -> None:
    found = figures(comparison())
    assert found.not_drawn == ()
    assert [one.name for one in found.drawn] == list(NAMES)
    assert sorted(found.files()) == sorted(f"{name}{suffix}" for name in NAMES for suffix in (".svg", ".png"))
    for one in found.drawn:
        assert ET.fromstring(one.svg).tag == "{http://www.w3.org/2000/svg}svg"
        assert b"<dc:date>" not in one.svg
        assert len(one.svg) < 200_000
        assert Image.open(io.BytesIO(one.png)).size[0] == 1_440
        assert len(one.alt_text) > 60


def test_what_has_nothing_to_show_is_named() -> None:
    found = figures(comparison(b_ns=A_NS, b_times=[]))
    assert found.drawn == ()
    assert found.not_drawn == (
        NotDrawn("waterfall", "no category differs between the mean steps"),
        NotDrawn("step_times", "no step time of B is part of this result"),
    )


def test_settings_of_the_user_have_no_influence_and_stay() -> None:
    before = figures(comparison()).files()
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "text.usetex": True}):
        assert figures(comparison()).files() == before
        assert matplotlib.rcParams["font.size"] == 30


SCRIPT = """
import hashlib, sys
from analyzer.report.comparison_figures import figures
from tests.report.comparison_builder import comparison
assert "matplotlib" not in sys.modules
files = figures(comparison()).files()
assert "matplotlib.pyplot" not in sys.modules
print(hashlib.sha256(b"".join(files.values())).hexdigest())
"""


def test_another_process_draws_the_same_bytes_without_pyplot() -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "1", "MPLBACKEND": "svg"}
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    here = hashlib.sha256(b"".join(figures(comparison()).files().values())).hexdigest()
    assert found.stdout.strip() == here
