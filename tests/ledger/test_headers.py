"""Headers as the safetensors library writes them, and every way in which a file can break the format."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from analyzer.errors import TraceError
from analyzer.ledger import headers
from analyzer.ledger.headers import Tensor, read_header
from tests.ledger.families import NUMPY, header_of


def raw(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def written(folder: Path, content: bytes) -> Path:
    path = folder / "model.safetensors"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("dtype", sorted(NUMPY))
def test_what_the_library_writes_is_read(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "model.safetensors"
    arrays = {"a.weight": np.zeros((3, 5), NUMPY[dtype]), "b": np.zeros((), NUMPY[dtype])}
    save_file(arrays, path, metadata={"format": "pt", "dtype": "x"})
    header = read_header(path)
    assert not header.cut_off
    found = {tensor.name: tensor for tensor in header.tensors}
    assert found["a.weight"] == Tensor("a.weight", dtype, (3, 5), arrays["a.weight"].nbytes)
    assert found["b"] == Tensor("b", dtype, (), arrays["b"].nbytes)


@given(st.dictionaries(st.text(min_size=1, max_size=9).filter(lambda name: name != "__metadata__"),
                       st.tuples(st.sampled_from(["BF16", "F32", "F8_E4M3", "I64"]),
                                 st.lists(st.integers(0, 9), max_size=3).map(tuple)), max_size=6))  # fmt: skip
def test_headers_alone_are_enough(tmp_path_factory: pytest.TempPathFactory, shapes: dict[str, Any]) -> None:
    header = read_header(written(tmp_path_factory.mktemp("headers"), header_of(shapes)))
    assert {tensor.name: (tensor.dtype, tensor.shape) for tensor in header.tensors} == shapes
    assert header.cut_off == any(tensor.bytes for tensor in header.tensors)


def test_four_bit_elements_share_bytes(tmp_path: Path) -> None:
    content = raw({"a": {"dtype": "F4", "shape": [3, 2], "data_offsets": [0, 3]}}, bytes(3))
    assert read_header(written(tmp_path, content)).tensors[0].bytes == 3


ONE = {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}
DEFECTS = [
    (b"abc", "", "shorter than 8 bytes"),
    (struct.pack("<Q", 0), "", "a header of 0 bytes"),
    (struct.pack("<Q", headers.LONGEST_HEADER_BYTES + 1), "", "the format allows 100,000,000"),
    (struct.pack("<Q", 50) + b"{}", "header", "is cut off: 2 of 50 bytes are there"),
    (raw(b"[1, 2]"), "header", "is no JSON object"),
    (raw(b'{"a": \xff}'), "header", "is no JSON object"),
    (raw({"a": {"dtype": "BF16", "shape": [2]}}), "tensor a", "missing required field `data_offsets`"),
    (raw({"a": ONE | {"dtype": "BF17"}}), "tensor a", "'BF17'"),
    (raw({"a": ONE | {"shape": [-2, -3]}}), "tensor a", "has shape [-2, -3]"),
    (raw({"a": ONE | {"shape": [2.5]}}), "tensor a", "Expected `int`"),
    (raw({"a": ONE | {"shape": [2, 4]}}), "tensor a", "are 16 bytes, its offsets hold 12"),
    (raw({"a": ONE, "b": ONE}), "tensor b", "at 0 to 12, but the tensor before it ends at 12"),
    (raw({"a": ONE, "b": ONE | {"data_offsets": [14, 26]}}), "tensor b", "at 14 to 26"),
    (raw({"a": ONE}, bytes(13)), "data", "1 bytes follow the last tensor"),
]


@pytest.mark.parametrize(("content", "where", "why"), DEFECTS)
def test_each_defect_is_named(tmp_path: Path, content: bytes, where: str, why: str) -> None:
    with pytest.raises(TraceError) as caught:
        read_header(written(tmp_path, content))
    assert caught.value.where == where
    assert why in caught.value.why


def test_a_name_that_stands_twice_leaves_a_hole(tmp_path: Path) -> None:
    first = b'"a": {"dtype":"U8","shape":[2],"data_offsets":[0,2]}'
    text = b"{" + first + b"," + first.replace(b"[0,2]", b"[2,4]") + b"}"
    with pytest.raises(TraceError, match="the tensor before it ends at 0"):
        read_header(written(tmp_path, raw(text)))


def test_data_that_is_cut_off_is_said(tmp_path: Path) -> None:
    assert read_header(written(tmp_path, raw({"a": ONE}, bytes(11)))).cut_off
    assert not read_header(written(tmp_path, raw({"a": ONE}, bytes(12)))).cut_off
    with pytest.raises(TraceError, match="No such file"):
        read_header(tmp_path / "absent.safetensors")
