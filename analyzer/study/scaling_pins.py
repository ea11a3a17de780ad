"""Whether runs of different rank counts were asked for the same work: pins that must agree, and those that may not.

The work of one rank differs by design, so launched work is not compared. What must agree is what the group as a whole
was asked for, and by what; flags, hardware, clocks and topology change with the ranks and are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from analyzer.diagnosis import Diagnosis

MUST_AGREE = (
    "model",
    "precision",
    "weights",
    "runtime",
    "input",
    "context",
    "batch",
    "cache_initialization",
)
MAY_DIFFER = ("flags", "hardware", "clocks", "topology")
BOUNDARY = "timing_boundary"


def pins_of(diagnosis: Diagnosis) -> dict[str, str]:
    """Declared and found pins; the boundary is the diagnosis' own."""
    pins = {} if diagnosis.run is None else {name: pin.value for name, pin in diagnosis.run.pins.items()}
    return {**pins, BOUNDARY: diagnosis.boundary}


def unlike(runs: Sequence[Diagnosis]) -> list[list[str]]:
    """For each run the pins that it declares otherwise than most do (than the first, where equally many do)."""
    pins = [pins_of(run) for run in runs]
    usual = {name: _usual([one[name] for one in pins if name in one]) for name in (*MUST_AGREE, BOUNDARY)}
    return [[name for name, value in usual.items() if name in one and one[name] != value] for one in pins]


def _usual(values: Sequence[str]) -> str | None:
    """The most frequent, of equally frequent ones the first."""
    return Counter(values).most_common(1)[0][0] if values else None


def shared(runs: Sequence[Diagnosis]) -> dict[str, str]:
    """Pins that all runs have, equally."""
    pins = [pins_of(run) for run in runs]
    return {
        name: pins[0][name]
        for name in (*MUST_AGREE, *MAY_DIFFER, BOUNDARY)
        if all(name in one and one[name] == pins[0].get(name) for one in pins)
    }


def differing(runs: Sequence[Diagnosis]) -> dict[str, list[str]]:
    """Pins with several values: of each run, "" where it does not declare one."""
    pins = [pins_of(run) for run in runs]
    rows = {name: [one.get(name, "") for one in pins] for name in (*MUST_AGREE, *MAY_DIFFER, BOUNDARY)}
    return {name: values for name, values in rows.items() if len({*values} - {""}) > 1}


def undeclared(runs: Sequence[Diagnosis]) -> list[str]:
    """Pins of which some run says nothing, so that nobody knows whether they agree."""
    pins = [pins_of(run) for run in runs]
    return [name for name in (*MUST_AGREE, *MAY_DIFFER) if not all(name in one for one in pins)]
