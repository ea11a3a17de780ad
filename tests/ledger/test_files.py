"""Ledger files: what is written is read again, and every defect is named with its place."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import InvariantError, TraceboundError, TraceError
from analyzer.ledger import files
from analyzer.ledger.model import (
    FORMAT,
    Basis,
    DeviceBandwidth,
    Entry,
    Kind,
    Layout,
    Ledger,
    Phase,
    Uncounted,
    Workload,
)

HAND_WRITTEN = """
format = "tracebound.ledger"
format_version = 1

[workload]
name = "decode, batch 1"
tokens_per_step = 1
applies_to = 'decode'

[layout]
ranks = 8
tensor = 8

[[phase]]
name = "attention"
kernels = 'flash|gemm'

[[phase.entry]]
kind = "dense-weights"
ranks = [0, 1, 2, 3, 4, 5, 6, 7]
bytes = 2_000_000_000
basis = "declared"
source = "our spreadsheet"

[[phase.entry]]
kind = "kv-cache"
ranks = [0, 7]
bytes = 5
basis = "model"
source = "context x layers"
flop = 10
flop_dtype = "bf16"

[[phase]]
name = "head"
overlaps_previous = true

[[phase.entry]]
kind = "dense-weights"
ranks = [7]
bytes = 7
basis = "header"
source = "lm_head"

[[device]]
ranks = [0]
source = "measured"
bytes_per_s = 4.8e12
peak_flop_per_s = { bf16 = 989e12 }

[[uncounted]]
name = "foreign"
dtype = "F32"
shape = []
bytes = 4
why = "no rule knows it"
"""


def read_text(folder: Path, text: str) -> Ledger:
    path = folder / "ledger.toml"
    path.write_text(text, encoding="utf-8")
    return files.read(path)


def test_a_hand_written_ledger_is_read(tmp_path: Path) -> None:
    ledger = read_text(tmp_path, HAND_WRITTEN)
    assert ledger.workload.tokens_per_step == 1.0
    assert [phase.name for phase in ledger.phase] == ["attention", "head"]
    assert [phase.overlaps_previous for phase in ledger.phase] == [False, True]
    assert ledger.phase[0].entry[1].ranks == [0, 7]
    assert ledger.device[0].peak_flop_per_s == {"bf16": 989e12}
    assert ledger.uncounted[0].shape == []


def test_the_ledger_of_the_documentation_is_read(tmp_path: Path) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "ledger.md"
    text = page.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
    ledger = read_text(tmp_path, text)
    assert [entry.kind for entry in ledger.phase[0].entry] == ["dense-weights", "kv-cache"]
    for word in (*get_args(Kind), *get_args(Basis)):
        assert f"`{word}`" in page.read_text(encoding="utf-8")


def test_what_is_written_is_read_again_and_lists_stay_on_one_line(tmp_path: Path) -> None:
    ledger = read_text(tmp_path, HAND_WRITTEN)
    files.write(ledger, tmp_path / "again.toml")
    assert files.read(tmp_path / "again.toml") == ledger
    text = (tmp_path / "again.toml").read_text(encoding="utf-8")
    assert "ranks = [0, 1, 2, 3, 4, 5, 6, 7]\n" in text
    assert "shape = []" in text
    assert "tensors" not in text  # null is left out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.toml", "ledger.toml"]


DEFECTS = [
    ("[workload]", "[workload]\nnme = 1", "workload", "unknown field `nme`"),
    ("bytes = 5", 'bytes = "5"', "phase 1 'attention', entry 2, bytes", "Expected `int`, got `str`"),
    ("bytes = 5", "bytes = 5.5", "phase 1 'attention', entry 2, bytes", "Expected `int`, got `float`"),
    ("bytes = 5", "bytes = -5", "phase 1 'attention', entry 2, bytes", "is -5; it must be 0 or more"),
    ("bytes = 5", "byts = 5", "phase 1 'attention', entry 2", "field `byt"),
    ("bytes = 5", "", "phase 1 'attention', entry 2", "missing required field `bytes`"),
    ("bytes = 5", "bytes = 99999999999999999999", "phase 1 'attention', entry 2, bytes", "no more than"),
    ('"kv-cache"', '"cache"', "phase 1 'attention', entry 2, kind", "'cache'"),
    ("flop = 10", "flop = -1", "phase 1 'attention', entry 2, flop", "is -1"),
    ("flop = 10", "", "phase 1 'attention', entry 2, flop_dtype", "stands without flop"),
    ('flop_dtype = "bf16"', 'flop_dtype = "int8"', "phase 1 'attention', entry 2, flop_dtype", "'int8'"),
    ("ranks = [0, 7]", "ranks = [7, 0]", "phase 1 'attention', entry 2, ranks", "rank 0 comes after 7"),
    ("ranks = [0, 7]", "ranks = [7, 7]", "phase 1 'attention', entry 2, ranks", "holds rank 7 twice"),
    ("ranks = [0, 7]", "ranks = []", "phase 1 'attention', entry 2, ranks", "is empty"),
    ("ranks = [0, 7]", "ranks = [-1]", "phase 1 'attention', entry 2, ranks", "count from 0"),
    ("ranks = [0, 7]", "ranks = [8]", "phase 1 'attention', entry 2, ranks", "ranks 0 to 7"),
    ('"kv-cache"', '"dense-weights"', "phase 1 'attention', entry 2", "what entry 1 says of rank 0"),
    ("'flash|gemm'", "'(flash'", "phase 1 'attention', kernels", "no regular expression"),
    ("'decode'", "'('", "workload, applies_to", "no regular expression"),
    ("tokens_per_step = 1", "tokens_per_step = nan", "workload, tokens_per_step", "finite number above 0"),
    ("tensor = 8", "tensor = 9", "layout, tensor", "more than all 8 ranks"),
    ("tensor = 8", "tensor = 0", "layout, tensor", "is 0; it must be 1 or more"),
    ('source = "lm_head"', 'source = ""', "phase 2 'head', entry 1, source", "is empty"),
    ('name = "head"', 'name = "attention"', "phase 2, name", "is the name of phase 1"),
    ("bytes_per_s = 4.8e12", "bytes_per_s = inf", "device 1, bytes_per_s", "finite"),
    ("{ bf16 = 989e12 }", "{ bf17 = 1 }", "device 1, peak_flop_per_s", "'bf17'"),
    ("[[device]]", '[[device]]\nranks = [0]\nsource = "a"\nbytes_per_s = 1.0\n[[device]]', "device 2", "device 1"),
    ('kernels = \'flash|gemm\'', "overlaps_previous = true", "phase 1 'attention', overlaps_previous", "before it"),
    ("format_version = 1", "format_version = 2", "format_version", "this version reads 1"),
    ('format = "tracebound.ledger"', "", "format", "is no ledger"),
    ("[workload]", "[workload", "", "is no TOML"),
    ("shape = []", "shape = [-1]", "uncounted 1, shape", "is -1"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "where", "why"), DEFECTS)
def test_each_defect_is_named_with_its_place(
    tmp_path: Path, right: str, wrong: str, where: str, why: str
) -> None:
    assert right in HAND_WRITTEN
    with pytest.raises(TraceError) as caught:
        read_text(tmp_path, HAND_WRITTEN.replace(right, wrong, 1))
    assert caught.value.where == where
    assert why in caught.value.why
    assert caught.value.path.endswith("ledger.toml")


def test_a_phase_without_entries_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError) as caught:
        read_text(tmp_path, HAND_WRITTEN + "\n[[phase]]\nname = 'empty'\nentry = []\n")
    assert caught.value.where == "phase 3 'empty'"
    assert "has no entries" in caught.value.why


def test_unreadable_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="No such file"):
        files.read(tmp_path / "absent.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TraceError, match="no UTF-8"):
        files.read(tmp_path / "binary.toml")


def test_a_wrong_ledger_is_not_written(tmp_path: Path) -> None:
    wrong = Ledger(format=FORMAT, format_version=1, workload=Workload(name="w"), phase=[])
    with pytest.raises(InvariantError):
        files.write(wrong, tmp_path / "ledger.toml")
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    ledger = read_text(tmp_path, HAND_WRITTEN)
    (tmp_path / "ledger.toml").unlink()
    (tmp_path / "taken.toml").mkdir()
    with pytest.raises(TraceboundError, match="cannot write the ledger"):
        files.write(ledger, tmp_path / "taken.toml")
    assert [path.name for path in tmp_path.iterdir()] == ["taken.toml"]


TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
RANKS = st.sets(st.integers(0, 7), min_size=1).map(sorted)
COUNTS = st.integers(0, 2**60)
ENTRIES = st.builds(
    Entry,
    kind=st.sampled_from(get_args(Kind)),
    ranks=RANKS,
    bytes=COUNTS,
    basis=st.sampled_from(get_args(Basis)),
    source=TEXTS,
    name=TEXTS,
    dtype=st.none() | TEXTS,
    tensors=st.none() | COUNTS,
    flop=COUNTS,
    flop_dtype=st.none() | st.just("bf16"),
)
LEDGERS = st.builds(
    Ledger,
    format=st.just(FORMAT),
    format_version=st.just(1),
    workload=st.builds(
        Workload,
        name=TEXTS,
        tokens_per_step=st.none() | st.floats(1e-9, 1e12),
        batch=st.none() | st.integers(1, 10**6),
        assumptions=st.lists(TEXTS, max_size=3),
    ),
    phase=st.lists(
        st.builds(
            Phase,
            name=TEXTS,
            entry=st.lists(ENTRIES, min_size=1, max_size=3, unique_by=lambda entry: entry.name),
        ),
        min_size=1,
        max_size=3,
        unique_by=lambda phase: phase.name,
    ),
    layout=st.none() | st.just(Layout(ranks=8, tensor=8)),
    device=st.lists(
        st.builds(DeviceBandwidth, ranks=RANKS, source=TEXTS, bytes_per_s=st.floats(1, 1e15)), max_size=1
    ),
    uncounted=st.lists(
        st.builds(
            Uncounted, name=TEXTS, dtype=TEXTS, shape=st.lists(COUNTS, max_size=3), bytes=COUNTS, why=TEXTS
        ),
        max_size=2,
        unique_by=lambda tensor: tensor.name,
    ),
)


@given(LEDGERS)
def test_any_ledger_survives_its_file(tmp_path_factory: pytest.TempPathFactory, ledger: Ledger) -> None:
    path = tmp_path_factory.mktemp("ledger") / "ledger.toml"
    files.write(ledger, path)
    assert files.read(path) == ledger
    assert path.read_bytes() == files.to_toml(ledger)
