"""Types of tensors in checkpoints: bits per element, and the names that options and configs give them."""

from __future__ import annotations

from collections.abc import Mapping

BITS: Mapping[str, int] = {
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "U16": 16,
    "I16": 16,
    "F16": 16,
    "BF16": 16,
    "U32": 32,
    "I32": 32,
    "F32": 32,
    "U64": 64,
    "I64": 64,
    "F64": 64,
    "C64": 64,
}
"""Bits per element by the name that a safetensors header uses (the format's own list)."""

FLOATS = ("F16", "BF16", "F32", "F64")
"""Stored types of plain floating-point weights, which an engine may load as another one of them."""

NAMES: Mapping[str, str] = {
    "fp32": "F32",
    "float32": "F32",
    "float": "F32",
    "fp16": "F16",
    "float16": "F16",
    "half": "F16",
    "bf16": "BF16",
    "bfloat16": "BF16",
    "fp8": "F8_E4M3",
    "fp8_e4m3": "F8_E4M3",
    "fp8_e5m2": "F8_E5M2",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "int8": "I8",
    "fp4": "F4",
}
"""What people, options of engines and ``torch_dtype`` call them."""

ARITHMETIC: Mapping[str, str] = {"F32": "fp32", "F16": "fp16", "BF16": "bf16"}
"""Whose peak bounds products of operands of this type; tf32 is a setting of the engine that no config tells."""


def size_bytes(dtype: str, elements: int) -> int:
    """Bytes of ``elements`` packed elements, rounded up to a whole byte."""
    return -(-elements * BITS[dtype] // 8)


def arithmetic_bits(dtype: str | None, otherwise: int) -> int:
    """Bits of an operand of arithmetic type ``dtype``, such as ``fp8``."""
    return {"fp32": 32, "tf32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "fp4": 4}.get(dtype or "", otherwise)
