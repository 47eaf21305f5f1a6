"""Answers to requests, where a test gives them."""

from __future__ import annotations

import socket

from fakebrokers import NATS
from tests.eventually import PATIENCE_S


def exchange(nats: NATS, data: bytes, end: bytes = b"PONG\r\n") -> bytes:
    """Say it to a fake; what comes, up to an answer to PING."""
    heard = b""
    with socket.create_connection((nats.host, nats.port), timeout=PATIENCE_S) as client:
        client.sendall(
            b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\n' + data + b"PING\r\n"
        )
        while not heard.endswith(end):
            heard += client.recv(4096)
    return heard.partition(b"\r\n")[2]


def test_a_request_is_answered_and_one_that_gets_none_is_not() -> None:
    with NATS() as nats:
        nats.respond("echo.*", lambda subject, payload: subject.encode() + payload.upper())
        nats.respond("mute", lambda subject, payload: None)
        heard = exchange(
            nats, b"SUB in 1\r\nPUB echo.a in 3\r\ntea\r\nPUB mute in 1\r\nx\r\nPUB echo.b 1\r\ny\r\n"
        )
        assert heard == b"MSG in 1 9\r\necho.aTEA\r\nPONG\r\n"


def test_answers_with_headers_by_one_of_a_group() -> None:
    with NATS() as nats:
        for _ in range(2):
            nats.respond("echo", lambda _, payload: payload, queue="q", headers={"a": "b"})
        heard = exchange(nats, b"SUB in 1\r\nPUB echo in 3\r\ntea\r\n")
        assert heard == b"HMSG in 1 18 21\r\nNATS/1.0\r\na: b\r\n\r\ntea\r\nPONG\r\n"
        assert nats.subscriptions.count(("echo", "q")) == 2
