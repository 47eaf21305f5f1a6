"""The TCP transporter on the wire: the recordings both ways, and bytes that nobody should send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.errors import WireError
from fakebrokers.moleculer.packets import Discover, Ping
from fakebrokers.moleculer.tcp.codec import TcpCodec, framed
from fakebrokers.moleculer.tcp.frames import NUMBERS
from tests.moleculer.golden import Row, rows


@pytest.mark.parametrize("row", rows("frame"), ids=str)
def test_recorded_frames_are_read_and_written_back(row: Row) -> None:
    ((frame, size),) = TcpCodec().feed(row.data)
    assert (NUMBERS[type(frame)], size) == (row.values["type"], row.values["length"])  # type: ignore[index]
    assert TcpCodec().encode(frame) == row.data


def test_recordings_have_all_types_but_pings() -> None:
    assert {row.values["type"] for row in rows("frame")} == set(NUMBERS.values()) - {4, 5}


@given(st.data())
def test_frames_come_back_however_they_are_cut(draw: st.DataObject) -> None:
    whole = b"".join([row.data for row in rows("frame")[:6]])
    cut = draw.draw(st.integers(0, len(whole)))
    codec = TcpCodec()
    found = [*codec.feed(whole[:cut]), *codec.feed(whole[cut:])]
    assert sum(size for _, size in found) == len(whole)
    assert len(found) == 6


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_no_bytes_make_it_fail(segments: list[bytes]) -> None:
    codec = TcpCodec()
    for segment in segments:
        for frame, _ in codec.feed(segment):
            assert isinstance(frame, Frame)


PING = framed(4, b'{"time":1}')


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\x00" + PING[1:], "expected the check byte"),
        (framed(9, b"{}"), "expected a type from 1 to 8, got 9"),
        (b"\x01\x00\x00\x00\x05\x04", "expected a length from 6"),
        (framed(4, b"x" * 2_000_000), "expected a length from 6 to 1048576, got 2000006"),
    ],
)
def test_a_bad_header_is_the_end(data: bytes, problem: str) -> None:
    codec = TcpCodec()
    (found,) = [frame for frame, _ in codec.feed(data[:6])]
    assert isinstance(found, Malformed)
    assert problem in found.problem
    assert list(codec.feed(PING)) == []


def test_a_packet_that_cannot_be_read_is_not_the_end() -> None:
    frames = [frame for frame, _ in TcpCodec().feed(framed(2, b"{") + framed(2, b"[1]") + PING)]
    assert [getattr(frame, "code", "") for frame in frames] == ["packet", "packet", ""]
    assert frames[-1] == Ping(time=1)


def test_size_and_check_byte_are_mended() -> None:
    assert TcpCodec().mend(PING[:6] + b'{"time":12}') == framed(4, b'{"time":12}')


def test_what_is_for_all_nodes_never_goes_over_tcp() -> None:
    with pytest.raises(WireError, match="expected a packet that goes over TCP, got Discover"):
        TcpCodec().encode(Discover())
