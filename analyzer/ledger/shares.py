"""How much of a tensor each rank of its group reads: elements of the stored tensor, and the matrix that they make."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from analyzer.errors import TraceError, UsageError
from analyzer.ledger.config import ModelConfig
from analyzer.ledger.headers import Tensor
from analyzer.ledger.names import PARTS, Known, Split
from analyzer.ledger.quantization import Packing


@dataclass(frozen=True)
class Share:
    """What one rank holds. ``elements``: stored ones; ``weights``: of the matrix, ``inputs`` x ``outputs`` of it; None
    where packed weights hide their number, or where the tensor is no matrix.
    """

    elements: int
    weights: int | None = None
    inputs: int | None = None
    outputs: int | None = None


def axes_of(known: Known, tensor: Tensor, model: ModelConfig) -> str | None:
    """One letter per dimension: e(xpert), o(ut), i(n) or ``.``; None where the shape fits no known form."""
    part = PARTS[known.part]
    dimensions = len(tensor.shape) - known.rule.stacked
    if known.rule.stacked and known.part in ("", "weight"):
        inner = _orientation(known, tensor.shape[1:], model.hidden) if dimensions == 2 else None
    else:
        inner = part.axes.get(dimensions)
    if inner is None:
        return None
    return ("e" if known.rule.stacked else "") + inner


def _orientation(known: Known, shape: tuple[int, ...], hidden: int) -> str | None:
    """Of stacked experts: which of two dimensions is the input. Checkpoints have both orders; the hidden size tells."""
    letter = "o" if known.rule.split == "row" else "i"
    other = "i" if letter == "o" else "o"
    if shape[1] == hidden:
        return other + letter
    return letter + other if shape[0] == hidden else None


def share(
    tensor: Tensor, known: Known, axes: str, packed: Packing, group: int, index: int, model: ModelConfig
) -> Share:
    """What rank ``index`` of a group of ``group`` reads of ``tensor`` (of stacked experts: of one of them)."""
    split = known.rule.split
    if split == "row" and known.what == "bias" and index > 0:
        return Share(0)  # it is added once, after the sum over the group
    letter = {"row": "i", "whole": ""}.get(split, "o")
    extents = [
        _extent(extent, split, group, index, model, tensor, known.what == "metadata")
        if axis == letter
        else extent
        for axis, extent in zip(axes, tensor.shape, strict=True)
        if axis != "e"
    ]
    elements = math.prod(extents)
    if not known.rule.product or known.what != "weight":
        return Share(elements)
    return _matrix(elements, extents, axes.removeprefix("e"), packed)


def _matrix(elements: int, extents: list[int], axes: str, packed: Packing) -> Share:
    if packed.factor is None or "i" not in axes or "o" not in axes:
        return Share(elements)
    sizes = {
        letter: math.prod(extent for axis, extent in zip(axes, extents, strict=True) if axis in letters)
        for letter, letters in (("o", "o"), ("i", "i."))
    }
    factors = {letter: packed.factor if letter == packed.axis else Fraction(1) for letter in sizes}
    outputs, inputs = (math.floor(sizes[letter] * factors[letter]) for letter in ("o", "i"))
    return Share(elements, inputs * outputs, inputs, outputs)


def _extent(
    extent: int, split: Split, group: int, index: int, model: ModelConfig, tensor: Tensor, metadata: bool
) -> int:
    """Of one dimension of ``extent`` that is divided over the group."""
    if group == 1 or extent == 1:
        return extent
    if split == "vocabulary":
        block = -(-extent // group)
        return max(0, min(extent, (index + 1) * block) - index * block)
    if split == "qkv":
        heads = model.heads + 2 * model.kv_heads
        mine = Fraction(model.heads, group) + 2 * Fraction(model.kv_heads, min(group, model.kv_heads))
        return _whole(extent * mine / heads, tensor, group, metadata)
    parts = min(group, model.kv_heads) if split == "kv" else group
    return _whole(Fraction(extent, parts), tensor, parts, metadata)


def _whole(extent: Fraction, tensor: Tensor, parts: int, metadata: bool) -> int:
    """Scales of blocks that two ranks share are read by both; a matrix must divide."""
    if extent.denominator == 1 or metadata:
        return math.ceil(extent)
    why = f"its shape {list(tensor.shape)} does not divide by {parts}"
    raise UsageError(f"tensor {tensor.name}", "", why, "give the layout that the engine can run it with")


def check_heads(model: ModelConfig, group: int, config_path: str) -> None:
    """Heads must divide over the tensor group, or (keys and values) the group over them."""
    if model.heads % group:
        why = f"is {group}, but the model has {model.heads} attention heads"
        raise UsageError("--tensor", "", why, "give a divisor of the number of heads")
    if model.heads % model.kv_heads:
        why = f"is {model.kv_heads}, which does not divide {model.heads} heads"
        raise TraceError(config_path, "num_key_value_heads", why, "give the config.json of the checkpoint")
    if model.latent is None and model.kv_heads % group and group % model.kv_heads:
        why = f"is {group}, but the model has {model.kv_heads} key/value heads"
        raise UsageError("--tensor", "", why, "give a divisor or a multiple of the number of key/value heads")
    linear = model.linear
    if linear is not None and (linear.value_heads % group or linear.key_heads % group):
        why = f"is {group}, but linear attention has {linear.key_heads} key and {linear.value_heads} value heads"
        raise UsageError("--tensor", "", why, "give a divisor of both")
