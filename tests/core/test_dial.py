"""Connections that the fake opens itself."""

from __future__ import annotations

import asyncio
import socket

import pytest

from fakebrokers.core.listeners import Endpoint
from fakebrokers.core.tcp import TcpDialler
from tests.eventually import PATIENCE_S
from tests.toy import WIRE, Toy


def dialler(toy: Toy) -> TcpDialler:
    assert toy._driver is not None
    return TcpDialler(toy._driver, Endpoint(WIRE, toy.new_session))


def dial(toy: Toy, port: int, timeout: float = PATIENCE_S) -> None:
    asyncio.run_coroutine_threadsafe(
        dialler(toy).dial("127.0.0.1", port, timeout),
        toy._driver.loop,  # type: ignore[union-attr]
    ).result(PATIENCE_S)


def test_the_fake_dials_out_and_speaks() -> None:
    with Toy() as toy, socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE_S)
        dial(toy, server.getsockname()[1])
        node, _ = server.accept()
        with node:
            node.settimeout(PATIENCE_S)
            node.sendall(b"hello me\n")
            assert node.recv(100) == b"welcome\n"
            assert [c["name"] for c in toy.connections] == ["d1"]
            toy.kill("d1")
            assert node.recv(100) == b""
        toy.wait_for(kind="closed", connection="d1")
        toy.kill("d1")  # it has ended by itself


def test_nobody_listens_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with Toy() as toy, pytest.raises(ConnectionRefusedError):
        dial(toy, port)


def test_incoming_and_dialled_connections_count_for_themselves() -> None:
    with (
        Toy() as toy,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(("127.0.0.1", toy.port), timeout=PATIENCE_S) as client,
    ):
        client.sendall(b"hello me\n")
        assert client.recv(100) == b"welcome\n"
        dial(toy, server.getsockname()[1])
        assert [c["name"] for c in toy.connections] == ["c1", "d1"]
