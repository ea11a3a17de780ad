"""How many tokens each expert gets in a step: measured counts from a file, or the uniform expectation.

Uniform: each token takes k of E experts, all alike and independent of other tokens. An expert is then touched by a step
of B tokens with probability 1 - (1 - k/E)^B; the expected number of distinct experts is E times that. Choosing experts
group by group does not change it as long as each expert is as likely as any other. Routing that prefers some experts
touches fewer (the expectation is concave in each expert's share), so this is the most that independent tokens touch.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from analyzer.errors import TraceError
from analyzer.ledger.model import Basis

LONGEST_FILE_BYTES = 500_000_000
FORMAT_HINT = "docs/ledger.md describes files of expert counts"
_STEP_COLUMNS = ("step", "layer", "expert", "tokens")
_MEAN_COLUMNS = ("layer", "expert", "mean_tokens")
_SUM_TOLERANCE = 0.01  # of means, which files round


@dataclass(frozen=True)
class Load:
    """Per step: the probability (or share of steps) that an expert is touched, and the tokens that it gets."""

    touched: float
    tokens: float


@dataclass(frozen=True)
class Routing:
    """Loads of all experts of one expert group. ``loads``: by layer; None: ``uniform`` holds for each expert."""

    basis: Basis
    source: str
    uniform: Load | None = None
    loads: Mapping[int, Sequence[Load]] | None = None

    def load(self, layer: int, expert: int) -> Load:
        """Of one expert."""
        if self.uniform is not None:
            return self.uniform
        if self.loads is None:
            raise KeyError(layer)
        return self.loads[layer][expert]


def uniform_routing(experts: int, top_k: int, tokens: int) -> Routing:
    """The uniform expectation for a step in which ``tokens`` tokens reach the experts."""
    touched = -math.expm1(tokens * math.log1p(-top_k / experts)) if top_k < experts else 1.0
    return Routing(
        "model",
        f"uniform expectation {experts} x (1 - (1 - {top_k}/{experts})^{tokens})"
        f" = {experts * touched:.6g} distinct experts per layer and step",
        uniform=Load(touched, tokens * top_k / experts),
    )


def measured_routing(
    path: str | Path, layers: Iterable[int], experts: int, top_k: int, tokens: int
) -> Routing:
    """Loads from the file of counts ``path``: CSV or JSON, per step or as means over steps (docs/ledger.md).

    Counts per step tell which experts were touched; means tell only how often, so that the distinct experts of a step
    stay a model: 1 - (1 - mean/tokens)^tokens for each expert. Raises TraceError where layers or experts do not fit the
    model, or where a layer's tokens are not ``top_k`` times ``tokens``.
    """
    shown = str(path)
    steps, mean = _counts(Path(path), shown)
    wanted = sorted(layers)
    loads: dict[int, list[Load]] = {}
    for layer in wanted:
        per_step = [_row(step, layer, experts, f"step {name}", shown) for name, step in steps.items()]
        for name, row in zip(steps, per_step, strict=True):
            _check_sum(
                sum(row), top_k * tokens, mean, f"{'means' if mean else f'step {name}'}, layer {layer}", shown
            )
        columns = zip(*per_step, strict=True)
        loads[layer] = [_mean_load(column[0], tokens) if mean else _step_load(column) for column in columns]
    _refuse_others(steps, wanted, shown)
    name = Path(path).name
    if mean:
        return Routing(
            "model", f"mean counts of {name}; distinct experts per step from independent tokens", loads=loads
        )
    return Routing("measured", f"{name}: {len(steps)} steps", loads=loads)


def _step_load(column: Sequence[float]) -> Load:
    return Load(sum(1 for tokens in column if tokens > 0) / len(column), math.fsum(column) / len(column))


def _mean_load(mean: float, tokens: int) -> Load:
    share = min(1.0, mean / tokens)
    return Load(1.0 if share >= 1 else -math.expm1(tokens * math.log1p(-share)), mean)


def _check_sum(found: float, wanted: int, mean: bool, where: str, shown: str) -> None:
    if abs(found - wanted) > (_SUM_TOLERANCE * wanted if mean else 0):
        why = f"its counts sum to {found:g}; top-k times the tokens of a step are {wanted}"
        raise TraceError(
            shown, where, why, "give --batch as it was when they were counted, and every expert's count"
        )


def _row(
    step: Mapping[int, Mapping[int, float]], layer: int, experts: int, where: str, shown: str
) -> list[float]:
    if layer not in step:
        raise TraceError(shown, where, f"has no counts of layer {layer}, which has experts", FORMAT_HINT)
    for expert in step[layer]:
        if not 0 <= expert < experts:
            why = f"has expert {expert}; the model has 0 to {experts - 1}"
            raise TraceError(shown, f"{where}, layer {layer}", why, FORMAT_HINT)
    return [step[layer].get(expert, 0) for expert in range(experts)]


def _refuse_others(steps: Mapping[str, Mapping[int, object]], wanted: list[int], shown: str) -> None:
    for name, step in steps.items():
        other = sorted(set(step) - set(wanted))
        if other:
            why = f"has counts of layer {other[0]}, which has no routed experts in the checkpoint"
            raise TraceError(shown, f"step {name}", why, FORMAT_HINT)


Steps = dict[str, dict[int, dict[int, float]]]


def _counts(path: Path, shown: str) -> tuple[Steps, bool]:
    """Tokens by step, layer and expert; true: the one step holds means."""
    try:
        with path.open("rb") as file:
            data = file.read(LONGEST_FILE_BYTES + 1)
    except OSError as error:
        raise TraceError(
            shown, "", error.strerror or str(error), "give a readable file of expert counts"
        ) from None
    if len(data) > LONGEST_FILE_BYTES:
        raise TraceError(shown, "", f"is larger than {LONGEST_FILE_BYTES:,} bytes", FORMAT_HINT)
    if data.lstrip()[:1] == b"{":
        return _from_json(data, shown)
    return _from_csv(data, shown)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``steps``: per step, by layer, a count per expert. ``mean_tokens``: by layer, a mean per expert."""

    steps: list[dict[str, list[int]]] | None = None
    mean_tokens: dict[str, list[float]] | None = None


def _from_json(data: bytes, shown: str) -> tuple[Steps, bool]:
    try:
        file = msgspec.json.decode(data, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(shown, "", f"cannot be used: {error}", FORMAT_HINT) from None
    if (file.steps is None) == (file.mean_tokens is None) or file.steps == []:
        raise TraceError(shown, "", "needs either steps (not empty) or mean_tokens", FORMAT_HINT)
    steps: Sequence[Mapping[str, Sequence[float]]] = file.steps or [file.mean_tokens or {}]
    return {
        str(number): {
            _number(layer, f"step {number}", shown): {
                expert: _tokens(tokens, f"step {number}, layer {layer}, expert {expert}", shown)
                for expert, tokens in enumerate(row)
            }
            for layer, row in step.items()
        }
        for number, step in enumerate(steps, 1)
    }, file.steps is None


def _from_csv(data: bytes, shown: str) -> tuple[Steps, bool]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TraceError(shown, f"byte {error.start}", "is no UTF-8 text", FORMAT_HINT) from None
    rows = csv.reader(io.StringIO(text, newline=""))
    columns = tuple(name.strip() for name in next(rows, []))
    if columns not in (_STEP_COLUMNS, _MEAN_COLUMNS):
        why = f"the first line must be {','.join(_STEP_COLUMNS)} or {','.join(_MEAN_COLUMNS)}"
        raise TraceError(shown, "line 1", why, FORMAT_HINT)
    mean = columns == _MEAN_COLUMNS
    steps: Steps = {}
    try:
        for row in rows:
            if row:
                _add(steps, ["1", *row] if mean else row, mean, f"line {rows.line_num}", shown)
    except csv.Error as error:
        raise TraceError(shown, f"line {rows.line_num}", str(error), FORMAT_HINT) from None
    if not steps:
        raise TraceError(shown, "", "holds no counts", FORMAT_HINT)
    return steps, mean


def _add(steps: Steps, row: list[str], mean: bool, where: str, shown: str) -> None:
    if len(row) != len(_STEP_COLUMNS):
        raise TraceError(shown, where, "has another number of fields than the first line", FORMAT_HINT)
    name, layer, expert = row[0].strip(), _number(row[1], where, shown), _number(row[2], where, shown)
    try:
        tokens = float(row[3]) if mean else int(row[3])
    except ValueError:
        why = f"{row[3]!r} is no {'number' if mean else 'whole number'} of tokens"
        raise TraceError(shown, where, why, FORMAT_HINT) from None
    counts = steps.setdefault(name, {}).setdefault(layer, {})
    if expert in counts:
        why = f"counts expert {expert} of layer {layer} again in this step"
        raise TraceError(shown, where, why, FORMAT_HINT)
    counts[expert] = _tokens(tokens, where, shown)


def _number(text: Any, where: str, shown: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise TraceError(shown, where, f"{text!r} is no number of a layer or expert", FORMAT_HINT) from None


def _tokens(tokens: float, where: str, shown: str) -> float:
    if not (math.isfinite(tokens) and tokens >= 0):
        raise TraceError(shown, where, f"{tokens} is no number of tokens", FORMAT_HINT)
    return tokens
