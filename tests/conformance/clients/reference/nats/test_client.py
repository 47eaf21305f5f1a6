"""The reference client for NATS, on virtual time; what it survives is in the scenarios."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.nats import wire
from conformance.clients.reference.registry import reference, without_sockets
from fakebrokers import NATS
from fakebrokers.core import virtual
from tests.conformance.clients.reference.nats.happy_path import walk


def run(script: Callable[[InProcessAdapter, NATS], Awaitable[None]], **settings: Any) -> None:
    async def work() -> None:
        adapter = InProcessAdapter(without_sockets(reference("nats")), "nats")
        await adapter.start()
        async with NATS(memory=True, **settings) as broker:
            await script(adapter, broker)
        await adapter.kill()

    virtual.run(work())


def test_the_happy_path() -> None:
    run(walk)


@pytest.mark.parametrize(
    ("login", "works"),
    [
        ({"user": "ann", "password": "x"}, True),
        ({"user": "ann", "password": "y"}, False),
        ({"token": "x"}, False),
    ],
)
def test_a_login(login: dict[str, str], works: bool) -> None:
    async def script(adapter: InProcessAdapter, broker: NATS) -> None:
        args = {"session": "s", "endpoints": [broker.where], "options": login}
        result = await adapter.call("connect", args, 5000)
        assert result.word == ("ok" if works else "auth")

    run(script, user="ann", password="x")


@pytest.mark.parametrize(
    "line",
    [b"FOO\r\n", b"MSG a 1 x\r\n", b"MSG a 1\r\n", b"MSG a 1 1\r\nabc\r\n", b"HMSG a 1 9 3\r\nabc\r\n"],
)
def test_what_cannot_be_read(line: bytes) -> None:
    with pytest.raises(ClientError):
        for came in wire.Parser().feed(line):
            assert isinstance(came, wire.Line)
            if came.verb == b"FOO":
                raise ClientError("protocol", "the connection does not know it")


def test_messages_in_pieces() -> None:
    parser = wire.Parser()
    data = b"msg a.b 7 answers 2\r\n\r\n\r\nHMSG c 8 16 17\r\nNATS/1.0 503\r\n\r\nx\r\nPING\r\n"
    found = [came for byte in data for came in parser.feed(bytes([byte]))]
    assert found == [
        wire.Message("a.b", "7", b"\r\n", "answers"),
        wire.Message("c", "8", b"x", status=503),
        wire.Line(b"PING"),
    ]
