"""From paths to a capture: files read side by side, ranks told apart, what the user asked for kept."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from analyzer.errors import TraceError, UsageError
from analyzer.model import Capture, StoredTrace, Trace
from analyzer.progress import NoProgress, Progress
from analyzer.readers.assemble import assemble
from analyzer.readers.registry import expand, read_file
from analyzer.readers.run import find_run
from analyzer.readers.service_log import find_logs, read_token_log
from analyzer.stored import outlines, store
from analyzer.tokens import TokenLog

_NO_PROGRESS = NoProgress()
A = TypeVar("A")
B = TypeVar("B")
Paths = Sequence[str | Path] | str | Path


@contextmanager
def workers(jobs: int) -> Iterator[Executor | None]:
    """An executor of ``jobs`` processes, None for one: then everything runs here."""
    if jobs <= 1:
        yield None
        return
    # Spawned rather than forked: the parent may hold Arrow's threads.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield pool


def read(
    paths: Paths,
    *,
    rank_regex: str | None = None,
    ranks: Sequence[int] | None = None,
    device: int | None = None,
    manifest: str | Path | None = None,
    jobs: int = 1,
    executor: Executor | None = None,
    progress: Progress = _NO_PROGRESS,
) -> Capture:
    """Read files, folders or patterns into one capture in memory.

    ``executor``: any ``concurrent.futures.Executor``, instead of ``jobs`` processes. ``manifest``: that of the run;
    without one, a manifest beside the files that lists them. Raises TraceError for what cannot be read, UsageError
    for a rank or device that is not there.
    """
    files = _files(paths)
    run = find_run(_listed(paths), files, manifest)
    with given(executor, jobs if len(files) > 1 else 1) as pool:
        task = read_file if pool is not None else partial(read_file, progress=progress)
        per_file = list(pool_map(pool, task, files))
    capture = assemble(per_file, rank_regex, run)
    return _only_ranks(_only_device(capture, device), ranks)


@contextmanager
def opened(
    paths: Paths,
    *,
    rank_regex: str | None = None,
    ranks: Sequence[int] | None = None,
    device: int | None = None,
    manifest: str | Path | None = None,
    executor: Executor | None = None,
    progress: Progress = _NO_PROGRESS,
) -> Iterator[Capture]:
    """The same for a single analysis: of several files each rank's trace lies on disk until its turn comes.

    So memory holds as many ranks as there are workers, whatever the number of files. Arguments and errors
    as for ``read``.
    """
    files = _files(paths)
    if len(files) < 2:
        yield read(
            paths, rank_regex=rank_regex, ranks=ranks, device=device, manifest=manifest, executor=executor,
            progress=progress,
        )  # fmt: skip
        return
    run = find_run(_listed(paths), files, manifest)
    with tempfile.TemporaryDirectory(prefix="tracebound-") as folder:
        task = partial(_stow, folder=folder)
        progress.start("reading files", len(files))
        per_file = []
        for outcome in pool_map(executor, task, list(enumerate(files))):
            per_file.append(outcome)
            progress.advance(1)
        stored = {
            id(trace): place
            for traces, places in per_file
            for trace, place in zip(traces, places, strict=True)
        }
        capture = assemble([traces for traces, _ in per_file], rank_regex, run)
        capture = replace(capture, stored=tuple(stored[id(trace)] for trace in capture.traces))
        yield _only_ranks(_only_device(capture, device), ranks)


def pool_map(executor: Executor | None, task: Callable[[A], B], items: Sequence[A]) -> Iterator[B]:
    """Results in the order of the items, as they come."""
    return map(task, items) if executor is None else executor.map(task, items)


@contextmanager
def given(executor: Executor | None, jobs: int) -> Iterator[Executor | None]:
    """The executor that was given, else one of ``jobs`` processes."""
    if executor is not None:
        yield executor
        return
    with workers(jobs) as pool:
        yield pool


def _listed(paths: Paths) -> list[str | Path]:
    return [paths] if isinstance(paths, str | Path) else list(paths)


def _files(paths: Paths) -> list[Path]:
    return expand(_listed(paths))


def _stow(numbered: tuple[int, Path], folder: str) -> tuple[list[Trace], list[StoredTrace]]:
    """Read one file and lay its traces aside; what tells its ranks apart comes back."""
    number, path = numbered
    traces = read_file(path)
    places = [store(trace, Path(folder) / f"{number}-{at}") for at, trace in enumerate(traces)]
    return outlines(traces), places


def _only_device(capture: Capture, device: int | None) -> Capture:
    if device is None:
        return capture
    present = sorted({t.device_info.index for t in capture.traces if t.device_info is not None})
    if device not in present:
        there = ", ".join(str(index) for index in present) or "none"
        raise UsageError(
            "--device", str(device), f"this capture holds work of devices {there}", "choose one of these"
        )
    return _filtered(
        capture, [t.device_info is not None and t.device_info.index == device for t in capture.traces]
    )


def _only_ranks(capture: Capture, ranks: Sequence[int] | None) -> Capture:
    if ranks is None:
        return capture
    absent = sorted(set(ranks) - set(capture.ranks))
    if absent:
        there = ", ".join(str(rank) for rank in capture.ranks)
        raise UsageError("--ranks", str(absent[0]), f"this capture holds ranks {there}", "choose among these")
    return _filtered(capture, [rank in set(ranks) for rank in capture.ranks])


def _filtered(capture: Capture, keep: Sequence[bool]) -> Capture:
    kept = [at for at, wanted in enumerate(keep) if wanted]
    return replace(
        capture,
        traces=tuple(capture.traces[at] for at in kept),
        ranks=tuple(capture.ranks[at] for at in kept),
        stored=tuple(capture.stored[at] for at in kept) if capture.stored else (),
        records=tuple(capture.records[at] for at in kept) if capture.records else (),
    )


def find_token_logs(paths: Paths) -> list[Path]:
    """The logs of our own client in the folders among ``paths``, each once."""
    folders = [Path(path).expanduser() for path in _listed(paths)]
    found = [log for folder in folders if folder.is_dir() for log in find_logs(folder)]
    return list({log.resolve(): log for log in found}.values())


def token_logs(paths: Sequence[str | Path]) -> list[TokenLog]:
    """The token logs that are given, each once, folders standing for the logs in them. Raises TraceError."""
    logs: list[TokenLog] = []
    seen: set[Path] = set()
    for path in map(Path, paths):
        found = find_logs(path) if path.is_dir() else [path]
        if not found:
            raise TraceError(
                str(path), "", "the folder holds no token log of this client", "give the log itself"
            )
        new = [file for file in found if file.resolve() not in seen]
        seen.update(file.resolve() for file in new)
        logs += map(read_token_log, new)
    return logs


def on_one_zero(capture: Capture) -> tuple[Capture, int | None]:
    """All ranks' instants relative to one epoch: that of the first rank that knows its own.

    Returns the capture and that epoch in ns, None where no rank knows it (then nothing is moved).
    """
    known = [trace.epoch_zero_ns for trace in capture.traces if trace.epoch_zero_ns is not None]
    if not known:
        return capture, None
    zero = known[0]
    moved: dict[tuple[int, int], Trace] = {}
    traces, stored = [], []
    for at, trace in enumerate(capture.traces):
        shift = 0 if trace.epoch_zero_ns is None else trace.epoch_zero_ns - zero
        if capture.stored:
            stored.append(replace(capture.stored[at], shift_ns=shift))
        if shift:
            key = (id(trace.process), shift)
            process = moved[key].process if key in moved else None
            trace = trace.shifted(shift)
            trace = trace if process is None else replace(trace, process=process)
            moved[key] = trace
        traces.append(trace)
    return replace(capture, traces=tuple(traces), stored=tuple(stored)), zero
