"""Folders of checkpoints: sharded or not, whole or not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analyzer.errors import TraceError
from analyzer.ledger.checkpoint import INDEX, read_checkpoint
from tests.ledger.families import Shapes, header_of, write_headers, write_whole

SHAPES: Shapes = dict.fromkeys(("a", "b", "c", "d"), ("BF16", (4, 2)))


def index_of(folder: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((folder / INDEX).read_text())["weight_map"]
    return found


def write_index(folder: Path, weight_map: dict[str, str], **more: object) -> None:
    (folder / INDEX).write_text(json.dumps({"weight_map": weight_map} | more))


@pytest.mark.parametrize("shards", [1, 2])
def test_sharded_or_not_the_tensors_are_the_same(tmp_path: Path, shards: int) -> None:
    found = read_checkpoint(write_whole(tmp_path / "m", {"x": 1}, SHAPES, shards))
    assert {name: (tensor.dtype, tensor.shape) for name, tensor in found.tensors.items()} == SHAPES
    assert (found.config, found.unnamed, found.notes) == ({"x": 1}, (), ())


def test_missing_data_is_told_of(tmp_path: Path) -> None:
    (note,) = read_checkpoint(write_headers(tmp_path / "m", {}, SHAPES, 2)).notes
    assert note.startswith("the data of 2 of 2 files is not there or cut off")


def test_a_shard_that_is_missing_is_named(tmp_path: Path) -> None:
    folder = write_headers(tmp_path, {}, SHAPES, 2)
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(TraceError) as caught:
        read_checkpoint(folder)
    assert (caught.value.where, caught.value.why) == (
        "tensor b",
        "names model-00002-of-00002.safetensors, which is missing",
    )


def test_a_tensor_that_is_not_in_its_shard_is_named(tmp_path: Path) -> None:
    folder = write_headers(tmp_path, {}, SHAPES, 2)
    write_index(folder, index_of(folder) | {"e": "model-00001-of-00002.safetensors"})
    with pytest.raises(TraceError, match=r"tensor e\): is not in model-00001-of-00002.safetensors"):
        read_checkpoint(folder)


def test_shards_and_tensors_beyond_the_index_are_listed(tmp_path: Path) -> None:
    folder = write_whole(tmp_path, {}, SHAPES, 2)
    (folder / "other.safetensors").write_bytes(header_of({"z": ("BF16", (1,))}))
    write_index(folder, {name: file for name, file in index_of(folder).items() if name != "d"})
    found = read_checkpoint(folder)
    assert [tensor.name for tensor in found.unnamed] == ["d"]
    assert "d" not in found.tensors
    assert found.notes == (
        "files that the index does not name are not counted: 1 (other.safetensors)",
        "tensors in its files that the index does not name are not counted: 1",
    )


def test_another_total_than_the_indexs_is_told(tmp_path: Path) -> None:
    folder = write_whole(tmp_path, {}, SHAPES, 2)
    write_index(folder, index_of(folder), metadata={"total_size": 65})
    assert read_checkpoint(folder).notes == (
        "the index declares 65 bytes, its tensors hold 64: the headers are used",
    )


@pytest.mark.parametrize("shard", ["../model.safetensors", "a/b.safetensors", "", ".."])
def test_an_index_cannot_lead_out_of_the_folder(tmp_path: Path, shard: str) -> None:
    folder = write_headers(tmp_path, {}, SHAPES)
    write_index(folder, {"a": shard})
    with pytest.raises(TraceError, match="is no file name"):
        read_checkpoint(folder)


def test_without_an_index_no_tensor_may_lie_in_two_files(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "a.safetensors").write_bytes(header_of({"x": ("BF16", (1,))}))
    (tmp_path / "b.safetensors").write_bytes(header_of({"y": ("BF16", (1,))}))
    assert set(read_checkpoint(tmp_path).tensors) == {"x", "y"}
    (tmp_path / "c.safetensors").write_bytes(header_of({"y": ("BF16", (1,))}))
    with pytest.raises(TraceError, match=r"tensor y\): lies in b.safetensors as well"):
        read_checkpoint(tmp_path)


def test_without_an_index_a_shard_that_is_missing_shows_by_the_others_numbers(tmp_path: Path) -> None:
    folder = write_headers(tmp_path, {}, SHAPES, 3)
    (folder / INDEX).unlink()
    assert set(read_checkpoint(folder).tensors) == set(SHAPES)
    (folder / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(TraceError, match="holds 2 of the 3 shards of model; the first that is missing is 2"):
        read_checkpoint(folder)


def test_folders_that_are_no_checkpoint_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="does not exist"):
        read_checkpoint(tmp_path / "absent")
    with pytest.raises(TraceError, match=r"config.json: No such file"):
        read_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text("{]")
    with pytest.raises(TraceError, match=r"config.json: cannot be used"):
        read_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(TraceError, match=r"holds neither model.safetensors nor model.safetensors.index.json"):
        read_checkpoint(tmp_path)
    with pytest.raises(TraceError, match="is no folder"):
        read_checkpoint(tmp_path / "config.json")
