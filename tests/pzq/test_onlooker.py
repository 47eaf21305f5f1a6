"""What an onlooker is told of the real sockets, as of those in memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import zmq

from fakebrokers.core.onlooking import watch_wire
from fakebrokers.core.watch import End
from fakebrokers.pzq.server import PZQ
from fakebrokers.pzq.sockets import POLLOUT, DealerListener
from tests.eventually import PATIENCE_S, eventually


class Onlooker:
    """Keeps what it is told, in order."""

    def __init__(self) -> None:
        self.sockets: dict[str, str] = {}
        self.told: list[tuple[str, str, Any]] = []

    def accepted(self, connection: str, socket: str = "") -> None:
        self.sockets[connection] = socket

    def written(self, connection: str, data: Any) -> None:
        self.told.append(("written", self.sockets[connection], data))

    def handed_over(self, connection: str, data: Any) -> None:
        self.told.append(("handed over", self.sockets[connection], data))

    def ended(self, connection: str, by: End, how: str) -> None:
        self.told.append(("ended", self.sockets[connection], by))


def test_everything_that_passes_is_told_and_who_ends_it() -> None:
    onlooker = Onlooker()
    context = zmq.Context()
    broker = PZQ()
    watch_wire(broker, onlooker)
    with broker:
        producer, consumer = context.socket(zmq.DEALER), context.socket(zmq.ROUTER)
        for socket, role in ((producer, "receive"), (consumer, "send")):
            socket.linger, socket.rcvtimeo = 0, int(PATIENCE_S * 1000)
            socket.connect(broker.where[role])
        producer.send_multipart([b"id", b"", b"body"])
        answer = producer.recv_multipart()
        peer, key, *delivered = consumer.recv_multipart()
        consumer.send_multipart([peer, key, b"1"])
        eventually(lambda: any(row[:2] == ("written", "send") for row in onlooker.told))
        producer.close()
        consumer.close()
    context.term()
    assert onlooker.told[0] == ("written", "receive", (b"id", b"", b"body"))
    assert ("handed over", "receive", tuple(answer)) in onlooker.told
    assert ("handed over", "send", (key, *delivered)) in onlooker.told
    assert ("written", "send", (key, b"1")) in onlooker.told
    assert {row[1:] for row in onlooker.told if row[0] == "ended"} == {
        ("receive", "broker"),
        ("send", "broker"),
    }


class Peerless(DealerListener):
    """A socket without sockets: it takes as many messages as it has room for."""

    def __init__(self, onlooker: Onlooker, room: int) -> None:
        engine = SimpleNamespace(lost=lambda *_: None)
        driver: Any = SimpleNamespace(watcher=onlooker, engine=engine, loop=SimpleNamespace(time=lambda: 0.0))
        wire: Any = None
        make: Any = None
        super().__init__(driver, wire, "tcp://127.0.0.1:1", 1, make)
        self.left = room
        self.replace()

    def replace(self) -> None:
        """The connection that comes next."""
        connection: Any = SimpleNamespace(name="c1")
        self._connection = connection

    def _events(self) -> int:
        return POLLOUT if self.left else 0

    def _send(self, *parts: bytes) -> int:
        self.left -= 1
        return 0


def test_what_waits_for_a_peer_is_not_told_as_handed_over() -> None:
    onlooker = Onlooker()
    onlooker.sockets["c1"] = "send"
    listener = Peerless(onlooker, room=1)
    listener.write([(b"first",), (b"waits",)])
    assert onlooker.told == [("handed over", "send", (b"first",))]
    listener.drop()
    listener.replace()
    listener.left = 2
    listener.write([(b"next",)])
    assert [row for row in onlooker.told if row[0] == "handed over"] == [
        ("handed over", "send", (b"first",)),
        ("handed over", "send", (b"next",)),
    ]
