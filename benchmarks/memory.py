"""Peak memory: of this process, and of a process with everything that it starts."""

from __future__ import annotations

import contextlib
import resource
import subprocess
import time
from pathlib import Path

_SAMPLE_S = 0.02
_PAGE = resource.getpagesize()


def peak_bytes() -> int:
    """Largest resident size of this process so far."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def watch(process: subprocess.Popen[bytes], timeout_s: float) -> int:
    """Wait for a process, no longer than ``timeout_s``; returns the peak memory of it and its descendants.

    The largest sum of their resident sizes in bytes, sampled every 20 ms from outside; a page that several of
    them share counts in each. 0 where /proc is missing.
    """
    peak, ending = 0, time.monotonic() + timeout_s
    while process.poll() is None:
        peak = max(peak, sum(map(_resident_bytes, _tree(process.pid))))
        if time.monotonic() > ending:
            process.kill()
            raise subprocess.TimeoutExpired(process.args, timeout_s)
        time.sleep(_SAMPLE_S)
    return peak


def _tree(pid: int) -> list[int]:
    """A process and all its descendants, by the kernel's lists of children."""
    found, waiting = [], [pid]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        with contextlib.suppress(OSError):  # it may end while its threads are listed
            for thread in Path(f"/proc/{pid}/task").iterdir():
                waiting += map(int, _text(thread / "children").split())
    return found


def _resident_bytes(pid: int) -> int:
    fields = _text(Path(f"/proc/{pid}/statm")).split()
    return int(fields[1]) * _PAGE if fields else 0


def _text(path: Path) -> str:
    """What the file says, nothing once its process is gone."""
    try:
        return path.read_text()
    except OSError:
        return ""
