"""The codec against every event that was recorded with the real SDKs."""

from __future__ import annotations

import pytest
from crc32c import crc32c

from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.codes import Compression, Encoding
from fakebrokers.blazingmq.events import padded
from fakebrokers.blazingmq.frames import ControlFrame, Push, PushMessage, Put, PutMessage
from fakebrokers.blazingmq.options import PushOption, SubscriptionInfo, read_options, write_options
from fakebrokers.blazingmq.properties import Content, Style, read_content, write_content
from fakebrokers.core.frames import Malformed
from tests.blazingmq.golden import Event, events, lines

ALL = pytest.mark.parametrize("event", events(), ids=str)

#: The experimental broker wrote slashes in JSON without a backslash; SDKs and the fake write one.
WITHOUT_BACKSLASH = "openQueueResponse"


def codec_of(event: Event) -> BlazingCodec:
    return BlazingCodec(Encoding(event.data[6] >> 5))


def messages(event: Event) -> tuple[PutMessage, ...] | tuple[PushMessage, ...]:
    frame = codec_of(event).decode(event.data)
    return frame.messages if isinstance(frame, Put | Push) else ()


def content_of(message: PutMessage | PushMessage) -> Content:
    return read_content(
        message.data,
        has_properties=message.has_properties,
        schema_id=message.schema_id,
        compression=message.compression,
    )


@ALL
def test_read_and_written_back(event: Event) -> None:
    codec = codec_of(event)
    ((frame, size),) = codec.feed(event.data)
    assert not isinstance(frame, Malformed), frame
    assert (size, codec.partial) == (len(event.data), 0)
    written = codec.encode(frame)
    if event.direction == "S2C" and event.description == f"CONTROL/JSON {WITHOUT_BACKSLASH}":
        assert codec_of(event).decode(written) == frame
        assert written[8 : -written[-1]].replace(b"\\/", b"/") == event.data[8 : -event.data[-1]]
    else:
        assert written == event.data


@pytest.mark.parametrize("scenario", ["cpp_lifecycle", "java_lifecycle", "node_lifecycle_and_admin"])
def test_byte_by_byte(scenario: str) -> None:
    recorded = [event for event in events() if event.scenario == scenario]
    codec = BlazingCodec()
    frames = [frame for event in recorded for byte in event.data for frame, _ in codec.feed(bytes((byte,)))]
    assert frames == [codec_of(event).decode(event.data) for event in recorded]


def test_what_was_recorded() -> None:
    encodings = [codec_of(event).encoding for event in events() if event.data[4] == 0x41]
    assert (len(lines()), len(events())) == (478, 452)
    assert (encodings.count(Encoding.BER), encodings.count(Encoding.JSON)) == (174, 88)


def test_control_messages_survive_the_other_encoding() -> None:
    ber, json = BlazingCodec(Encoding.BER), BlazingCodec(Encoding.JSON)
    for event in events():
        frame = codec_of(event).decode(event.data)
        if isinstance(frame, ControlFrame):
            assert json.decode(json.encode(frame)) == frame
            assert ber.decode(ber.encode(frame)) == frame


def test_the_checksum_is_that_of_the_data_or_from_node_of_the_data_with_padding() -> None:
    for event in events():
        for message in messages(event):
            if isinstance(message, PutMessage):
                data = padded(message.data) if "node" in event.sdk else message.data
                assert crc32c(data) == message.crc, event


def test_properties_are_read_and_written_back() -> None:
    styles = set()
    for event in events():
        for message in messages(event):
            content = content_of(message)
            style = Style.OLD
            if message.schema_id:
                style = Style.MIXED if "node" in event.sdk else Style.NEW
            compression = Compression(message.compression)
            written = write_content(content, style, compression)
            if compression is Compression.NONE:
                assert written == message.data, event
            else:  # the SDKs have other versions of zlib
                again = message.__class__(
                    0, b"", written, message.flags, schema_id=message.schema_id, compression=compression
                )
                assert content_of(again) == content
            if message.has_properties:
                styles.add((style, compression))
    assert len(styles) == 6


def test_options_are_read_and_written_back() -> None:
    found = set()
    for event in events():
        for message in messages(event):
            if isinstance(message, PushMessage):
                infos = read_options(message.options)
                form = {"(infos)": PushOption.INFOS, "(packed)": PushOption.PACKED}.get(
                    event.description.rpartition(" ")[2], PushOption.IDS
                )
                assert write_options(infos, form) == message.options
                found.add(form)
    assert found == set(PushOption)
    assert read_options(b"") == (SubscriptionInfo(0),)
