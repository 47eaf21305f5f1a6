"""The judge's decoder of BlazingMQ reads what was recorded with real SDKs and a real broker."""

from __future__ import annotations

from crc32c import crc32c

from conformance.decoders import Unreadable
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
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.errors import WireError
from tests.blazingmq.golden import conversation, events
from tests.blazingmq.recorded import recorded
from tests.conformance.decoders.alike import differences, nothing_of, otherwise
from tests.conformance.decoders.fake_contents import as_read_by_the_fake


def frame_of(data: bytes) -> Frame:
    ((frame, _),) = BlazingDecoder().feed(data)
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


def test_all_that_sdks_said_and_took_is_read_and_written_back() -> None:
    problems: list[str] = []
    for event in events():
        ((frame, size),) = BlazingDecoder().feed(event.data)
        problems += [f"{event}: {frame}"] if isinstance(frame, Malformed) else []
        problems += otherwise(f"{event}: size", len(event.data), size)
        written = BlazingCodec(Encoding(event.data[6] >> 5)).encode(frame)
        if event.direction == "S2C" and written != event.data:  # JSON with slashes as no SDK writes them
            problems += otherwise(
                str(event), unpadded(event.data[8:]), unpadded(written[8:]).replace(b"\\/", b"/")
            )
        else:
            problems += otherwise(str(event), event.data, written)
        for message in messages_in(frame):
            content_of(message)
            if isinstance(message, PushMessage):
                subscriptions_in(message.options)
            elif "node" not in event.sdk:
                problems += otherwise(f"{event}: checksum", message.crc, crc32c(message.data))
    nothing_of(problems)


def test_the_fake_reads_the_same_of_sdks_and_of_a_broker() -> None:
    """What a client said on purpose, and cannot be read, too; and what is in messages."""
    problems: list[str] = []
    for event in (*events(), *[each for each in recorded() if each.data]):
        found = differences(BlazingCodec(), BlazingDecoder(), [event.data], lambda frame: False)
        problems += [f"{event}: {each}" for each in found]
        for frame, _ in BlazingDecoder().feed(event.data):
            for message in messages_in(frame):
                problems += [f"{event}: {each}" for each in other_content(message)]
    nothing_of(problems)


def other_content(message: PutMessage | PushMessage) -> list[str]:
    """What the fake finds otherwise in a message."""
    try:
        theirs: object = as_read_by_the_fake(message)
    except WireError:
        theirs = None
    try:
        ours: object = content_of(message)
    except Unreadable:
        ours = None
    return otherwise("content", theirs, ours)


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
