"""``tracebound whatif`` as text for a terminal, and as JSON."""

from __future__ import annotations

import textwrap

import msgspec

from analyzer import strict_json
from analyzer.diagnosis import Diagnosis, Input
from analyzer.predicted import WhatIf
from analyzer.report import predictions
from analyzer.report.escape import visible
from analyzer.report.tables import columns, section

WIDTH = 100
FORMAT, FORMAT_VERSION = "tracebound.whatif", 1


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What ``whatif --format json`` prints."""

    format: str
    format_version: int
    tracebound_version: str
    inputs: list[Input]
    boundary: str
    whatif: WhatIf

    def to_json(self) -> bytes:
        """Strict JSON, newline at the end."""
        strict_json.require_finite([self.whatif])
        return strict_json.encode(self)


def answer(diagnosis: Diagnosis) -> Answer:
    """The predictions of a diagnosis on their own."""
    assert diagnosis.whatif is not None  # every analysis has them, or says why they are withheld
    return Answer(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        tracebound_version=diagnosis.tracebound_version,
        inputs=diagnosis.inputs,
        boundary=diagnosis.step_boundary,
        whatif=diagnosis.whatif,
    )


def text(whatif: WhatIf) -> str:
    """Tables by phase, then what they rest on."""
    if whatif.withheld:
        return _wrapped(f"No prediction: {visible(whatif.withheld, 400)}.") + "\n"
    parts = []
    for (phase, scope, rank), rows in predictions.phases(whatif).items():
        where = "all ranks" if scope == "global" else f"rank {rank}"
        body = columns(
            predictions.HEADER,
            [predictions.cells(row, lambda change: visible(change, 48), visible) for row in rows],
            left=(0, 4),
        )
        parts.append(section(f"Phase {visible(phase, 60)}, {where}: {predictions.now(rows)}", body))
    told = [
        f"{visible(change, 48)}: {visible(words, 400)}" for change, words in predictions.notes(whatif.changes)
    ]
    if told:
        parts.append(section("Notes", "\n".join(_wrapped(line) for line in told)))
    if whatif.assumptions:
        lines = [_wrapped(predictions.assumption(row)) for row in whatif.assumptions]
        parts.append(section("Assumptions (ns; --assume NAME=NS sets one)", "\n".join(lines)))
    parts.append(_wrapped(f"{predictions.MODEL} {predictions.checked(whatif)}") + "\n")
    return "\n".join(parts)


def _wrapped(line: str) -> str:
    return textwrap.fill(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
