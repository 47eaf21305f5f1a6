"""Chunk headers, against the layout in docs/protocols/rabbitmq-stream.md, 7, and a recorded chunk."""

from __future__ import annotations

from zlib import crc32

import pytest
from hypothesis import given
from msgspec.structs import replace

from fakebrokers.errors import WireError
from fakebrokers.rabbitmq_stream.chunk import HEADER_SIZE, Chunk, ChunkType
from tests.rabbitmq_stream.strategies import chunks

RECORDED = bytes.fromhex(  # 4.3.6, two messages at offset 0
    "5000" "0002" "00000002" "000001a1f9a57c90" "0000000000000001" "0000000000000000"
    "c9d9d783" "0000001c" "00000000" "00" "000000"
    "0000000a005375a00568656c6c6f" "0000000a005375a005776f726c64"
)  # fmt: skip


def test_recorded_chunk_is_built_from_its_parts() -> None:
    chunk = Chunk.build(
        RECORDED[HEADER_SIZE:], entries=2, records=2, first_offset=0, timestamp_ms=0x1A1F9A57C90
    )
    assert chunk.header() + chunk.data == RECORDED
    assert Chunk.parse(RECORDED) == chunk
    assert chunk.next_offset == 2


def test_every_field_has_its_place() -> None:
    chunk = Chunk(ChunkType.TRACKING_DELTA, 2, 3, -4, 5, 6, 7, b"data", 8, 9, 0x60, 10)
    assert chunk.header().hex(" ", 4) == (
        "60010002 00000003 ffffffff fffffffc 00000000 00000005 00000000 00000006 "
        "00000007 0000000a 00000008 09000000"
    )


@given(chunks)
def test_parse_is_the_inverse_of_header_and_data(chunk: Chunk) -> None:
    raw = chunk.header() + chunk.data
    assert len(chunk.header()) == HEADER_SIZE
    assert Chunk.parse(raw) == chunk
    assert Chunk.parse(b"before" + raw + b"behind", 6, 6 + len(raw)) == chunk


def test_build_computes_what_the_checks_compare() -> None:
    chunk = Chunk.build(b"abc", entries=1, records=1, first_offset=0, timestamp_ms=0)
    assert chunk.crc == crc32(b"abc")
    assert chunk.crc_ok
    assert chunk.length_ok
    assert not replace(chunk, crc=chunk.crc ^ 1).crc_ok
    assert not replace(chunk, data_length=10).length_ok


def test_less_than_a_header_is_an_error() -> None:
    with pytest.raises(WireError, match="a chunk header of 48 bytes at byte 0, got 47 bytes"):
        Chunk.parse(RECORDED[:47])
