"""Real captures, replayed as they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analyzer.predict.prediction import Predictor, assumptions_of
from fixtures.predictions.captures import answer_from
from fixtures.predictions.case import graph_of_capture
from fixtures.predictions.page import TITLE, capture_line
from tests.captures.results import HOST_ONLY, analysis_of, capture_names, capture_of
from tests.shared import needs_shared

pytestmark = needs_shared


@pytest.mark.parametrize("name", [name for name in capture_names() if name not in HOST_ONLY])
def test_the_unchanged_replay_is_the_capture_to_the_nanosecond(name: str) -> None:
    graph, _ = graph_of_capture(capture_of(name))
    before = Predictor(graph, assumptions_of(graph, {})).replay(()).base.times[:, 0]
    off = np.flatnonzero(before != graph.at_ns)
    assert not len(off)


PAGE = Path(__file__).resolve().parents[2] / "docs" / "accuracy.md"


@pytest.mark.parametrize("name", capture_names())
def test_the_page_has_how_far_odd_steps_reproduce_even_ones(name: str) -> None:
    line = capture_line(answer_from(name, analysis_of(name).diagnosis))
    assert line in PAGE.read_text(encoding="utf-8").partition(TITLE)[2]
