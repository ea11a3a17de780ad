"""Real captures, replayed as they are."""

from __future__ import annotations

import numpy as np
import pytest

from analyzer.predict.prediction import Predictor, assumptions_of
from fixtures.predictions.case import graph_of_capture
from tests.captures.results import HOST_ONLY, capture_names, capture_of
from tests.shared import needs_shared

pytestmark = needs_shared


@pytest.mark.parametrize("name", [name for name in capture_names() if name not in HOST_ONLY])
def test_the_unchanged_replay_is_the_capture_to_the_nanosecond(name: str) -> None:
    graph, _ = graph_of_capture(capture_of(name))
    before = Predictor(graph, assumptions_of(graph, {})).replay(()).before[:, 0]
    off = np.flatnonzero(before != graph.at_ns)
    assert not len(off)
