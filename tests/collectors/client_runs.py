"""A run of the client read back, and its own wire with a window for the server."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from collectors import manifest
from collectors.client.wire import Exchange, Wire
from tests.collectors.streaming_server import WAIT_S, Write

ROOT = Path(__file__).parents[2]


class WatchedWire(Wire):
    """The client's own wire; the server may look how far the client has read."""

    made: list[WatchedWire] = []

    def __init__(self) -> None:
        super().__init__()
        self.exchanges: list[Exchange] = []
        self.made.append(self)

    def begin(self, deadline_ns: int) -> Exchange:
        exchange = super().begin(deadline_ns)
        self.exchanges.append(exchange)
        return exchange


def kernel_takes_times() -> bool:
    """Whether a plain socket of this machine gets times with what it receives."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as one,
    ):
        other, _ = server.accept()
        with other:
            try:
                one.setsockopt(socket.SOL_SOCKET, 35, 1)
            except OSError:
                return False
            for _ in range(100):  # it starts a little after the first one asks
                other.sendall(b"x")
                if one.recvmsg(1, 64)[1]:
                    return True
                time.sleep(0.01)
    return False


def taken(number: int, sent_bytes: int) -> None:
    """Wait until the client has read, and written down, so many bytes of the request; one request at a time."""
    until = time.monotonic() + WAIT_S
    while sum(read.bytes for read in WatchedWire.made[-1].exchanges[number].reads) < sent_bytes:
        assert time.monotonic() < until, "the client does not read"
        time.sleep(0.0005)


@dataclass
class Log:
    """A token log read back."""

    code: int
    lines: list[dict[str, Any]]
    out: str
    folder: Path

    def of(self, kind: str, request: int | None = None) -> list[dict[str, Any]]:
        return [
            line for line in self.lines if line["kind"] == kind and request in (None, line.get("request"))
        ]

    @property
    def record(self) -> manifest.RankRecord:
        return manifest.read(self.folder / "manifest.json").ranks[0]

    def outcomes(self) -> dict[int, str]:
        return {line["request"]: line["outcome"] for line in self.of("end")}


Run = Callable[..., Log]


def timed(log: Log, request: int = 0) -> list[dict[str, Any]]:
    """Events and the end of the stream, in order."""
    return [
        line for line in log.lines if line.get("request") == request and line["kind"] in ("event", "done")
    ]


def check_receipts(log: Log, writes: Sequence[Write], request: int = 0) -> None:
    """Every receipt lies between its write and the moment when the server saw that the client had it: exactly."""
    of_event = [write for write in writes for _ in range(write.events)]
    events = timed(log, request)
    assert len(events) == len(of_event)
    reads = {line["read"]: line for line in log.of("read", request)}
    for line, write in zip(events, of_event, strict=True):
        assert write.taken_ns is not None
        assert write.before_ns <= line["receipt_ns"] <= write.taken_ns
        read = reads[line["read"]]
        assert (read["receipt_ns"], read["receipt_monotonic_ns"]) == (
            line["receipt_ns"], line["receipt_monotonic_ns"],
        )  # fmt: skip
        if read["kernel_ns"] is not None:
            assert write.before_ns <= read["kernel_ns"] <= read["receipt_ns"]


def bursts(log: Log, request: int = 0) -> list[int]:
    """How many events came in each read that brought any."""
    return [len(list(group)) for _, group in groupby(timed(log, request), key=lambda line: line["read"])]


def everything(folder: Path) -> str:
    return "\n".join(
        f"{path.name}\n{path.read_text(encoding='utf-8')}" for path in folder.rglob("*") if path.is_file()
    )
