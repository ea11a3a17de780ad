"""The tests' own server: a client that goes away at any byte leaves it neither busy nor failed."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.collectors.streaming_server import WAIT_S, requests

REQUEST = b"POST /v1/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize("cut", range(len(REQUEST)))
def test_a_request_cut_at_any_byte_is_none(cut: int) -> None:
    client, server = socket.socketpair()
    with client:
        client.sendall(REQUEST + REQUEST[:cut])
    with ThreadPoolExecutor(1) as pool, server:
        came = pool.submit(lambda: list(requests(server))).result(WAIT_S)
    assert [body for _, body in came] == [{}]
