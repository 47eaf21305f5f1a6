"""What the sweep reads in a control message of BlazingMQ."""

from __future__ import annotations

import pytest

from fakebrokers.blazingmq.codec import event_bytes
from fakebrokers.blazingmq.codes import Encoding, EventType
from fakebrokers.blazingmq.frames import CloseQueueResponse
from fakebrokers.core.frames import Malformed
from scenarios.blazingmq.sweep.model import Reader

ANSWER = (
    b'{"rId":1,"closeQueueResponse":{"originalRequest":{"handleParameters":{"uri":"bmq://d/%s","qId":0,'
    b'"flags":4,"readCount":0,"writeCount":1,"adminCount":0},"isFinal":true}}}'
)


@pytest.mark.parametrize(("name", "kind"), [("ü".encode(), CloseQueueResponse), (b"\xff\xfe", Malformed)])
def test_json_that_is_not_utf_8_is_no_answer(name: bytes, kind: type) -> None:
    body = ANSWER % name
    body += bytes([4 - len(body) % 4]) * (4 - len(body) % 4)
    [(frame, _)] = Reader().feed(event_bytes(EventType.CONTROL, [body], Encoding.JSON << 5))
    assert type(frame) is kind, frame
