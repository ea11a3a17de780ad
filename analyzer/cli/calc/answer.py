"""One calculation of the command line: run it, name options in its errors, show its figures."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from analyzer.calculators.result import Figure, Result
from analyzer.cli import options as opt
from analyzer.cli.console import out
from analyzer.errors import UsageError
from analyzer.report.escape import visible

FORMAT = "tracebound.calc"
FORMAT_VERSION = 1

CalcFormat = Annotated[opt.Format, typer.Option("--format", help="json: JSON alone on stdout.")]

# arguments whose option is not just their name
_OPTIONS = {
    "at_bytes": "--at",
    "baseline_ns": "--baseline",
    "bytes_per_element": "--element-bytes",
    "bytes_per_rank": "--bytes",
    "bytes_per_s": "--bandwidth",
    "capability": "--compute-capability",
    "draft_ns": "--draft",
    "latency_ns": "--latency",
    "new_ns": "--change",
    "observed_ns": "--observed",
    "other_ns": "--other",
    "peak_flop_per_s": "--peak",
    "phases": "--bytes",
    "points": "--point",
    "resident_blocks_per_sm": "--blocks-per-sm",
    "shared_bytes_dynamic": "--shared-dynamic",
    "shared_bytes_static": "--shared-static",
    "sm_count": "--sms",
    "step_ns": "--step",
    "terms_ns": "--term",
    "verify_ns": "--verify",
}
_TIME_UNITS = ((1e10, 1e9, "s"), (1e5, 1e6, "ms"), (1e2, 1e3, "us"), (0.0, 1.0, "ns"))
_SI_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_BINARY_UNITS = ((1024**4, "TiB"), (1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))


def answer(format_: opt.Format, calculator: Callable[..., Result], **inputs: Any) -> None:
    """Calculate, and write the result to stdout."""
    try:
        result = calculator(**inputs)
    except UsageError as error:
        raise _with_option_names(error, calculator) from None
    out(_json(result, inputs) if format_ is opt.Format.JSON else _text(result))


def _with_option_names(error: UsageError, calculator: Callable[..., Result]) -> UsageError:
    own = {name: f"--{name.replace('_', '-')}" for name in inspect.signature(calculator).parameters}
    names = own | _OPTIONS

    def option(match: re.Match[str]) -> str:
        return names.get(match[0], match[0])

    hint = re.sub(r"\b[a-z]+(?:_[a-z]+)+\b", option, error.hint)
    return UsageError(names.get(error.path, error.path), error.where, error.why, hint)


def _json(result: Result, inputs: dict[str, Any]) -> str:
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "calculator": result.calculator,
        "kind": result.kind,
        "inputs": {name: _plain(value) for name, value in inputs.items()},
        "figures": [
            {"name": item.name, "value": item.value, "unit": item.unit, "kind": item.kind}
            for item in result.figures()
        ],
        "assumptions": result.assumptions,
        "cautions": result.cautions,
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return value._asdict()
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _text(result: Result) -> str:
    rows = [("figure", "value", "kind")]
    rows += [(item.label, _shown(item), item.kind) for item in result.figures() if item.value is not None]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [_row(row, widths) for row in rows]
    lines.insert(1, f"|:{'-' * widths[0]}-|-{'-' * widths[1]}:|:{'-' * widths[2]}-|")
    for title, notes in (("Caution", result.cautions), ("Assumed", result.assumptions)):
        if notes:
            lines += ["", f"{title}:", "", *(f"- {visible(note)}" for note in notes)]
    return "\n".join([f"# {result.calculator}: {result.kind}", "", *lines]) + "\n"


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return f"| {cells[0]:<{widths[0]}} | {cells[1]:>{widths[1]}} | {cells[2]:<{widths[2]}} |"


def _shown(item: Figure) -> str:
    values = item.value if isinstance(item.value, tuple) else (item.value,)
    return ", ".join(
        str(value) if isinstance(value, str) else _number(value or 0, item.unit) for value in values
    )


def _number(value: float, unit: str) -> str:
    """Six significant digits in a unit that suits the size; exact figures stand in the JSON."""
    if unit == "share":
        return f"{_digits(100 * value)} %"
    if unit == "ns":
        divisor, name = next((by, name) for least, by, name in _TIME_UNITS if abs(value) >= least)
        return f"{_digits(value / divisor)} {name}"
    if unit in ("bytes/s", "FLOP/s"):
        by, prefix = next((row for row in _SI_PREFIXES if abs(value) >= row[0]), (1.0, ""))
        return f"{_digits(value / by)} {prefix}{unit.replace('bytes', 'B')}"
    if unit == "bytes":
        binary = next((f" ({_digits(value / by)} {name})" for by, name in _BINARY_UNITS if value >= by), "")
        return f"{_digits(value)} bytes{binary}"
    return f"{_digits(value)} {unit}".rstrip()


def _digits(value: float) -> str:
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.6g}"
