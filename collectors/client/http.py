"""An httpx client on timed connections, each of which belongs to one open request at a time.

The connections are kept here rather than in httpcore's pool: under load that pool may close a connection as expired
that it has just given to another thread, and it looks through all of them for every request.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from collectors.client.wire import TimedBackend, Wire
from collectors.errors import CollectError

if TYPE_CHECKING:
    import httpcore
    import httpx

KEPT_S = 5.0
"""How long an idle connection is used again; servers close theirs after a while, many after 5 s."""


def require_httpx(url: str) -> str:
    """The version of httpx. Raises CollectError where it is not installed, and for a URL that it does not take."""
    try:
        import httpcore  # noqa: F401
        import httpx
    except ImportError as error:
        raise CollectError(
            "httpx", "is not installed here", "in tracebound's folder: pip install '.[client]'"
        ) from error
    try:
        httpx.URL(url)
    except httpx.InvalidURL as error:
        raise CollectError(f"--url {url!r}", f"cannot be used ({error})", "check the URL") from error
    return str(httpx.__version__)


class Connections:
    """Idle connections of a run, the one used last on top."""

    def __init__(self, wire: Wire, ssl_context: Any) -> None:
        self._backend: Any = TimedBackend(wire)
        self._ssl_context = ssl_context
        self._lock = threading.Lock()
        self._idle: list[httpcore.HTTPConnection] = []

    def take(self, origin: httpcore.Origin) -> httpcore.HTTPConnection:
        """An idle connection that the server still holds open, or a new one, not yet connected."""
        import httpcore

        while True:
            with self._lock:
                kept = self._idle.pop() if self._idle else None
            if kept is None:
                return httpcore.HTTPConnection(
                    origin, self._ssl_context, KEPT_S, network_backend=self._backend
                )
            if kept.is_available() and not kept.has_expired():
                return kept
            kept.close()

    def give_back(self, connection: httpcore.HTTPConnection) -> None:
        """Keep a connection whose answer was read to its end; close any other."""
        if not connection.is_available():
            connection.close()
            return
        with self._lock:
            self._idle.append(connection)

    def close(self) -> None:
        """Close what is idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


def open_client(wire: Wire) -> httpx.Client:
    """An HTTP/1.1 client on timed connections: no proxy, no redirects, a connection per open request."""
    import httpcore
    import httpx

    class Body(httpx.SyncByteStream):
        def __init__(self, stream: Any, connection: httpcore.HTTPConnection) -> None:
            self._stream, self._connection = stream, connection

        def __iter__(self) -> Iterator[bytes]:
            yield from self._stream

        def close(self) -> None:
            self._stream.close()
            connections.give_back(self._connection)

    class Transport(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            raw = request.url
            url = httpcore.URL(scheme=raw.raw_scheme, host=raw.raw_host, port=raw.port, target=raw.raw_path)
            connection = connections.take(url.origin)
            with contextlib.ExitStack() as undo:
                undo.callback(connection.close)
                answer = connection.handle_request(
                    httpcore.Request(request.method, url, headers=request.headers.raw, content=request.read())
                )
                undo.pop_all()
            body = Body(answer.stream, connection)
            return httpx.Response(
                answer.status, headers=answer.headers, stream=body, extensions=answer.extensions
            )

        def close(self) -> None:
            connections.close()

    connections = Connections(wire, httpx.create_ssl_context())
    return httpx.Client(transport=Transport(), timeout=None, trust_env=False, follow_redirects=False)
