"""Path time on the CPU, rolled up by CUDA call, OS call, op, range, Python frame and thread."""

from __future__ import annotations

import numpy as np

from analyzer.arrays import distinct, unique_inverse
from analyzer.categories import CATEGORY_NAMES, Category
from analyzer.diagnosis import HostRollup
from analyzer.explain.host.enclosing import row_at
from analyzer.explain.host.on_path import HostSegments, host_segments
from analyzer.explain.host.python_frames import INSTALLED, OWN, frame_origins
from analyzer.explain.phase_windows import PhaseWindows, sums
from analyzer.explain.segments import merge_suffixes, place_of_thread
from analyzer.model import HostKind, IntArray
from analyzer.reconstruct.rank import RankAccount
from analyzer.reconstruct.step_markers import clean_name

KEEP = 40
"""Named rows kept per phase and kind of record; the rest is one row, so that sums hold."""
NOTHING = "(none recorded)"
OTHER = "(other)"
_KINDS = (
    ("call", HostKind.CALL),
    ("os", HostKind.OS),
    ("op", HostKind.OP),
    ("range", HostKind.RANGE),
    ("frame", HostKind.FRAME),
)
_UNKNOWN, _REST = -1, -2


def host_rollups(account: RankAccount, rank: int, phases: PhaseWindows) -> list[HostRollup]:
    """Roll-ups per phase, longest first; each kind of record sums to the path time on the CPU.

    A segment counts for the innermost record of the kind that is open on its thread where it starts. Step
    markers are no ranges: they hold everything. Of frames the innermost in own code counts, else in an
    installed package, else the innermost of all.
    """
    segments = host_segments(phases)
    if not len(segments):
        return []
    process = account.trace.process
    result = []
    for by, kind in _KINDS:
        rows = _records(account, segments, kind)
        codes = np.where(rows >= 0, process.host.name[np.maximum(rows, 0)], _UNKNOWN).astype(np.int64)
        codes = merge_suffixes(process, codes)
        values = distinct(codes)
        texts = {code: clean_name(process.names[code]) for code in values[values >= 0].tolist()}
        result += _roll_up(rank, phases, segments, by, codes, texts)
    threads = segments.thread
    texts = {t: place_of_thread(process, t) for t in distinct(threads[threads >= 0]).tolist()}
    return result + _roll_up(rank, phases, segments, "thread", threads, texts)


def _records(account: RankAccount, segments: HostSegments, kind: HostKind) -> IntArray:
    """(s,) innermost host row of a kind where each segment starts, -1 none."""
    host = account.trace.process.host
    found = np.full(len(segments), -1, np.int64)
    for thread in distinct(segments.thread[segments.thread >= 0]).tolist():
        mine = np.flatnonzero(segments.thread == thread)
        rows = account.account.rows_of(thread)
        rows = rows[(host.kind[rows] == kind) & ~account.account.roles.step[rows]]
        pools = _by_origin(account, rows) if kind == HostKind.FRAME else [rows]
        for pool in pools:
            left = mine[found[mine] < 0]
            if not len(left):
                break
            found[left] = row_at(host, pool, segments.start_ns[left])
    if kind != HostKind.FRAME and len(host):
        # The walk names the call that was held or still running, even where its record starts later, and the
        # collective that a thread waited for.
        known = (segments.row >= 0) & (host.kind[np.maximum(segments.row, 0)] == kind)
        found = np.where(known, segments.row, found)
    return found


def _by_origin(account: RankAccount, rows: IntArray) -> list[IntArray]:
    """Frames to choose among: own code, own and installed, all."""
    process = account.trace.process
    codes, inverse = unique_inverse(process.host.name[rows])
    origin = frame_origins([process.names[code] if code >= 0 else "" for code in codes.tolist()])
    of_row = origin[inverse] if len(rows) else np.empty(0, np.int8)
    pools = [rows[of_row == OWN], rows[of_row <= INSTALLED], rows]
    return [pool for at, pool in enumerate(pools) if not at or len(pool) > len(pools[at - 1])]


def _roll_up(
    rank: int, phases: PhaseWindows, segments: HostSegments, by: str, codes: IntArray, texts: dict[int, str]
) -> list[HostRollup]:
    """Rows of one kind of record: per phase the longest, what has no record, and the rest as one."""
    texts = {**texts, _UNKNOWN: NOTHING, _REST: OTHER}
    result = []
    for phase in distinct(segments.phase).tolist():
        mine = np.flatnonzero(segments.phase == phase)
        values, inverse = unique_inverse(codes[mine])
        time = sums(inverse, segments.length_ns[mine], len(values))
        order = sorted(range(len(values)), key=lambda at: (-time[at], texts[int(values[at])]))
        named = [at for at in order if values[at] != _UNKNOWN]
        values = values.copy()
        values[named[KEEP:]] = _REST
        result += _rows(rank, phases, segments, by, phase, mine, values[inverse], texts)
    return result


def _rows(
    rank: int,
    phases: PhaseWindows,
    segments: HostSegments,
    by: str,
    phase: int,
    mine: IntArray,
    codes: IntArray,
    texts: dict[int, str],
) -> list[HostRollup]:
    values, inverse = unique_inverse(codes)
    count, width = len(values), len(Category)
    length = segments.length_ns[mine]
    time = sums(inverse, length, count)
    by_category = sums(inverse * width + segments.category[mine], length, count * width).reshape(count, width)
    number = np.bincount(inverse, minlength=count)
    windows_with = _windows_with(inverse, segments.window[mine], count)
    rows = [
        HostRollup(
            rank=rank,
            phase=phases.phases[phase],
            by=by,
            name=texts[int(values[at])],
            category=CATEGORY_NAMES[Category(int(np.argmax(by_category[at])))],
            path_ns=int(time[at]),
            windows=int(phases.windows[phase]),
            windows_with=int(windows_with[at]),
            segments=int(number[at]),
        )
        for at in range(count)
    ]
    return sorted(rows, key=lambda row: (-row.path_ns, row.name))


def _windows_with(codes: IntArray, window: IntArray, count: int) -> IntArray:
    """(count,) distinct windows of each code."""
    windows = unique_inverse(window)[1]
    width = int(windows.max()) + 1
    pairs, _ = unique_inverse(codes * width + windows)  # linear in time where there are few pairs
    return np.bincount(pairs // width, minlength=count)
