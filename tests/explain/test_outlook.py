"""What of a capture is predicted: phases with enough steps, and no other."""

from __future__ import annotations

from analyzer import pipeline
from tests.builders import schedule


def test_a_phase_of_too_few_steps_is_not_predicted_however_well_others_replay() -> None:
    built = schedule()
    for at in range(0, 9_000, 1_000):
        name = "prefill" if at < 2_000 else "decode"
        built.range(at, at + 90, name)
        built.launch(at, at + 10, runs=(at + 10, at + 60), name="gemm")
        built.sync(at + 11, at + 70, stream=7)
    found = pipeline.analyze(built.capture(), steps="^(prefill|decode)$", changes=("kernel:.=0.5",)).diagnosis
    assert found.whatif is not None and not found.whatif.withheld
    rows = {row.phase: row for row in found.whatif.changes if row.change == "kernel:.=0.5"}
    assert rows["decode"].predicted_step_ns is not None
    assert rows["prefill"].predicted_step_ns is None
    assert rows["prefill"].because == "2 of this phase's steps are replayed: at least 4 are needed"
