"""The project's worked examples, from the functions."""

from __future__ import annotations

import doctest

import pytest

from analyzer import calculators, hardware
from tests.calculators.worked_examples import EXAMPLES, Example


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.figure}: {example.what}")
def test_the_function_gives_the_number_and_its_kind(example: Example) -> None:
    result = example.call()
    figures = {figure.name: figure for figure in result.figures()}
    assert round(figures[example.figure].value / example.unit, example.digits) == example.expected  # type: ignore[operator]
    assert figures[example.figure].kind == example.kind
    assert result.assumptions


@pytest.mark.parametrize("package", [calculators, hardware])
def test_the_examples_of_the_docstrings(package: object) -> None:
    assert doctest.testmod(package) == (0, 2)  # type: ignore[arg-type]
