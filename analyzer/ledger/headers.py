"""Headers of safetensors files: names, types and shapes of tensors. Their data is never read.

The format: 8 bytes with the header's length (little-endian), the header as JSON, then the data, which the offsets in
the header tile without holes. A file whose data is cut off ("headers only") is read like a whole one.
"""

from __future__ import annotations

import math
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from analyzer.errors import TraceError
from analyzer.ledger.dtypes import BITS, size_bytes

LONGEST_HEADER_BYTES = 100_000_000
"""The format's own limit."""
_LENGTH_BYTES = 8
_MOST_BYTES = 2**62
_METADATA = "__metadata__"
_HINT = "give the checkpoint's safetensors files as they were written"


class Tensor(NamedTuple):
    """One tensor of a checkpoint as its header has it."""

    name: str
    dtype: str  # the format's name, such as BF16
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True)
class Header:
    """A file's tensors in the order of the header; ``cut_off``: not all of their data is in the file."""

    tensors: tuple[Tensor, ...]
    cut_off: bool


class _Info(msgspec.Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def read_header(path: Path) -> Header:
    """The header of the safetensors file ``path``. TraceError where it breaks the format."""
    shown = str(path)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            text = _text(file.read(_LENGTH_BYTES), size, shown)
            header = file.read(text)
    except OSError as error:
        raise TraceError(shown, "", error.strerror or str(error), _HINT) from None
    if len(header) < text:
        raise TraceError(shown, "header", f"is cut off: {len(header):,} of {text:,} bytes are there", _HINT)
    infos = _infos(header, shown)
    end = _data_end(infos, shown)
    there = size - _LENGTH_BYTES - text
    if there > end:
        raise TraceError(shown, "data", f"{there - end:,} bytes follow the last tensor", _HINT)
    return Header(
        tuple(_tensor(name, info, shown) for name, info in infos.items()),
        cut_off=there < end,
    )


def _text(length: bytes, size: int, shown: str) -> int:
    """Bytes of the header's text, checked against the format and the file."""
    if len(length) < _LENGTH_BYTES:
        raise TraceError(shown, "", "is no safetensors file: shorter than 8 bytes", _HINT)
    (text,) = struct.unpack("<Q", length)
    if not 0 < text <= LONGEST_HEADER_BYTES:
        why = (
            f"is no safetensors file: a header of {text:,} bytes (the format allows {LONGEST_HEADER_BYTES:,})"
        )
        raise TraceError(shown, "", why, _HINT)
    if text > size - _LENGTH_BYTES:
        why = f"is cut off: {max(size - _LENGTH_BYTES, 0):,} of {text:,} bytes are there"
        raise TraceError(shown, "header", why, _HINT)
    return int(text)


def _infos(header: bytes, shown: str) -> dict[str, _Info]:
    try:
        raw = msgspec.json.decode(header, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(shown, "header", f"is no JSON object: {error}", _HINT) from None
    raw.pop(_METADATA, None)
    decoder = msgspec.json.Decoder(_Info)
    infos = {}
    for name, info in raw.items():
        try:
            infos[name] = decoder.decode(info)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise TraceError(shown, f"tensor {name}", str(error), _HINT) from None
    return infos


def _tensor(name: str, info: _Info, shown: str) -> Tensor:
    if info.dtype not in BITS:
        raise TraceError(
            shown, f"tensor {name}", f"has dtype {info.dtype!r}, which the format does not know", _HINT
        )
    if any(extent < 0 for extent in info.shape):
        raise TraceError(shown, f"tensor {name}", f"has shape {list(info.shape)}", _HINT)
    start, end = info.data_offsets
    size = size_bytes(info.dtype, math.prod(info.shape))
    if end - start != size:
        why = f"{list(info.shape)} of {info.dtype} are {size:,} bytes, its offsets hold {end - start:,}"
        raise TraceError(shown, f"tensor {name}", why, _HINT)
    return Tensor(name, info.dtype, info.shape, size)


def _data_end(infos: dict[str, _Info], shown: str) -> int:
    """Where the last tensor ends. A hole or an overlap means that the header does not tell the whole file."""
    at = 0
    for name, info in sorted(infos.items(), key=lambda item: item[1].data_offsets):
        start, end = info.data_offsets
        if start != at or end < start:
            why = f"its data is at {start:,} to {end:,}, but the tensor before it ends at {at:,}"
            raise TraceError(shown, f"tensor {name}", why, _HINT)
        at = end
    if at > _MOST_BYTES:
        raise TraceError(shown, "header", f"declares {at:,} bytes of data", _HINT)
    return at
