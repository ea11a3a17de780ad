"""docs/rules.md and docs/kernel-classes.md say what the program says."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from analyzer.rules import OTHER, builtin_rules, load_rules
from tests.shared import SHARED, needs_shared

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def text() -> str:
    return (DOCS / "rules.md").read_text(encoding="utf-8")


def test_the_example_does_what_it_says(text: str, tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    path = tmp_path / "my-engine.toml"
    path.write_text(example)
    rules = load_rules([path])
    assert rules.kernel_class("void my_engine::token_mix<float>(x)") == "mixer"
    assert rules.kernel_class("void my_engine::pointwise<float, Silu>(x)") == "activation"
    assert rules.collective_operation("my_engine::ring_reduce_norm(x)") == "all_reduce"
    assert rules.is_fused_collective("my_engine::ring_reduce_norm(x)")
    assert not rules.is_collective("my_engine::local_all_gather(x)")
    assert rules.thresholds["supported_share"] == 0.15


def test_every_class_is_explained(text: str) -> None:
    rules = builtin_rules()
    given = {rule.class_ for rule in rules.kernels} | {rule.class_ for rule in rules.collectives} | {OTHER}
    table = text[text.index("## The classes") : text.index("## What names")]
    assert set(re.findall(r"^\| `([\w.]+)` \|", table, re.MULTILINE)) == given


@needs_shared
def test_the_page_of_classes_is_what_the_program_says() -> None:
    script = runpy.run_path(str(DOCS.parent / "scripts" / "kernel_classes.py"))
    page = (DOCS / "kernel-classes.md").read_text(encoding="utf-8")
    assert script["document"](SHARED / "traces") == page
    (share,) = re.findall(r"machine learning: ([\d.]+) %", page)
    assert float(share) >= 98
