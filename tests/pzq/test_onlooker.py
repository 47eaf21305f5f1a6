"""What an onlooker is told of the real sockets, as of those in memory."""

from __future__ import annotations

import time
from typing import Any

import zmq

from fakebrokers.core.watch import End
from fakebrokers.pzq.server import PZQ


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
    broker.watcher = onlooker
    with broker:
        producer, consumer = context.socket(zmq.DEALER), context.socket(zmq.ROUTER)
        for socket, role in ((producer, "receive"), (consumer, "send")):
            socket.linger, socket.rcvtimeo = 0, 5000
            socket.connect(broker.where[role])
        producer.send_multipart([b"id", b"", b"body"])
        answer = producer.recv_multipart()
        peer, key, *delivered = consumer.recv_multipart()
        consumer.send_multipart([peer, key, b"1"])
        end = time.monotonic() + 5.0
        while not any(row[:2] == ("written", "send") for row in onlooker.told):
            assert time.monotonic() < end, "the acknowledgement was not told"
            time.sleep(0.002)
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
