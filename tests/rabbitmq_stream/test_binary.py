"""Wire primitives: what is packed is read, and what is cut off says where."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.errors import FrameTooLarge, WireError
from fakebrokers.rabbitmq_stream.binary import Reader, pack_bytes, pack_map, pack_string

TEXTS = st.none() | st.text(max_size=50)
NUMBERS = [("B", "u8"), (">H", "u16"), (">I", "u32"), (">Q", "u64"), (">q", "i64")]


@given(TEXTS)
def test_strings(value: str | None) -> None:
    reader = Reader(pack_string(value))
    assert reader.string() == value
    reader.finish()


@given(st.binary(max_size=50))
def test_bytes_that_are_no_utf8_come_back_unchanged(data: bytes) -> None:
    wire = struct.pack(">H", len(data)) + data
    text = Reader(wire).string()
    assert pack_string(text) == wire


@given(st.none() | st.binary(max_size=50))
def test_blobs(value: bytes | None) -> None:
    assert Reader(pack_bytes(value)).blob() == value


@given(st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=9))
def test_maps(value: dict[str, str]) -> None:
    reader = Reader(pack_map(value))
    assert reader.map() == value
    reader.finish()


@pytest.mark.parametrize(("form", "read"), NUMBERS)
def test_numbers_at_their_limits(form: str, read: str) -> None:
    size = struct.calcsize(form)
    for data in (b"\0" * size, b"\xff" * size, b"\x7f" + b"\xff" * (size - 1), b"\x80" + b"\0" * (size - 1)):
        assert getattr(Reader(data), read)() == struct.unpack(form, data)[0]
    with pytest.raises(WireError, match=f"expected {read} of {size} bytes at byte 0, got {size - 1} bytes"):
        getattr(Reader(b"\0" * (size - 1)), read)()


def test_null() -> None:
    assert Reader(b"\xff\xff").string() is None
    assert Reader(b"\xff\xff").text() == ""
    assert Reader(b"\xff" * 4).blob() is None
    assert Reader(b"\xff" * 4).array(lambda: 1) == ()
    assert pack_string(None) == b"\xff\xff"
    assert pack_bytes(None) == b"\xff" * 4


def test_places() -> None:
    reader = Reader(b"\0\1a\0\5bc")
    assert reader.text() == "a"
    with pytest.raises(WireError, match="expected string of 5 bytes at byte 5, got 2 bytes") as caught:
        reader.string()
    assert caught.value.at == 5
    window = Reader(b"xxabcyy", 2, 5)
    assert (window.left, window.take(2), window.rest(), window.left) == (3, b"ab", b"c", 0)
    with pytest.raises(WireError, match="expected the end of the frame at byte 0, got 1 more bytes"):
        Reader(b"x").finish()


def test_a_huge_count_takes_no_memory() -> None:
    with pytest.raises(
        WireError, match="expected 2147483647 items of 4 bytes or more at byte 0, got 3 bytes"
    ):
        Reader(b"\x7f\xff\xff\xff123").array(lambda: 1, smallest=4)


def test_strings_that_are_too_long_for_the_wire() -> None:
    assert len(pack_string("x" * 65534)) == 65536
    with pytest.raises(WireError, match="at most 65534 bytes, got 65535 bytes"):
        pack_string("x" * 65535)


@given(st.binary(max_size=60), st.lists(st.sampled_from(["u8", "u16", "string", "blob", "map", "text"])))
def test_readers_only_ever_raise_wire_errors(data: bytes, steps: list[str]) -> None:
    reader = Reader(data)
    try:
        for step in steps:
            getattr(reader, step)()
    except WireError:
        pass
    assert 0 <= reader.pos <= len(data)


def test_errors_say_both_sizes() -> None:
    error = FrameTooLarge(300, 100)
    assert str(error) == "expected a frame of at most 100 bytes at byte 0, got a size prefix of 300"
    assert (error.size, error.limit) == (300, 100)
