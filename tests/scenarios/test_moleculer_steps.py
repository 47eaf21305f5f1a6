"""Steps that prepare scenarios of Moleculer."""

from __future__ import annotations

import socket

import pytest

from fakebrokers import Moleculer
from fakebrokers.journal import Tap
from scenarios.moleculer._steps import introduce
from tests.eventually import PATIENCE_S

SUBSCRIBE = (b"SUBSCRIBE", b"MOL.INFO.client")
DISCOVER = (b"PUBLISH", b"MOL.DISCOVER", b'{"ver":"5","sender":"client"}')


def command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


@pytest.mark.parametrize("listens_first", [True, False])
def test_who_asks_before_it_listens_is_told_again(listens_first: bool) -> None:
    def reported() -> int:
        return sum(1 for record, _ in broker.packets("Info") if record.tap & Tap.SENT)

    with (
        Moleculer(transporter="redis") as broker,
        socket.create_connection((broker.host, broker.port)) as listening,
        socket.create_connection((broker.host, broker.port)) as asking,
    ):
        node = broker.node("peer")
        steps = [(listening, SUBSCRIBE), (asking, DISCOVER)]
        for connection, words in steps if listens_first else reversed(steps):
            connection.sendall(command(*words))
            connection.settimeout(PATIENCE_S)
            assert connection.recv(1000)  # the server has taken it in
        assert reported() == listens_first
        introduce(broker, node)
        assert reported() == 1
