"""Clock anchors of a rank, and messages that bound how far two hosts' wall clocks lie apart.

Traces carry wall-clock times of their host. Two processes on one kernel share that clock. Between hosts rank 0
answers pings: no message arrives before it was sent, so each one bounds the offset from one side.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from collectors.manifest import Anchor, ClockBound
from collectors.run_folder import write_whole

SERVER = "clock-server.json"
"""In the run folder's ``ranks``: where rank 0 answers."""
_TIMES = struct.Struct("!qq")
_ROUNDS = 64
_TOKEN_BYTES = 16


def anchor(samples: int = 32) -> Anchor:
    """The wall clock against the monotonic one: of several readings the narrowest."""
    best: Anchor | None = None
    for _ in range(samples):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        if best is None or after - before < best.width_ns:
            best = Anchor(before + (after - before) // 2, wall, after - before)
    assert best is not None
    return best


def boot_id() -> str | None:
    """Names the running kernel, and with it the clock; None where the system does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


@contextlib.contextmanager
def answering(folder: Path) -> Iterator[None]:
    """Rank 0: answer the other ranks' pings while the block runs; where, stands in the run folder."""
    token = secrets.token_bytes(_TOKEN_BYTES)
    path = folder / "ranks" / SERVER
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.create_server(("", 0)) as server:
        stop = threading.Event()
        server.settimeout(0.2)
        thread = threading.Thread(target=_serve, args=(server, token, stop), daemon=True)
        thread.start()
        where = {
            "addresses": _addresses(),
            "port": server.getsockname()[1],
            "token": token.hex(),
            "boot_id": boot_id(),
        }
        write_whole(path, json.dumps(where) + "\n")
        try:
            yield
        finally:
            stop.set()
            thread.join()
            path.unlink(missing_ok=True)


def _addresses() -> list[str]:
    """Names and addresses at which others may reach the host, best first."""
    found = [socket.gethostname(), socket.getfqdn()]
    with contextlib.suppress(OSError):
        found += [str(entry[4][0]) for entry in socket.getaddrinfo(socket.gethostname(), None)]
    return list(dict.fromkeys([*found, "127.0.0.1"]))


def _serve(server: socket.socket, token: bytes, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            connection, _ = server.accept()
        except TimeoutError:
            continue
        threading.Thread(target=_answer, args=(connection, token), daemon=True).start()


def _answer(connection: socket.socket, token: bytes) -> None:
    with connection, contextlib.suppress(OSError):
        connection.settimeout(5)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if connection.recv(_TOKEN_BYTES, socket.MSG_WAITALL) != token:
            return
        while connection.recv(1):
            came = time.time_ns()
            connection.sendall(_TIMES.pack(came, time.time_ns()))


def bound(folder: Path, *, wait_s: float = 10.0, rounds: int = _ROUNDS) -> tuple[ClockBound | None, str]:
    """Another rank than 0: how far the wall clocks lie apart, or None and why that is not known.

    Waits so long for rank 0 to answer. On one kernel both clocks are the same.
    """
    where = _find(folder / "ranks" / SERVER, wait_s)
    if where is None:
        return None, f"rank 0 did not answer within {wait_s:g} s"
    if where["boot_id"] is not None and where["boot_id"] == boot_id():
        return ClockBound(0, 0, 0, 0), ""
    for address in where["addresses"]:
        try:
            with socket.create_connection((address, where["port"]), timeout=2) as connection:
                return _exchange(connection, bytes.fromhex(where["token"]), rounds), ""
        except OSError:
            continue
    return None, f"rank 0 could not be reached at {', '.join(where['addresses'])}"


def _find(path: Path, wait_s: float) -> dict[str, Any] | None:
    until = time.monotonic() + wait_s
    while True:
        with contextlib.suppress(OSError, ValueError):
            found = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(found, dict):
                return found
        if time.monotonic() > until:
            return None
        time.sleep(0.05)


def _exchange(connection: socket.socket, token: bytes, rounds: int) -> ClockBound:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(token)
    low: int | None = None
    high: int | None = None
    for _ in range(rounds):
        sent = time.time_ns()
        connection.sendall(b".")
        answer = connection.recv(_TIMES.size, socket.MSG_WAITALL)
        back = time.time_ns()
        if len(answer) < _TIMES.size:
            raise ConnectionError("rank 0 hung up")
        came, went = _TIMES.unpack(answer)
        high = came - sent if high is None else min(high, came - sent)
        low = went - back if low is None else max(low, went - back)
    assert low is not None
    assert high is not None
    return ClockBound(0, low, high, rounds)
