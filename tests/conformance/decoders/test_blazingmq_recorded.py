"""The judge's decoder of BlazingMQ reads what was recorded with real SDKs and a real broker."""

from __future__ import annotations

import pytest
from crc32c import crc32c

from conformance.decoders.blazingmq import BlazingDecoder
from conformance.decoders.blazingmq.contents import (
    MessageContent,
    MessageProperty,
    content_in,
    subscriptions_in,
)
from conformance.decoders.blazingmq.padding import unpadded
from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.codes import Encoding
from fakebrokers.blazingmq.frames import (
    BrokerResponse,
    ClientIdentity,
    ConfigureStream,
    OpenQueue,
    Push,
    PushMessage,
    Put,
    PutMessage,
)
from fakebrokers.blazingmq.properties import read_content
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.errors import WireError
from tests.blazingmq.golden import Event, conversation, events
from tests.blazingmq.recorded import Recorded, recorded
from tests.conformance.decoders.alike import assert_alike
from tests.conformance.decoders.fake_contents import as_read_by_the_fake

SDKS = pytest.mark.parametrize("event", events(), ids=str)
BROKER = pytest.mark.parametrize("event", [each for each in recorded() if each.data], ids=str)


def frame_of(data: bytes) -> Frame:
    ((frame, size),) = BlazingDecoder().feed(data)
    assert size == len(data)
    return frame


def messages_in(frame: Frame) -> tuple[PutMessage, ...] | tuple[PushMessage, ...]:
    return frame.messages if isinstance(frame, Put | Push) else ()


def content_of(message: PutMessage | PushMessage) -> MessageContent:
    return content_in(
        message.data,
        has_properties=message.has_properties,
        schema_id=message.schema_id,
        compression=message.compression,
    )


@SDKS
def test_all_that_sdks_said_and_took_is_read_and_written_back(event: Event) -> None:
    frame = frame_of(event.data)
    assert not isinstance(frame, Malformed), frame
    written = BlazingCodec(Encoding(event.data[6] >> 5)).encode(frame)
    if event.direction == "S2C" and written != event.data:  # JSON with slashes as no SDK writes them
        assert unpadded(written[8:]).replace(b"\\/", b"/") == unpadded(event.data[8:])
    else:
        assert written == event.data
    for message in messages_in(frame):
        content_of(message)
        if isinstance(message, PushMessage):
            subscriptions_in(message.options)
        elif "node" not in event.sdk:
            assert crc32c(message.data) == message.crc


@SDKS
def test_the_fake_reads_the_same_of_sdks(event: Event) -> None:
    assert_alike(BlazingCodec(), BlazingDecoder(), [event.data], lambda frame: False)


@BROKER
def test_the_fake_reads_the_same_of_a_broker(event: Recorded) -> None:
    """What a client said on purpose, and cannot be read, too."""
    assert_alike(BlazingCodec(), BlazingDecoder(), [event.data], lambda frame: False)
    for frame, _ in BlazingDecoder().feed(event.data):
        for message in messages_in(frame):
            assert_same_content(message)


@SDKS
def test_the_fake_finds_the_same_in_messages_of_sdks(event: Event) -> None:
    for message in messages_in(frame_of(event.data)):
        assert_same_content(message)


def assert_same_content(message: PutMessage | PushMessage) -> None:
    try:
        found = content_of(message)
    except Exception as problem:
        with pytest.raises(WireError):
            read_content(
                message.data,
                has_properties=message.has_properties,
                schema_id=message.schema_id,
                compression=message.compression,
            )
        assert str(problem)
        return
    assert found == as_read_by_the_fake(message)


def test_recorded_fields_have_the_values_that_the_notes_tell() -> None:
    said = [frame_of(event.data) for event in conversation("cpp_lifecycle")]
    identity, answer = said[:2]
    assert isinstance(identity, ClientIdentity)
    assert identity.features == "PROTOCOL_ENCODING:BER,JSON;MPS:MESSAGE_PROPERTIES_EX"
    assert (identity.sdk_version, identity.host_name, identity.sdk_language) == (999999, "", 1)
    assert identity.guid_info is not None
    assert isinstance(answer, BrokerResponse)
    assert (answer.result.category, answer.heartbeat_interval_ms) == (0, 3000)
    opened = next(frame for frame in said if isinstance(frame, OpenQueue))
    assert opened.handle_parameters.uri.startswith("bmq://bmq.test.mem.priority/")
    configured = next(frame for frame in said if isinstance(frame, ConfigureStream))
    assert configured.stream_parameters.app_id == "__default"
    posted = [message for frame in said if isinstance(frame, Put) for message in frame.messages]
    assert posted
    for message in posted:
        assert message.guid[-6:].hex().upper() == identity.guid_info.client_id


def test_the_worked_example_of_properties() -> None:
    """Section 2.2, in both styles."""
    head, rows = "1B 00 0008 00 02", "1800 {} 0002 1400 {} 0001"
    pairs = "6B31 7631 6E 0000000000000007 01 61626364"
    wanted = MessageContent(
        b"abcd", {"k1": MessageProperty("string", "v1"), "n": MessageProperty("int64", 7)}
    )
    for schema_id, lengths in ((0, ("0002", "0008")), (3, ("0000", "0004")), (1, ("0002", "0008"))):
        data = bytes.fromhex(f"{head} {rows.format(*lengths)} {pairs}")
        assert content_in(data, has_properties=True, schema_id=schema_id, compression=0) == wanted
