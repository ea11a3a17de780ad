"""The processes that one capture started, told by a variable in their environment, so that no other is ever ended.

nsys puts its agent and the command into sessions of their own, where no process group reaches them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "TRACEBOUND_CAPTURE"
"""Holds the capture's token in everything that nsys starts."""
_POLL_S = 0.05


@dataclass(frozen=True)
class _Process:
    pid: int
    parent: int
    is_ours: bool
    is_nsys: bool


def command_pids(token: str, root: int) -> set[int]:
    """Processes of the command: ours or below ``root``, and no part of nsys."""
    found = _scan(token)
    below = {root}
    for _ in range(len(found)):
        more = {one.pid for one in found if one.parent in below} - below
        if not more:
            break
        below |= more
    return {one.pid for one in found if (one.is_ours or one.pid in below) and not one.is_nsys} - {root}


def installed_files(pids: Iterable[int]) -> set[str]:
    """Files of installed Python packages that these processes have mapped now, of those that may be looked at."""
    found: set[str] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
                path = line[line.find("/") :] if "/" in line else ""
                if "-packages/" in path:
                    found.add(path)
    return found


def end_all(token: str) -> None:
    """SIGKILL what the capture started."""
    _end((one for one in _scan(token) if one.is_ours), token)


def end_nsys(token: str, grace_s: float) -> bool:
    """SIGKILL the part that is nsys, its agent, if it has not ended within ``grace_s`` seconds. Whether it had not."""
    until_s = time.monotonic() + grace_s
    while left := [one for one in _scan(token) if one.is_ours and one.is_nsys]:
        if time.monotonic() > until_s:
            _end(left, token)
            return True
        time.sleep(_POLL_S)
    return False


def end_command(token: str, root: int) -> None:
    """SIGKILL only the command; ``root`` is nsys, whatever its program is called."""
    _end((one for one in _scan(token) if one.is_ours and not one.is_nsys and one.pid != root), token)


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be fetched does not."""
    status = _status(pid)
    return status is not None and status[0] not in "ZX"


def _end(found: Iterable[_Process], token: str) -> None:
    """Through handles taken before the check: a number cannot pass to another process in between."""
    for one in found:
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(one.pid)
            try:
                if _is_ours(one.pid, token):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
            finally:
                os.close(handle)


def _scan(token: str) -> list[_Process]:
    found: list[_Process] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        pid = int(entry.name)
        status = _status(pid)
        if status is not None and status[0] not in "ZX" and pid != os.getpid():
            found.append(_Process(pid, status[1], _is_ours(pid, token), _is_nsys(pid)))
    return found


def _status(pid: int) -> tuple[str, int] | None:
    """State letter and parent."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    state, parent = text.rpartition(")")[2].split()[:2]
    return state, int(parent)


def _is_ours(pid: int, token: str) -> bool:
    try:
        return f"{VARIABLE}={token}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _is_nsys(pid: int) -> bool:
    """By name (nsys, nsys-launcher, QdstrmImporter), or because it lies in an installation."""
    try:
        path = Path(f"/proc/{pid}/exe").readlink()
        return path.name.startswith(("nsys", "Qdstrm")) or "nsight-systems" in str(path.parent)
    except OSError:
        return False
