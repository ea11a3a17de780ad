"""httpx over sockets that write down when each read returned. One ``Exchange`` per request and thread.

httpx hands on pieces of the decoded body: several may come out of one read, and none says when. So the stream below
httpcore takes the times, just behind the system call; what httpx then yields belongs to the last read.

Where Linux tells it (``SO_TIMESTAMPNS``, socket(7)), a read also has the time at which the kernel got its last packet:
what lies between is the client's own lateness. Not with TLS, where a read is one decrypted record.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

CONNECT_LIMIT_S = 30.0
_SO_TIMESTAMPNS = 35 if sys.platform == "linux" else None
_TIMESPEC = struct.Struct("@qq")


class Read(NamedTuple):
    """One read of the socket: both clocks just after it returned, bytes with HTTP's framing, the kernel's time."""

    wall_ns: int
    monotonic_ns: int
    bytes: int
    kernel_ns: int | None


@dataclass
class Exchange:
    """What one request did on its connection. ``deadline_ns``: monotonic; past it reads and writes give up.

    ``sent_*``: just before the call that handed the last bytes of the request over; no answer can be older.
    ``written_ns``: wall clock when that call returned. ``connect_ns``: how long a new connection took, None for one
    that was kept from before.
    """

    deadline_ns: int
    reads: list[Read] = field(default_factory=list)
    connection: int | None = None
    connect_ns: int | None = None
    sent_ns: int | None = None
    sent_monotonic_ns: int | None = None
    written_ns: int | None = None

    def remaining_s(self) -> float:
        """Seconds until the deadline; not above zero past it."""
        return (self.deadline_ns - time.monotonic_ns()) / 1e9


class Wire:
    """All connections of a run. ``stop()`` ends what is open; each thread has its own exchange.

    ``with Wire() as wire``: meanwhile the kernel takes times of what arrives.
    """

    def __init__(self) -> None:
        self.stopped = False
        self._local = threading.local()
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()

    def __enter__(self) -> Self:
        """Hold a socket with the option: the kernel starts taking times a little after the first one asks."""
        self._first = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        _ask_for_times(self._first)
        return self

    def __exit__(self, *_: object) -> None:
        self._first.close()

    def begin(self, deadline_ns: int) -> Exchange:
        """The exchange of the request that this thread sends next."""
        self._local.exchange = Exchange(deadline_ns)
        return self.exchange

    @property
    def exchange(self) -> Exchange:
        """The exchange of this thread's request."""
        found: Exchange = self._local.exchange
        return found

    def stop(self) -> None:
        """Wake every thread that waits for its server; nothing is read any more."""
        self.stopped = True
        with self._lock:
            for one in self._open:
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(one, socket.SHUT_RDWR)

    def number(self) -> int:
        """The number of a new connection."""
        return next(self._numbers)

    def take_in(self, one: socket.socket) -> None:
        """A connection that ``stop()`` is to end."""
        with self._lock:
            self._open.add(one)

    def let_go(self, one: socket.socket) -> None:
        """A connection that is closed."""
        with self._lock:
            self._open.discard(one)


def _ask_for_times(one: socket.socket) -> None:
    if _SO_TIMESTAMPNS is not None:
        with contextlib.suppress(OSError):
            one.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)


class TimedStream:
    """A connection as httpcore wants it, with times taken. Stands in for ``httpcore.NetworkStream``."""

    def __init__(self, wire: Wire, inner: Any, number: int, *, tls: bool) -> None:
        self._wire, self._inner, self._number, self._tls = wire, inner, number, tls
        self._socket: socket.socket = inner.get_extra_info("socket")

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read once and write down when. Raises httpcore's errors, ReadTimeout past the deadline."""
        exchange = self._wire.exchange
        exchange.connection = self._number
        left = self._left(exchange, timeout)
        kernel = None
        if self._tls:
            data: bytes = self._inner.read(max_bytes, left)
        else:
            data, kernel = self._receive(max_bytes, left)
        wall, monotonic = time.time_ns(), time.monotonic_ns()
        exchange.reads.append(Read(wall, monotonic, len(data), kernel))
        return data

    def _left(self, exchange: Exchange, timeout: float | None) -> float:
        import httpcore

        left = exchange.remaining_s() if timeout is None else min(timeout, exchange.remaining_s())
        if left <= 0 or self._wire.stopped:
            raise httpcore.ReadTimeout("the limit has passed")
        return left

    def _receive(self, max_bytes: int, timeout_s: float) -> tuple[bytes, int | None]:
        import httpcore

        try:
            self._socket.settimeout(timeout_s)
            data, extra, _, _ = self._socket.recvmsg(max_bytes, socket.CMSG_SPACE(_TIMESPEC.size))
        except TimeoutError as error:
            raise httpcore.ReadTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.ReadError(str(error)) from error
        for level, kind, value in extra:
            if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS) and len(value) == _TIMESPEC.size:
                seconds, rest = _TIMESPEC.unpack(value)
                return data, seconds * 1_000_000_000 + rest
        return data, None

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Hand bytes to the kernel; the last ones of a request set when it was sent."""
        if not buffer:
            return
        exchange = self._wire.exchange
        exchange.connection = self._number
        left = self._left(exchange, timeout)
        exchange.sent_ns, exchange.sent_monotonic_ns = time.time_ns(), time.monotonic_ns()
        self._inner.write(buffer, left)
        exchange.written_ns = time.time_ns()

    def close(self) -> None:
        """Close the connection."""
        self._wire.let_go(self._socket)
        self._inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> TimedStream:
        """The same connection, encrypted; counts into the time that connecting took."""
        exchange = self._wire.exchange
        before = time.monotonic_ns()
        self._wire.let_go(self._socket)
        inner = self._inner.start_tls(ssl_context, server_hostname, self._left(exchange, timeout))
        exchange.connect_ns = (exchange.connect_ns or 0) + time.monotonic_ns() - before
        self._wire.take_in(inner.get_extra_info("socket"))
        return TimedStream(self._wire, inner, self._number, tls=True)

    def get_extra_info(self, info: str) -> Any:
        """What httpcore asks for."""
        return self._inner.get_extra_info(info)


class TimedBackend:
    """Opens connections whose reads are timed. Stands in for ``httpcore.NetworkBackend``."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> TimedStream:
        """A new connection. Raises httpcore's errors, ConnectTimeout past the deadline."""
        import httpcore

        exchange = self._wire.exchange
        left = min(exchange.remaining_s(), CONNECT_LIMIT_S if timeout is None else timeout)
        if left <= 0 or self._wire.stopped:
            raise httpcore.ConnectTimeout("the limit has passed")
        before = time.monotonic_ns()
        inner = httpcore.SyncBackend().connect_tcp(host, port, left, local_address, socket_options)
        exchange.connect_ns = time.monotonic_ns() - before
        found: socket.socket = inner.get_extra_info("socket")
        _ask_for_times(found)
        self._wire.take_in(found)
        return TimedStream(self._wire, inner, self._wire.number(), tls=False)

    def sleep(self, seconds: float) -> None:
        """Between tries of a connection; httpcore asks for it, no tries are made."""
        time.sleep(seconds)
