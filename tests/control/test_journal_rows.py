"""The rows of a journal over HTTP can be read: numbers and hex for keys, however the wire packs them."""

from __future__ import annotations

import pytest

from fakebrokers.blazingmq.frames_events import Confirm, ConfirmMessage
from fakebrokers.control.rows import JournalRow, journal_row
from fakebrokers.core.frames import Frame
from fakebrokers.journal import Record, Tap
from fakebrokers.pzq.frames import Produce
from fakebrokers.rabbitmq_stream.frames import PublishConfirm

GUID = bytes(15) + b"\7"


def row(frame: Frame | None, *keys: object) -> JournalRow:
    return journal_row(Record(1, 0.0, "c1", Tap.OUT, "X", "confirm", keys, frame=frame))


def test_packed_numbers() -> None:
    found = row(PublishConfirm(0, b"\0\0\0\0\0\0\0\1\0\0\0\0\0\0\1\0"), 1, 256)
    assert found.keys == [1, 256]
    assert found.frame["publishing_ids"] == [1, 256]


def test_guids() -> None:
    found = row(Confirm((ConfirmMessage(3, GUID),)), GUID)
    assert found.keys == [f"0x{GUID.hex()}"]
    assert found.frame["messages"][0] == {"queue_id": 3, "guid": f"0x{GUID.hex()}", "sub_id": 0}
    assert f"key 0x{GUID.hex()}" in found.text


def test_without_the_frame() -> None:
    assert row(None, GUID, 5, "tea", ("a", 1)).keys == [f"0x{GUID.hex()}", 5, "tea", ["a", 1]]


@pytest.mark.parametrize(("key", "shown"), [(b"order-7", "order-7"), (b"\0\1", "0x0001"), (b"", "")])
def test_bytes(key: bytes, shown: str) -> None:
    found = row(Produce(key, (), (b"\0\1",)), key)
    assert found.keys == [shown]
    assert found.frame["id"] == shown
    assert found.frame["body"] == ["\0\1"]  # a body is a body: text where it is UTF-8
    assert f" key {shown}" in found.text
