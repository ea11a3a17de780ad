"""tracebound as a library: read a capture, analyze it, look at the result as DataFrames.

>>> import analyzer
>>> capture = analyzer.read(["rank0.sqlite", "rank1.sqlite"])  # doctest: +SKIP
>>> analyzer.analyze(capture, steps="decode").windows()  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyzer.version import __version__

if TYPE_CHECKING:
    from analyzer.analysis import Analysis
    from analyzer.comparison.runs import compare_analyses as compare
    from analyzer.model import Capture
    from analyzer.pipeline import analyze, read

__all__ = ["Analysis", "Capture", "__version__", "analyze", "compare", "read"]

_HOMES = {
    "Analysis": "analyzer.analysis",
    "Capture": "analyzer.model",
    "analyze": "analyzer.pipeline",
    "compare": "analyzer.comparison.runs",
    "read": "analyzer.pipeline",
}
_NAMES = {"compare": "compare_analyses"}
"""What bears another name at home."""


def __getattr__(name: str) -> Any:
    """Import the stages when they are first asked for, so that ``--version`` stays quick."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), _NAMES.get(name, name))


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
