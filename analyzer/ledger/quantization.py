"""How a checkpoint is quantized: what config.json says, and what the shapes of companions say better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from analyzer.errors import TraceError
from analyzer.ledger.dtypes import ARITHMETIC
from analyzer.ledger.headers import Tensor


@dataclass(frozen=True)
class Quantization:
    """``weight_bits``: per stored weight. ``ordered``: GPTQ's g_idx is read.

    ``activation``: the type of quantized inputs ("fp8", "fp4", or "int8", which has no peak in the device table); None:
    inputs keep the compute type. ``cache``: the checkpoint says that its KV cache is quantized.
    """

    method: str | None = None
    weight_bits: int | None = None
    activation: str | None = None
    ordered: bool = True
    cache: bool = False


@dataclass(frozen=True)
class Packing:
    """``factor`` weights per stored element along ``axis`` ("o", "i", or "" for none); None: unknown."""

    axis: str
    factor: Fraction | None


PLAIN = Packing("", Fraction(1))
"""One weight per element."""


def quantization(config: Mapping[str, Any], path: str) -> Quantization:
    """What config.json's ``quantization_config`` (or ``compression_config``) says. TraceError for bitsandbytes."""
    values = config.get("quantization_config") or config.get("compression_config")
    if not isinstance(values, dict):
        return Quantization()
    cache = isinstance(values.get("kv_cache_scheme"), dict) or bool(values.get("kv_cache_quant_algo"))
    return replace(_of_weights(values, path), cache=cache)


def _of_weights(values: Mapping[str, Any], path: str) -> Quantization:
    method = str(values.get("quant_method", "")).lower()
    if method == "bitsandbytes":
        raise TraceError(
            path,
            "quantization_config",
            "bitsandbytes flattens matrices, so the headers do not tell their shape",
            "write the ledger by hand (docs/ledger.md), or give a GPTQ, AWQ, FP8 or compressed-tensors checkpoint",
        )
    if method == "compressed-tensors" or isinstance(values.get("config_groups"), dict):
        return _compressed(values, method or "compressed-tensors")
    if method == "fp8" or str(values.get("quant_algo", "")).upper().startswith("FP8"):
        return Quantization(method or "modelopt", 8, "fp8")
    if "NVFP4" in str(values.get("quant_algo", "")).upper():
        return Quantization(method or "modelopt", 4, "fp4")
    bits = values.get("bits", values.get("w_bit"))
    return Quantization(
        method or None,
        bits if isinstance(bits, int) and not isinstance(bits, bool) and 0 < bits <= 16 else None,
        None,
        ordered=values.get("desc_act") is not False,
    )


def _compressed(values: Mapping[str, Any], method: str) -> Quantization:
    groups = values.get("config_groups")
    weights, inputs = set(), set()
    for group in groups.values() if isinstance(groups, dict) else ():
        if isinstance(group, dict):
            weights.add(_bits(group.get("weights")))
            inputs.add(_activation(group.get("input_activations")))
    return Quantization(
        method,
        weights.pop() if len(weights) == 1 else None,
        inputs.pop() if len(inputs) == 1 else None,
    )


def _bits(scheme: object) -> int | None:
    bits = scheme.get("num_bits") if isinstance(scheme, dict) else None
    return bits if isinstance(bits, int) and not isinstance(bits, bool) and 0 < bits <= 16 else None


def _activation(scheme: object) -> str | None:
    bits = _bits(scheme)
    if bits is None or not isinstance(scheme, dict):
        return None
    kind = "fp" if scheme.get("type") == "float" else "int"
    return f"{kind}{bits}" if bits in (4, 8) else None


def packing(
    tensor: Tensor, part: str, module: str, tensors: Mapping[str, Tensor], quant: Quantization
) -> Packing:
    """How many weights an element of ``tensor`` holds, and along which axis they are packed.

    GPTQ packs along the input (a companion g_idx has an entry per input), AWQ along the output (scales have one per
    output); compressed-tensors along the input. Where neither companions nor the config tell, the factor is None.
    """
    if part == "qweight":
        return _gptq_or_awq(tensor, module, tensors, quant)
    if part == "weight_packed":
        bits = 4 if tensor.dtype == "U8" else quant.weight_bits
        return Packing("i", None if bits is None else Fraction(8 if tensor.dtype == "U8" else 32, bits))
    if part == "blocks":
        return Packing("i", Fraction(2))
    if part == "weight" and tensor.dtype == "U8":
        two = f"{module}.weight_scale_2" in tensors or quant.weight_bits == 4
        return Packing("i", Fraction(2) if two else Fraction(1))
    return PLAIN


def _gptq_or_awq(tensor: Tensor, module: str, tensors: Mapping[str, Tensor], quant: Quantization) -> Packing:
    scales, order = tensors.get(f"{module}.scales"), tensors.get(f"{module}.g_idx")
    rows, columns = tensor.shape[-2:] if len(tensor.shape) >= 2 else (0, 0)
    if scales is not None and scales.shape and columns and scales.shape[-1] != columns:
        return Packing("o", Fraction(scales.shape[-1], columns))
    if order is not None and order.shape and rows:
        return Packing("i", Fraction(order.shape[-1], rows))
    return Packing("i", _packed_in(tensor.dtype, quant))


def _packed_in(dtype: str, quant: Quantization) -> Fraction | None:
    if quant.weight_bits is None or dtype not in ("I32", "U32"):
        return None
    return Fraction(32, quant.weight_bits)


def arithmetic_of(dtype: str, packed: Packing, quant: Quantization, compute_dtype: str) -> str | None:
    """The type whose peak bounds a product with a matrix stored as ``dtype``.

    Kernels for 4-bit weights with 16-bit inputs compute in 16 bit, so the compute type bounds them. None where the
    device table has no peak for it (int8).
    """
    plain = ARITHMETIC.get(compute_dtype)
    inputs = quant.activation
    if dtype in ARITHMETIC or inputs is None:
        return "fp8" if dtype.startswith("F8_") and quant.method is None else plain
    if inputs == "fp4" and not (dtype == "F4" or (dtype == "U8" and packed.factor == 2)):
        return "fp8" if dtype.startswith("F8_") else plain  # layers that were left wider than the others
    return None if inputs.startswith("int") else inputs
