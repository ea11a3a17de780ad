"""The capture itself: when the window begins and ends, what is written, what goes wrong on the way."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType

from collectors import engines
from collectors.errors import CollectError
from collectors.manifest import LEFT_BY, ManifestError, TraceFile
from collectors.run_folder import RunFolder
from collectors.session import Session
from collectors.torch_profiler.ranks import agreed_identity, refuse_used
from collectors.torch_profiler.settings import Settings, declared, settled
from collectors.torch_profiler.sigterm import Sigterm, Terminated
from collectors.torch_profiler.step_times import StepTimes
from collectors.torch_profiler.window import TORCH_ERRORS, Window

_log = logging.getLogger(__name__)
_entered: list[Capture] = []
"""The capture that runs in this process, at most one."""


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
        self._times = StepTimes()
        self._sigterm = Sigterm()
        self._window: Window | None = None
        self._session: Session | None = None
        self._failure: CollectError | None = None
        self._file: TraceFile | None = None
        self._running = False
        self._warned = False
        self._left_ns = 0

    def __enter__(self) -> Capture:
        """Open the rank's record. Raises CollectError where the capture cannot be taken or is used twice."""
        if self._settings.folder is not None:
            self._open(self._settings.folder)
        self._inside = True
        return self

    def step(self) -> None:
        """One step of the program is done. Raises nothing of the collector's; outside the block it warns once."""
        if not self._inside:
            if not self._warned:
                _log.warning("step() outside the block of capture(): not counted")
            self._warned = True
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
        self._left_ns = time.time_ns()
        self._sigterm.held = True
        try:
            self._close_window()
            self._finish(value)
        finally:
            self._session.__exit__()
            _entered.clear()
            self._sigterm.leave()
        if self._failure is not None:
            if value is None:
                raise self._failure
            value.add_note(f"The capture failed, too: {self._failure}")
        if self._sigterm.arrived and value is None:
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
            folder, "torch", command=sys.orig_argv, pins={**engines.imported(), **self._settings.pins}, who=who
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
        self._sigterm.watch()
        self._advance = self._after_plain
        if self._settings.wait == 0:
            self._begin_window()
            if self._failure is not None:
                self.__exit__(None, None, None)  # raises it: nothing of the program is lost yet
            self._times.begin()

    # -- steps ----------------------------------------------------------------------------------------

    def _after_plain(self) -> None:
        """A step before the window. The first is not timed: it may load and compile."""
        lasted = self._times.now()
        if lasted is not None:
            self._times.plain_ns.append(lasted)
        if self.count >= self._settings.wait:
            self._begin_window()
        self._times.begin()

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
        lasted, before = self._times.now(), self._window.recorded
        try:
            self._window.step()
        except (CollectError, *TORCH_ERRORS) as error:
            self._running = False
            self._window.abandon()
            self._give_up(error)
            return
        if self._window.recorded > before and lasted is not None:
            self._times.profiled_ns.append(lasted)
        if self._window.full:
            self._sigterm.held = True
            self._close_window()
            self._sigterm.held = False
            if self._sigterm.arrived:
                raise Terminated
        self._times.begin()

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
        self._running, self._advance = False, None
        try:
            self._window.stop()
            if self._window.recorded:
                folder = self._session.folder
                self._file = folder.describe(self._window.save(folder, self._session.rank), "kineto-json")
                inflation, why = self._times.inflation()
                self._session.note_down(
                    files=[self._file],
                    captured_steps=self._window.recorded,
                    inflation=inflation,
                    notes=[why] if why else [],
                )
        except (CollectError, ManifestError, *TORCH_ERRORS) as error:
            self._give_up(error)

    def _finish(self, value: BaseException | None) -> None:
        assert self._session is not None
        notes = self._notes(value)
        clean = value is None or (isinstance(value, SystemExit) and value.code in (None, 0))
        whole = self._file is not None and self._failure is None
        status = "complete" if clean and whole else "failed"
        if isinstance(value, Terminated) or self._sigterm.arrived:
            status = "killed"
        if self._file is None and self._failure is None:
            _log.warning("nothing was captured: %s", notes[-1])
        try:
            self._session.finish(status, ended_ns=self._left_ns, notes=notes)
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
            code = f"({value.code})" if isinstance(value, SystemExit) and isinstance(value.code, int) else ""
            notes.append(f"{LEFT_BY} {type(value).__name__}{code}")
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
