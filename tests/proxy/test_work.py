"""Bytes that nobody looks into are copied once."""

from __future__ import annotations

from fakebrokers.proxy.frames import ClientBytes
from fakebrokers.proxy.session import ProxyCodec
from tests.work import CountedBytes


def test_a_byte_is_copied_once_however_many_came_before() -> None:
    codec = ProxyCodec()
    for size in (1, 8, 100_000, 1):
        for _ in range(1000 if size < 10 else 1):
            unit = CountedBytes(bytes(size))
            ((frame, length),) = codec.feed(unit)
            assert isinstance(frame, ClientBytes)
            assert (length, unit.work) == (size, size)
            assert codec.encode(frame) == bytes(size)
    assert frame.start == 1000 + 8000 + 100_000 + 999


def test_units_may_be_fed_before_the_frames_in_front_are_fetched() -> None:
    codec = ProxyCodec()
    fed = [codec.feed(unit) for unit in (b"ab", b"c", b"def")]
    frames = [frame for found in fed for frame, _ in found]
    assert frames == [ClientBytes(0, b"ab"), ClientBytes(2, b"c"), ClientBytes(3, b"def")]
