"""A real local streaming server whose answers are scripts, and a proxy that delays bytes."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
)
WAIT_S = 60.0
"""Waiting for the other side: longer than this is a failed test, not a slow machine."""


@dataclass
class Write:
    """One write: its events, the wall clock just before and after it, and when the client had read it."""

    events: int
    before_ns: int
    after_ns: int
    taken_ns: int | None = None


@dataclass
class Talk:
    """One request at the server: what came, and the means to answer."""

    number: int
    headers: dict[str, str]
    body: dict[str, Any]
    connection: socket.socket
    arrived_ns: int
    taken: Callable[[int, int], None] | None
    writes: list[Write] = field(default_factory=list)
    sent_bytes: int = 0

    def raw(self, data: bytes, events: int = 0, wait: bool = True) -> None:
        """One write; then, if asked, wait until the client has read all of it."""
        before = time.time_ns()
        self.connection.sendall(data)
        write = Write(events, before, time.time_ns())
        self.sent_bytes += len(data)
        if wait and self.taken is not None:
            self.taken(self.number, self.sent_bytes)
            write.taken_ns = time.time_ns()
        self.writes.append(write)

    def head(self, wait: bool = True) -> None:
        self.raw(STREAM_HEAD, wait=wait)

    def events(self, *payloads: Any, wait: bool = True, end: str = "\n") -> None:
        """Events in one write, each in a chunk of HTTP of its own."""
        blocks = [event(payload, end) for payload in payloads]
        self.raw(b"".join(chunk(block) for block in blocks), len(blocks), wait=wait)

    def finish(self, wait: bool = True) -> None:
        self.raw(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n", 1, wait=wait)

    def whole(self, status: str, content: bytes, kind: str = "application/json", more: str = "") -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n{more}\r\n"
        self.raw(head.encode() + content, wait=False)

    def tokens(self, count: int) -> None:
        """A plain answer of so many events."""
        self.head(wait=False)
        for number in range(count):
            self.events(token(f"t{number}"), wait=False)
        self.events(token("", finish_reason="length"), wait=False)
        self.finish(wait=False)


def chunk(block: bytes) -> bytes:
    """A chunk of HTTP's chunked transfer coding."""
    return f"{len(block):x}\r\n".encode() + block + b"\r\n"


def event(payload: Any, end: str = "\n") -> bytes:
    text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
    return f"data: {text}{end}{end}".encode()


def token(text: str, *, finish_reason: str | None = None, **more: Any) -> dict[str, Any]:
    """A chunk of /v1/completions."""
    return {
        "id": "c", "object": "text_completion", "created": 1_700_000_000, "model": "m",
        "choices": [{"index": 0, "text": text, "finish_reason": finish_reason, "logprobs": None}], **more,
    }  # fmt: skip


class Server:
    """Answers every request by ``script(talk)``; a script that returns leaves the connection open for the next one."""

    def __init__(self, script: Callable[[Talk], None], *, tls: Any = None) -> None:
        self.talks: list[Talk] = []
        self.failures: list[BaseException] = []
        self.taken: Callable[[int, int], None] | None = None
        self.closing = threading.Event()
        self._script, self._tls = script, tls
        self._lock = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0.1)
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> Server:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(WAIT_S)
        for one in [self._socket, *self._open]:
            one.close()
        if self.failures:
            raise self.failures[0]

    def _start(self, target: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self.closing.is_set():
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(WAIT_S)
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
            self._open.append(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            with contextlib.suppress(ConnectionError):
                for headers, body in requests(connection):
                    with self._lock:
                        talk = Talk(len(self.talks), headers, body, connection, time.time_ns(), self.taken)
                        self.talks.append(talk)
                    self._script(talk)
        except (AssertionError, KeyError, ValueError, OSError, threading.BrokenBarrierError) as error:
            self.failures.append(error)


def requests(connection: socket.socket) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """Requests of one connection until it is closed; one that was cut inside its head or its body is none."""
    held = b""
    while True:
        while b"\r\n\r\n" not in held:
            if not (more := received(connection)):
                return
            held += more
        head, held = held.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        headers[":path"] = lines[0].split()[1]
        length = int(headers["content-length"])
        while len(held) < length:
            if not (more := received(connection)):
                return
            held += more
        body, held = held[:length], held[length:]
        yield headers, json.loads(body)


def received(connection: socket.socket) -> bytes:
    """What came next; nothing once the connection is closed or reset, by either side."""
    try:
        return connection.recv(65536)
    except OSError:
        return b""


class Proxy:
    """Passes bytes on to a server; ``back`` decides in what pieces and how late those to the client go."""

    def __init__(self, port: int, back: Callable[[bytes, Callable[[bytes], None]], None]) -> None:
        self._port, self._back = port, back
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self) -> Proxy:
        thread = threading.Thread(target=self._serve, daemon=True)
        thread.start()
        self._threads.append(thread)
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.join(WAIT_S)
        self._socket.close()

    def _serve(self) -> None:
        """One connection, until either side closes it."""
        client, _ = self._socket.accept()
        with client, socket.create_connection(("127.0.0.1", self._port)) as server:
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            up = threading.Thread(target=self._up, args=(client, server), daemon=True)
            up.start()
            with contextlib.suppress(OSError):
                while data := server.recv(65536):
                    self._back(data, client.sendall)
            up.join(WAIT_S)

    @staticmethod
    def _up(client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                server.sendall(data)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
