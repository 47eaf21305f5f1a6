"""What the reference client reads that the fake's codec does not."""

from __future__ import annotations

import pytest

from conformance.clients.reference.blazingmq.frames import Frames
from fakebrokers.blazingmq.codes import Category, Encoding
from fakebrokers.blazingmq.frames import CloseQueue, DisconnectResponse, StatusResponse
from fakebrokers.blazingmq.schema import HandleParameters
from fakebrokers.core.frames import Malformed
from scenarios.blazingmq.queue_answers import future_status

REQUEST = CloseQueue(5, HandleParameters("bmq://bmq.test.mem.priority/q", 1), is_final=True)


def test_a_category_of_the_future_keeps_its_number_in_ber() -> None:
    (frame,) = Frames().feed(future_status(REQUEST, Encoding.BER, -99))
    assert frame == StatusResponse(5, -99, -99, "from the future")


def test_a_category_of_the_future_is_in_the_text_in_json() -> None:
    (frame,) = Frames().feed(future_status(REQUEST, Encoding.JSON, -99))
    assert frame == StatusResponse(5, Category.E_UNKNOWN, -99, "E_FUTURE: from the future")


@pytest.mark.parametrize("encoding", [Encoding.BER, Encoding.JSON])
def test_what_else_is_wrong_stays_malformed(encoding: Encoding) -> None:
    data = bytearray(future_status(REQUEST, encoding, -99))
    data[8] ^= 0x20
    (frame,) = Frames().feed(bytes(data))
    assert isinstance(frame, Malformed)


def test_frames_behind_it_are_read() -> None:
    good = Frames().encode(DisconnectResponse(6))
    found = list(Frames().feed(future_status(REQUEST, Encoding.BER, -99) + good))
    assert [frame.kind for frame in found] == ["status", "disconnectResponse"]
