"""One cycle of torch's profiler: warm-up steps, recorded steps, and the file that comes of them."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from collectors.errors import CollectError
from collectors.run_folder import RunFolder
from collectors.torch_profiler.settings import Settings

SUFFIX = ".pt.trace.json.gz"
TORCH_ERRORS = (RuntimeError, ValueError, TypeError, AttributeError, AssertionError, OSError)
"""What torch's profiler raises where it cannot start, stop or export."""
_LEVEL = 3
"""Of gzip: half the time of the default level, for a tenth more bytes."""
_BLOCK = 1 << 20


class Window:
    """The profiler's cycle; it must be driven from one thread. Methods raise what torch raises."""

    def __init__(self, settings: Settings) -> None:
        """Raises CollectError where torch is not installed, or has no profiler."""
        try:
            self._torch: Any = importlib.import_module("torch")
            self._profiler: Any = importlib.import_module("torch.profiler")
        except ImportError as error:
            raise CollectError(
                "torch", f"cannot be imported ({error})", "install it beside the program, or do not capture"
            ) from error
        self._settings = settings
        self._profile: Any = None
        self._ready = False
        self._steps = 0
        self._cut_step: int | None = None
        self.recorded = 0
        """Steps that were recorded from begin to end."""

    @property
    def full(self) -> bool:
        """Whether all steps of the cycle were seen."""
        return self._steps >= self._settings.warmup + self._settings.active

    def start(self, first: int) -> None:
        """Begin the cycle with the program's step number ``first``, which names ``ProfilerStep#first``.

        Raises CollectError where the program's own profiler records: a second one would end its session.
        """
        settings = self._settings
        if self._recording():
            raise CollectError(
                "torch.profiler", "another profiler records in this process", "use one of them at a time"
            )
        self._profile = self._profiler.profile(
            activities=self._activities(),
            # before ``first`` nothing of the profiler exists, so that plain steps stay plain
            schedule=lambda step: self._action(max(step - first, 0)),
            on_trace_ready=self._set_ready,
            record_shapes=settings.shapes,
            with_stack=settings.stacks,
            profile_memory=settings.memory,
            experimental_config=self._synchronization_events(),
        )
        self._profile.step_num = first
        self._profile.__enter__()

    def step(self) -> None:
        """One step ends, the next begins. Raises CollectError where the session is no longer this one's."""
        self._refuse_lost()
        self._profile.step()
        self._steps += 1
        if self._steps > self._settings.warmup and not (self._ready and not self.full):
            self.recorded += 1  # a profiler that stopped by itself (buffers full) had its trace ready early

    def stop(self) -> None:
        """End the cycle. The step that runs is cut, unless the cycle is full. CollectError as from ``step``."""
        self._refuse_lost()
        if not self.full:
            self._cut_step = self._profile.step_num
        self._profile.__exit__(None, None, None)

    def abandon(self) -> None:
        """End the cycle without a trace, as far as that can be done."""
        with contextlib.suppress(CollectError, *TORCH_ERRORS):
            self.stop()

    def save(self, folder: RunFolder, rank: int) -> Path:
        """Write the trace, whole or not at all. Raises CollectError where it cannot be written."""
        path = folder.trace_path(rank, SUFFIX)
        try:
            with _removed(folder, f"rank{rank}.{os.getpid()}.json") as plain:
                # Kineto only logs what it could not write
                self._profile.export_chrome_trace(str(plain))
                if not _ends_well(plain):
                    raise CollectError(
                        str(path), "torch did not write its trace whole", "look for room on the disk, and for "
                        "messages of torch on standard error",
                    )  # fmt: skip
                with _removed(folder, f"{path.name}.{os.getpid()}") as packed:
                    self._pack(plain, packed)
                    packed.replace(path)
        except OSError as error:
            raise CollectError(
                str(path),
                f"cannot be written ({error.strerror or error})",
                "make room, or pass another folder",
            ) from error
        return path

    def versions(self) -> dict[str, str]:
        """Versions that torch itself tells."""
        found = {"torch": str(self._torch.__version__)}
        if self._torch.version.cuda:
            found["cuda"] = str(self._torch.version.cuda)
        distributed = self._torch.distributed
        if self._torch.cuda.is_available() and distributed.is_available() and distributed.is_nccl_available():
            found["nccl"] = ".".join(map(str, self._torch.cuda.nccl.version()))
        return found

    def notes(self) -> list[str]:
        """What this torch cannot record here, or not well."""
        found = []
        if not self._torch.cuda.is_available():
            found.append("no CUDA device: only the CPU is recorded")
        elif self._synchronization_events() is None:
            found.append("this version of torch records no synchronization events")
        if self._settings.warmup == 0:
            found.append("no warm-up steps: the first recorded steps may hold the start of the profiler")
        return found

    def _pack(self, plain: Path, packed: Path) -> None:
        # the name is taken away from a step that is none, so that nobody averages it with the others
        old = new = b""
        if self._cut_step is not None:
            old = f'"ProfilerStep#{self._cut_step}"'.encode()
            new = f'"ProfilerStep#{self._cut_step} (cut)"'.encode()
        with plain.open("rb") as source, packed.open("wb") as target:
            with gzip.GzipFile("", "wb", _LEVEL, target) as stream:
                while lines := source.readlines(_BLOCK):
                    block = b"".join(lines)
                    stream.write(block.replace(old, new) if old else block)
            target.flush()
            os.fsync(target.fileno())

    def _action(self, at: int) -> Any:
        """What the profiler does in step ``at`` of the cycle, of which there is one."""
        actions, last = self._profiler.ProfilerAction, self._settings.warmup + self._settings.active - 1
        if at < self._settings.warmup:
            return actions.WARMUP
        if at < last:
            return actions.RECORD
        return actions.RECORD_AND_SAVE if at == last else actions.NONE

    def _activities(self) -> list[Any]:
        kinds = self._profiler.ProfilerActivity
        return [kinds.CPU, kinds.CUDA] if self._torch.cuda.is_available() else [kinds.CPU]

    def _synchronization_events(self) -> Any:
        """The option that records waits for the device and between streams; None where torch has none."""
        try:
            return self._torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
        except (AttributeError, TypeError):
            return None

    def _recording(self) -> bool:
        """Whether any profiler of torch records now."""
        return bool(getattr(self._torch.autograd.profiler, "_is_profiler_enabled", False))

    def _refuse_lost(self) -> None:
        """A profiler that began and ended meanwhile took the session along; torch crashes on its remains."""
        first, end = self._settings.warmup, self._settings.warmup + self._settings.active
        if first <= self._steps < end and not self._ready and not self._recording():
            raise CollectError(
                "torch.profiler", "another profiler ended the recording", "use one of them at a time"
            )

    def _set_ready(self, _: object) -> None:
        self._ready = True


@contextmanager
def _removed(folder: RunFolder, name: str) -> Iterator[Path]:
    """A temporary file beside the others, gone afterwards with what Kineto leaves of it."""
    path = folder.path / f".{name}"
    try:
        yield path
    finally:
        for left in (path, path.with_name(f"{path.name}.tmp")):
            left.unlink(missing_ok=True)


def _ends_well(path: Path) -> bool:
    """Whether the file ends as a JSON object does; where the disk was full, packing it fails as well."""
    if not path.exists():
        return False
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 64))
        return file.read().rstrip().endswith(b"}")
