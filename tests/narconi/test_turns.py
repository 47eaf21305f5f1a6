"""What a step does is bounded, whatever one client sends or one queue holds: others are served in between."""

from __future__ import annotations

from typing import Any

import pytest

from fakebrokers.core.driver import READ_SIZE
from fakebrokers.core.receive_path import FRAMES_PER_TURN
from fakebrokers.narconi import http1, websocket
from fakebrokers.narconi.broker import DELIVERIES_PER_TURN, Message, NarconiBroker, Queue
from fakebrokers.narconi.codec import NarconiCodec
from fakebrokers.narconi.websocket import BINARY, encode_frame

UPGRADE = (
    b"GET /v2/p/queues/q/messages HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Protocol: publish\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
GET = b"GET / HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize(
    ("begin", "piece", "reader", "method"),
    [
        (b"", GET, http1.RequestReader, "_read_head"),
        (UPGRADE, encode_frame(BINARY, b"x", masked=True), websocket.MessageReader, "_read_frame"),
    ],
    ids=["requests", "messages"],
)
def test_no_more_is_read_than_is_handled(
    monkeypatch: pytest.MonkeyPatch, begin: bytes, piece: bytes, reader: type, method: str
) -> None:
    looked: list[int] = []
    read = getattr(reader, method)

    def counted(self: Any, *arguments: Any) -> Any:
        looked.append(1)
        return read(self, *arguments)

    codec = NarconiCodec()
    list(codec.feed(begin))
    monkeypatch.setattr(reader, method, counted)
    if method == "_read_head":
        codec._http._step = codec._http._read_head  # type: ignore[attr-defined]
    frames = iter(codec.feed(piece * (READ_SIZE // len(piece))))
    for _ in range(FRAMES_PER_TURN):
        next(frames)
    assert len(looked) <= FRAMES_PER_TURN + 1
    assert sum(1 for _ in frames) == READ_SIZE // len(piece) - FRAMES_PER_TURN


class Greedy:
    """A consumer that takes whatever it gets."""

    has_capacity = True

    def __init__(self) -> None:
        self.got: list[bytes] = []

    def deliver(self, message: Message, now: float) -> None:
        self.got.append(message.payload)

    def cancel(self, now: float) -> None:
        pass


def test_a_long_queue_is_handed_out_in_turns() -> None:
    broker = NarconiBroker()
    broker.ensure("q")
    queue: Queue = broker.queues["q"]
    for number in range(3 * DELIVERIES_PER_TURN + 1):
        broker.publish("q", Message(b"%d" % number, "", {}, 0), 0.0)
    consumers = [Greedy(), Greedy()]
    queue.consumers.extend(consumers)
    broker.dispatch(queue, 0.0)
    for turn in range(1, 4):
        assert sum(len(each.got) for each in consumers) == turn * DELIVERIES_PER_TURN
        timer = broker.timers.pop(0.0, broker.timers.mark)
        assert timer is not None and timer.act is not None
        timer.act(0.0)
    assert sum(len(each.got) for each in consumers) == 3 * DELIVERIES_PER_TURN + 1
    assert consumers[0].got[:2] == [b"0", b"2"] and not queue.ready
    assert broker.timers.pop(0.0, broker.timers.mark) is None
