"""Capture a window of steps with torch.profiler, on every rank, into a run folder.

Three lines in the program, around its loop:

```python
from collectors.torch_profiler import capture

with capture("run", active=20) as steps:
    for batch in batches:
        work(batch)
        steps.step()
```

Without a folder, and without ``TRACEBOUND_RUN`` in the environment, this only counts steps, so that it may stay in the
program; ``python -m collectors torch -- CMD`` sets the variables and checks the result.

What goes wrong before the loop raises CollectError, before any work is lost. In ``step()`` nothing of the collector
is raised: the capture is given up, the program goes on, and the reason is raised as CollectError where the block
ends (as a note on the program's own exception, if there is one) and stands in the rank's record.

The trace is written when the window ends, inside that call of ``step()``: this takes seconds for large traces, and
keeps the capture should the program be killed later. SIGTERM inside the block (torchrun sends it to the other ranks
when one has died) becomes SystemExit(143) where the program has no handler of its own, so that what was captured is
written.

Do not start another profiler of torch inside the window: torch has one session per process, and crashes where two
overlap. A capture that finds one recording gives up and leaves it alone.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from statistics import median
from types import FrameType, TracebackType

from collectors.errors import CollectError
from collectors.manifest import Inflation, ManifestError, TraceFile
from collectors.run_folder import RunFolder
from collectors.session import Session
from collectors.torch_ranks import agreed_identity, refuse_used
from collectors.torch_settings import Settings, declared, settled
from collectors.torch_window import TORCH_ERRORS, Window

MIN_TIMED_STEPS = 3
"""Fewer steps have no median that means anything."""
_log = logging.getLogger(__name__)
_entered: list[Capture] = []
"""The capture that runs in this process, at most one."""


class Terminated(SystemExit):
    """SIGTERM arrived; ends the program with the shell's code for it."""

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


def capture(
    folder: str | os.PathLike[str] | None = None,
    *,
    wait: int = Settings.wait,
    warmup: int = Settings.warmup,
    active: int = Settings.active,
    shapes: bool = False,
    stacks: bool = False,
    memory: bool = False,
    pins: Mapping[str, str] | None = None,
) -> Capture:
    """A context manager that captures ``active`` steps after ``wait`` plain ones and ``warmup`` discarded ones.

    ``folder``: of the run; the rank's trace is ``rank<N>.pt.trace.json.gz`` in it. ``shapes``, ``stacks``, ``memory``:
    also record shapes of inputs, Python stacks, allocations; each makes steps slower. ``pins``: what the run pins, by
    the names in ``collectors.manifest.PINS``. ``TRACEBOUND_RUN``, ``_WAIT``, ``_WARMUP``, ``_ACTIVE``, ``_SHAPES``,
    ``_STACKS``, ``_MEMORY`` and ``_PINS`` in the environment win over these.

    Raises CollectError for a cycle or pins that cannot be meant.
    """
    given = Settings(
        None if folder is None else os.fspath(folder),
        wait, warmup, active, shapes, stacks, memory, declared(pins or {}),
    )  # fmt: skip
    return Capture(settled(given, os.environ))


class Capture:
    """One window of steps. ``count``: how often ``step()`` was called inside the block."""

    def __init__(self, settings: Settings) -> None:
        self.count = 0
        self._settings = settings
        self._advance: Callable[[], None] | None = None
        self._inside = False
        self._used = False
        self._timing_since: int | None = None
        self._plain_ns: list[int] = []
        self._profiled_ns: list[int] = []
        self._window: Window | None = None
        self._session: Session | None = None
        self._failure: CollectError | None = None
        self._file: TraceFile | None = None
        self._running = False
        self._writing = False
        self._terminated = False
        self._handler_set = False

    def __enter__(self) -> Capture:
        """Open the rank's record. Raises CollectError where the capture cannot be taken or is used twice."""
        if self._settings.folder is not None:
            self._open(self._settings.folder)
        self._inside = True
        return self

    def step(self) -> None:
        """One step of the program is done. Raises nothing of the collector's; outside the block it warns."""
        if not self._inside:
            _log.warning("step() outside the block of capture(): not counted")
            return
        self.count += 1
        if self._advance is not None:
            self._advance()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what was captured and how the block ended. Raises CollectError where that failed."""
        self._inside, self._advance = False, None
        if self._session is None:
            return
        try:
            self._close_window()
            self._finish(value)
        finally:
            self._session.__exit__()
            _entered.clear()
            if self._handler_set and signal.getsignal(signal.SIGTERM) == self._on_sigterm:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if self._failure is not None:
            if value is None:
                raise self._failure
            value.add_note(f"The capture failed, too: {self._failure}")
        if self._terminated and value is None:
            raise Terminated

    # -- begin ----------------------------------------------------------------------------------------

    def _open(self, path: str) -> None:
        if _entered:
            raise CollectError(
                "capture()", "one is running in this process", "leave its block before another begins"
            )
        if self._used:
            raise CollectError("capture()", "was used already", "call capture() for each block")
        self._window = Window(self._settings)
        who = agreed_identity(os.environ)
        folder = RunFolder(path)
        refuse_used(folder, who)
        session = Session(
            folder, "torch", command=sys.orig_argv, pins=self._settings.pins, who=who
        )  # fmt: skip
        try:
            session.__enter__()
            session.note_down(
                steps="marked",
                profiler="torch.profiler",
                profiler_version=self._window.versions()["torch"],
                versions={**session.record.versions, **self._window.versions()},
                notes=self._window.notes(),
            )
        except OSError as error:
            session.__exit__()
            raise CollectError(path, f"cannot be used ({error})", "pass another folder") from error
        except (CollectError, ManifestError):
            session.__exit__()
            raise
        self._session, self._used = session, True
        _entered.append(self)
        self._catch_sigterm()
        self._advance = self._after_plain
        if self._settings.wait == 0:
            self._begin_window()
            if self._failure is not None:
                self.__exit__(None, None, None)  # raises it: nothing of the program is lost yet
            self._timing_since = time.perf_counter_ns()

    def _catch_sigterm(self) -> None:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._on_sigterm)
            self._handler_set = True

    def _on_sigterm(self, _: int, __: FrameType | None) -> None:
        self._terminated = True
        if not self._writing and self._inside:
            raise Terminated

    # -- steps ----------------------------------------------------------------------------------------

    def _after_plain(self) -> None:
        """A step before the window. The first is not timed: it may load and compile."""
        now = time.perf_counter_ns()
        if self._timing_since is not None:
            self._plain_ns.append(now - self._timing_since)
        if self.count >= self._settings.wait:
            self._begin_window()
        self._timing_since = time.perf_counter_ns()

    def _begin_window(self) -> None:
        assert self._window is not None
        assert self._session is not None
        try:
            who = agreed_identity(os.environ)
            if who.rank != self._session.rank:
                raise CollectError(
                    "rank",
                    f"was {self._session.rank} when capture() began, is {who.rank} now",
                    "call capture() after init_process_group, or start under torchrun",
                )
            if who.world_size != self._session.record.world_size:
                self._session.note_down(world_size=who.world_size)
            self._window.start(self.count)
        except (CollectError, ManifestError, *TORCH_ERRORS) as error:
            self._give_up(error)
        else:
            self._running, self._advance = True, self._after_profiled

    def _after_profiled(self) -> None:
        """A step of the window: its own time first, so that the profiler's transitions are in no step."""
        assert self._window is not None
        now, before = time.perf_counter_ns(), self._window.recorded
        try:
            self._window.step()
        except (CollectError, *TORCH_ERRORS) as error:
            self._running = False
            self._window.abandon()
            self._give_up(error)
            return
        if self._window.recorded > before and self._timing_since is not None:
            self._profiled_ns.append(now - self._timing_since)
        if self._window.full:
            self._close_window()
            if self._terminated:
                raise Terminated
        self._timing_since = time.perf_counter_ns()

    def _give_up(self, error: Exception) -> None:
        """The program goes on without a capture; the reason is raised where the block ends."""
        self._advance = None
        if not isinstance(error, CollectError):
            error = CollectError(
                "torch.profiler", str(error), "see whether another profiler runs in the process"
            )
        self._failure = error
        _log.warning("the capture is given up, the program goes on: %s", error)

    # -- end ------------------------------------------------------------------------------------------

    def _close_window(self) -> None:
        """Stop the profiler if it runs, write the trace, and note both down."""
        if not self._running:
            return
        assert self._window is not None
        assert self._session is not None
        self._running, self._advance, self._writing = False, None, True
        try:
            self._window.stop()
            if self._window.recorded:
                folder = self._session.folder
                self._file = folder.describe(self._window.save(folder, self._session.rank), "kineto-json")
                inflation, why = self._inflation()
                self._session.note_down(
                    files=[self._file],
                    captured_steps=self._window.recorded,
                    inflation=inflation,
                    notes=[why] if why else [],
                )
        except (CollectError, ManifestError, *TORCH_ERRORS) as error:
            self._give_up(error)
        finally:
            self._writing = False

    def _inflation(self) -> tuple[Inflation | None, str]:
        """What profiling cost: the median recorded step over the median plain step of the same loop.

        A step lasts from the return of one ``step()`` to the next call, by this host's clock; nothing is synchronized
        for it, so steps that only submit work are host time. Plain steps are those before the window, without the
        first; warm-up steps and the profiler's own transitions are in neither. None and the reason with too few.
        """
        plain, profiled = self._plain_ns, self._profiled_ns
        if min(len(plain), len(profiled)) < MIN_TIMED_STEPS:
            return None, (
                f"profiling cost not measured: {len(plain)} plain and {len(profiled)} profiled steps were timed, "
                f"{MIN_TIMED_STEPS} of each are needed (wait is {self._settings.wait}, the first step does not count)"
            )
        return Inflation(round(median(profiled)), round(median(plain)), len(profiled), len(plain)), ""

    def _finish(self, value: BaseException | None) -> None:
        assert self._session is not None
        notes = self._notes(value)
        clean = value is None or (isinstance(value, SystemExit) and value.code in (None, 0))
        whole = self._file is not None and self._failure is None
        status = "complete" if clean and whole else "failed"
        if isinstance(value, Terminated) or self._terminated:
            status = "killed"
        if self._file is None and self._failure is None:
            _log.warning("nothing was captured: %s", notes[-1])
        try:
            self._session.finish(status, notes=notes)
        except (CollectError, ManifestError) as error:
            self._failure = self._failure or CollectError(
                str(self._session.folder.path), str(error), "see there"
            )

    def _notes(self, value: BaseException | None) -> list[str]:
        """How the block ended, as far as that is not as it should be."""
        assert self._window is not None
        notes = []
        settings, recorded = self._settings, self._window.recorded
        if value is not None:
            notes.append(f"the program's loop was left by {type(value).__name__}")
        if self._failure is not None:
            notes.append(f"the capture failed: {self._failure}")
        elif recorded < settings.active and self.count >= settings.wait + settings.warmup + settings.active:
            notes.append(
                f"torch's profiler stopped by itself: {recorded} of {settings.active} steps recorded"
            )
        elif recorded < settings.active:
            notes.append(
                f"the loop ended after {self.count} steps, with {recorded} of {settings.active} recorded "
                f"(wait {settings.wait}, warmup {settings.warmup})"
            )
        return notes
