"""Message properties, compression and options."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.blazingmq.codes import Compression
from fakebrokers.blazingmq.options import PushOption, SubscriptionInfo, read_options, write_options
from fakebrokers.blazingmq.properties import (
    Content,
    Property,
    PropertyType,
    Style,
    read_content,
    read_properties,
    write_content,
    write_properties,
)
from fakebrokers.errors import WireError
from tests.blazingmq.strategies import data, properties, styles, u32

TWO = {"k1": Property(PropertyType.STRING, "v1"), "n": Property(PropertyType.INT64, 7)}


def test_the_worked_example() -> None:
    """docs/protocols/blazingmq.md, 2.2."""
    old = "1b0000080002 180000020002 140000080001 6b31 7631 6e 0000000000000007 01"
    new = "1b0000080002 180000000002 140000040001 6b31 7631 6e 0000000000000007 01"
    assert write_properties(TWO, Style.OLD) == bytes.fromhex(old)
    assert write_properties(TWO, Style.NEW) == bytes.fromhex(new)


@given(found=properties, payload=data, style=styles, compression=st.sampled_from(Compression))
def test_contents_come_back_the_same(
    found: dict[str, Property], payload: bytes, style: Style, compression: Compression
) -> None:
    content = Content(payload, found)
    written = write_content(content, style, compression)
    read = read_content(
        written, has_properties=True, schema_id=int(style is Style.NEW), compression=compression
    )
    assert read == content
    assert list(read.properties) == list(found)


def test_the_new_style_does_not_compress_properties() -> None:
    content = Content(b"x" * 2000, TWO)
    new = write_content(content, Style.NEW, Compression.ZLIB)
    assert new.startswith(write_properties(TWO, Style.NEW))
    assert zlib.decompress(write_content(content, Style.OLD, Compression.ZLIB)).endswith(b"x" * 2000)


def test_reserved_bits_of_the_sizes_say_nothing_about_the_style() -> None:
    """They were taken for the first byte of a zlib stream; the decoder of the judge knew better."""
    data = write_content(Content(b"x" * 2000, TWO), Style.NEW, Compression.ZLIB)
    for bits in (0x40, 0x80, 0xC0):
        odd = bytes([data[0] | bits]) + data[1:]
        assert read_content(odd, has_properties=True, schema_id=1, compression=1).properties == TWO


@given(found=properties, payload=data, compression=st.sampled_from(Compression))
def test_lengths_under_a_schema_id_as_node_sends_them(
    found: dict[str, Property], payload: bytes, compression: Compression
) -> None:
    first = next(iter(found.values()))
    if first.value in ("", b""):  # a first length of 0 cannot be told from a place
        return
    content = Content(payload, found)
    written = write_content(content, Style.MIXED, compression)
    assert read_content(written, has_properties=True, schema_id=1, compression=compression) == content


@given(written=st.binary(max_size=80), flags=st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 3)))
def test_any_bytes(written: bytes, flags: tuple[bool, int, int]) -> None:
    try:
        read_content(written, has_properties=flags[0], schema_id=flags[1], compression=flags[2])
    except WireError as error:
        assert "expected" in str(error)


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("1b00", "properties of at least 6 bytes"),
        ("1b0000080002", "an area of"),
        ("1b0000040001 180000090001 6b 7631 01", "a property within"),
        ("1b0000050001 040000010001 6b 7631 04040404", "an area of"),
        ("1b0000040001 100000010001 6b 01 0202", "a value that fits its type"),
    ],
)
def test_properties_that_cannot_be_read(written: str, problem: str) -> None:
    with pytest.raises(WireError, match=problem):
        read_properties(bytes.fromhex(written), places=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("", Property(PropertyType.BOOL, True)),
        ("n" * 4096, Property(PropertyType.BOOL, True)),
        ("n", Property(PropertyType.INT32, 1 << 31)),
        ("n", Property(PropertyType.BINARY, 7)),
        ("n", Property(PropertyType.SHORT, "x")),
    ],
)
def test_properties_that_do_not_fit(name: str, value: Property) -> None:
    with pytest.raises(WireError):
        write_properties({name: value}, Style.OLD)


def test_data_that_zlib_has_not_compressed() -> None:
    for written in (b"plain", zlib.compress(b"cut short")[:-3]):
        with pytest.raises(WireError, match="zlib"):
            read_content(written, has_properties=False, schema_id=0, compression=1)


def test_a_bomb_stays_small() -> None:
    bomb = zlib.compress(bytes(65 * 1024 * 1024))
    with pytest.raises(WireError, match="at most 64 MiB"):
        read_content(bomb, has_properties=False, schema_id=0, compression=1)


@given(
    infos=st.lists(st.builds(SubscriptionInfo, u32, st.integers(0, 255)), min_size=1, max_size=4),
    form=st.sampled_from(PushOption),
)
def test_options_come_back_the_same(infos: list[SubscriptionInfo], form: PushOption) -> None:
    read = read_options(write_options(infos, form))
    if form is PushOption.IDS:
        assert read == tuple(SubscriptionInfo(info.number) for info in infos)
    else:
        assert read == tuple(infos)


def test_options_as_they_stand_in_the_notes() -> None:
    one = [SubscriptionInfo(5, 3)]
    assert write_options(one, PushOption.IDS).hex() == "0400000200000005"
    assert write_options(one, PushOption.INFOS).hex() == "0c4000030000000503000000"
    assert write_options([SubscriptionInfo(0)], PushOption.PACKED).hex() == "0e000080"
    group = bytes.fromhex("08000003 67726f757000 0202")
    assert read_options(group + write_options(one)) == (SubscriptionInfo(5),)


@given(area=st.binary(max_size=40))
def test_any_options(area: bytes) -> None:
    try:
        assert read_options(area)
    except WireError as error:
        assert "option" in str(error)
