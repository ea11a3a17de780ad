"""The runs of a scaling study, as given and as they are used."""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.diagnosis import Diagnosis
from analyzer.study.headline import Headline
from analyzer.study.scaling_pins import Pins


@dataclass(frozen=True)
class Given:
    """One run as it was given. ``ranks``: declared rank count, None to take the capture's."""

    name: str
    diagnosis: Diagnosis
    ranks: int | None = None


@dataclass(frozen=True)
class StudyRun:
    """One run with the steps that speak for it. ``unlike``: pins that it declares otherwise than most."""

    given: Given
    ranks: int
    steps: Headline
    pins: Pins
    unlike: list[str]
    used: bool
