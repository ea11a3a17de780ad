"""A checkpoint's folder: config.json and the headers of its safetensors files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from analyzer.errors import TraceError
from analyzer.ledger.headers import Tensor, read_header

CONFIG = "config.json"
MODELOPT = "hf_quant_config.json"
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
_SHARD = re.compile(r"(.+)-(\d{1,9})-of-(\d{1,9})\.safetensors")
LONGEST_CONFIG_BYTES = 200_000_000
_HINT = "give the folder that holds config.json and the safetensors files of one checkpoint"


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint's folder tells without its weights.

    ``unnamed``: tensors that lie in its files but not in its index. ``notes``: what a reader should know of the files.
    """

    folder: Path
    config: dict[str, Any]
    tensors: dict[str, Tensor]
    unnamed: tuple[Tensor, ...]
    notes: tuple[str, ...]

    @property
    def config_path(self) -> str:
        """For errors about the config."""
        return str(self.folder / CONFIG)


class _Index(msgspec.Struct, frozen=True):
    weight_map: dict[str, str]
    metadata: dict[str, Any] | None = None


def read_checkpoint(folder: str | Path) -> Checkpoint:
    """Config and tensors of the checkpoint in ``folder``; TraceError names what is missing or damaged."""
    root = Path(folder)
    if not root.is_dir():
        raise TraceError(str(root), "", "is no folder" if root.exists() else "does not exist", _HINT)
    config = _quantized(root, _json(root / CONFIG, dict[str, Any]))
    index = _json(root / INDEX, _Index) if (root / INDEX).exists() else None
    if index is None:
        tensors, notes = _from_files(_files(root))
        return Checkpoint(root, config, tensors, (), tuple(notes))
    return _indexed(root, config, index)


def _quantized(root: Path, config: dict[str, Any]) -> dict[str, Any]:
    """ModelOpt's older checkpoints say in a file of its own how they are quantized."""
    if config.get("quantization_config") or not (root / MODELOPT).is_file():
        return config
    told = _json(root / MODELOPT, dict[str, Any]).get("quantization")
    if not isinstance(told, dict):
        return config
    return {**config, "quantization_config": {"quant_method": "modelopt", **told}}


def _json(path: Path, type_: Any) -> Any:
    try:
        with path.open("rb") as file:
            data = file.read(LONGEST_CONFIG_BYTES + 1)
        if len(data) > LONGEST_CONFIG_BYTES:
            raise TraceError(str(path), "", f"is larger than {LONGEST_CONFIG_BYTES:,} bytes", _HINT)
        return msgspec.json.decode(data, type=type_)
    except OSError as error:
        raise TraceError(str(path), "", error.strerror or str(error), _HINT) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(str(path), "", f"cannot be used: {error}", _HINT) from None


def _files(root: Path) -> list[Path]:
    """The one file, or all of them where no index says which belong together."""
    if (root / SINGLE).is_file():
        return [root / SINGLE]
    files = sorted(root.glob("*.safetensors"))
    if not files:
        raise TraceError(str(root), "", f"holds neither {SINGLE} nor {INDEX}", _HINT)
    _check_shards(root, files)
    return files


def _check_shards(root: Path, files: list[Path]) -> None:
    """Shards number themselves, so that one that is missing shows without an index, too."""
    found: dict[tuple[str, int], set[int]] = {}
    for path in files:
        if (named := _SHARD.fullmatch(path.name)) is not None:
            found.setdefault((named[1], int(named[3])), set()).add(int(named[2]))
    for (stem, number), here in found.items():
        if len(here) < number:
            first = next(shard for shard in range(1, number + 1) if shard not in here)
            why = f"holds {len(here)} of the {number} shards of {stem}; the first that is missing is {first}"
            raise TraceError(str(root), "", why, "give the whole checkpoint")


def _from_files(files: list[Path]) -> tuple[dict[str, Tensor], list[str]]:
    tensors: dict[str, Tensor] = {}
    places: dict[str, Path] = {}
    cut = 0
    for path in files:
        header = read_header(path)
        cut += header.cut_off
        for tensor in header.tensors:
            if tensor.name in tensors:
                why = f"lies in {places[tensor.name].name} as well"
                raise TraceError(
                    str(path), f"tensor {tensor.name}", why, f"add {INDEX}, which says which counts"
                )
            tensors[tensor.name] = tensor
            places[tensor.name] = path
    return tensors, _cut_note(cut, len(files))


def _cut_note(cut: int, files: int) -> list[str]:
    what = "its data is" if files == 1 else f"the data of {cut} of {files} files is"
    return [f"{what} not there or cut off: sizes are those that the headers declare"] if cut else []


def _indexed(root: Path, config: dict[str, Any], index: _Index) -> Checkpoint:
    shown = str(root / INDEX)
    wanted: dict[str, list[str]] = {}
    for name, shard in index.weight_map.items():
        wanted.setdefault(shard, []).append(name)
    if not wanted:
        raise TraceError(shown, "weight_map", "names no tensor", _HINT)
    tensors: dict[str, Tensor] = {}
    unnamed: list[Tensor] = []
    cut = 0
    for shard in sorted(wanted):
        header = read_header(_shard(root, shard, wanted[shard][0], shown))
        cut += header.cut_off
        here = {tensor.name: tensor for tensor in header.tensors}
        for name in wanted[shard]:
            if name not in here:
                why = f"is not in {shard}, where the index has it"
                raise TraceError(
                    shown, f"tensor {name}", why, "give the index and the shards of one checkpoint"
                )
            tensors[name] = here.pop(name)
        unnamed += [tensor for name, tensor in here.items() if name not in index.weight_map]
    ordered = {name: tensors[name] for name in index.weight_map}
    notes = _cut_note(cut, len(wanted)) + _index_notes(root, index, wanted, ordered, unnamed)
    return Checkpoint(root, config, ordered, tuple(unnamed), tuple(notes))


def _shard(root: Path, shard: str, tensor: str, shown: str) -> Path:
    if Path(shard).name != shard or shard in ("", ".", ".."):
        why = f"puts it into {shard!r}, which is no file name"
        raise TraceError(shown, f"tensor {tensor}", why, _HINT)
    path = root / shard
    if not path.is_file():
        raise TraceError(
            shown, f"tensor {tensor}", f"names {shard}, which is missing", f"add {shard} to the folder"
        )
    return path


def _index_notes(
    root: Path, index: _Index, wanted: dict[str, list[str]], tensors: dict[str, Tensor], unnamed: list[Tensor]
) -> list[str]:
    notes = []
    extra = sorted(path.name for path in root.glob("*.safetensors") if path.name not in wanted)
    if extra:
        shown = ", ".join(extra[:3]) + (", ..." if len(extra) > 3 else "")
        notes.append(f"files that the index does not name are not counted: {len(extra)} ({shown})")
    if unnamed:
        notes.append(f"tensors in its files that the index does not name are not counted: {len(unnamed)}")
    declared = (index.metadata or {}).get("total_size")
    total = sum(tensor.bytes for tensor in tensors.values())
    if isinstance(declared, int) and declared != total:
        notes.append(
            f"the index declares {declared:,} bytes, its tensors hold {total:,}: the headers are used"
        )
    return notes
