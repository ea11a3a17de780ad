"""Named ranges in a program's own code: where a step, a phase and the handling of outputs begin and end.

```python
from collectors import ranges

with ranges.phase("decode"), ranges.step(7, batch=8):
    tokens = model(tokens)
    with ranges.output():
        send(tokens)
```

A range goes to whatever records: to a profiler of torch as ``record_function``, to Nsight Systems as an NVTX range
(by the module ``nvtx``, else by ``torch.cuda.nvtx``), to both where both record. Where nothing records, a range costs
less than a microsecond (``benchmarks/collectors.py``), so that it may stay in the program. It needs nothing installed.

The names are those by which ``tracebound diagnose`` knows steps and outputs without options:
``tracebound.step#7``, ``tracebound.step[decode bs=8]#7``, ``tracebound.step:name``, ``tracebound.phase[decode]``,
``tracebound.output``.

Ranges must end in the thread in which they began, the last one first. Do not hold one across an ``await``.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any

PHASES = ("prefill", "decode", "mixed")
_TORCH = "torch.autograd.profiler"
_ATTACHED = ("NVTX_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID")
"""Environment variables of a program in which a tool listens to NVTX."""

_log = logging.getLogger(__name__)


class _Here(threading.local):
    """What holds in a thread. A context variable would cost twice as much, and ranges stay in their thread anyway."""

    phase: str | None = None


_here = _Here()


def listening(environment: Mapping[str, str]) -> bool:
    """Whether a tool listens to NVTX ranges in a process with this environment."""
    return any(name in environment for name in _ATTACHED)


class _Nvtx:
    """NVTX by whichever module can emit it; searched for only where a tool listens."""

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted
        self.push: Any = None
        self.pop: Any = None

    def find(self) -> None:
        """Set ``push`` and ``pop``, or give up for good with a warning."""
        try:
            nvtx = importlib.import_module("nvtx")
        except ImportError:
            cuda = getattr(sys.modules.get("torch"), "cuda", None)
            if cuda is None or not cuda.is_available():
                self.wanted = False
                _log.warning("ranges are not recorded as NVTX: install nvtx (pip install nvtx)")
                return
            self.push, self.pop = cuda.nvtx.range_push, cuda.nvtx.range_pop
        else:
            self.push, self.pop = nvtx.push_range, nvtx.pop_range


_nvtx = _Nvtx(listening(os.environ))


class Range:
    """A range of one kind; a context manager that may be entered again after it was left."""

    __slots__ = ("_detail", "_kind", "_open")

    def __init__(self, kind: str, detail: tuple[int | str, int | None] | None = None) -> None:
        """``detail``: number or name, and batch, of a step."""
        self._kind = kind
        self._detail = detail
        self._open: _Open | None = None

    def __enter__(self) -> Range:
        """Open the range in what records now."""
        profiler = sys.modules.get(_TORCH)
        if _nvtx.wanted or (profiler is not None and getattr(profiler, "_is_profiler_enabled", False)):
            self._open = _Open(self.name, profiler)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close what was opened, whatever records by now."""
        if self._open is not None:
            opened, self._open = self._open, None
            opened.close()

    @property
    def name(self) -> str:
        """The range's name by what is known when it opens: a step carries the phase around it."""
        if self._detail is None:
            return self._kind
        number, batch = self._detail
        told = [word for word in (_here.phase, None if batch is None else f"bs={batch}") if word]
        inner = f"[{' '.join(told)}]" if told else ""
        return f"{self._kind}{inner}{'#' if isinstance(number, int) else ':'}{number}"


class _Open:
    """A range that was opened in torch's profiler, as NVTX, or in both."""

    def __init__(self, name: str, profiler: Any) -> None:
        self._torch: Any = None
        if getattr(profiler, "_is_profiler_enabled", False):
            self._torch = profiler.record_function(name)
            self._torch.__enter__()
        if _nvtx.wanted and _nvtx.push is None:
            _nvtx.find()
        self._pushed = _nvtx.push is not None
        if self._pushed:
            _nvtx.push(name)

    def close(self) -> None:
        """Close it, the last opened first."""
        if self._pushed:
            _nvtx.pop()
        if self._torch is not None:
            self._torch.__exit__(None, None, None)


class Phase:
    """A phase, which steps inside it are told to belong to. Not a Range: it is written to cost little."""

    __slots__ = ("_before", "_open", "_word")

    def __init__(self, word: str) -> None:
        self._word = word
        self._open: _Open | None = None

    def __enter__(self) -> Phase:
        """Known also where nothing records: a recording may begin inside the phase."""
        self._before = _here.phase
        _here.phase = self._word
        profiler = sys.modules.get(_TORCH)
        if _nvtx.wanted or (profiler is not None and getattr(profiler, "_is_profiler_enabled", False)):
            self._open = _Open(self.name, profiler)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Back to the phase before."""
        _here.phase = self._before
        if self._open is not None:
            opened, self._open = self._open, None
            opened.close()

    @property
    def name(self) -> str:
        """The range's name."""
        return f"tracebound.phase[{self._word}]"


def step(number: int | str, *, batch: int | None = None) -> Range:
    """One step of the engine, by its number (ranks match steps by it) or a name; ``batch``: sequences in it."""
    return Range("tracebound.step", (number, batch))


def phase(word: str) -> Phase:
    """What kind of steps run inside: ``prefill``, ``decode`` or ``mixed``. ValueError for another word.

    A phase is no step by itself: open it around steps. Inside a step it is a range like any other.
    """
    if word not in PHASES:
        raise ValueError(f"{word!r} is no phase; use one of {', '.join(PHASES)}")
    return Phase(word)


def output() -> Range:
    """Sampling, detokenizing, sending: host work on what a step put out."""
    return Range("tracebound.output")
