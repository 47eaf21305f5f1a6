"""Golden vectors of what is inside frames.

Properties, options and GUIDs of BlazingMQ, entries of RabbitMQ Stream, and sizes that are made right.
"""

from __future__ import annotations

import zlib
from enum import IntEnum, IntFlag
from types import ModuleType

from crc32c import crc32c

from conformance.decoders.blazingmq.contents import content_in, subscriptions_in
from conformance.decoders.rabbitmq_stream.messages import batch_bodies, entries_in, is_intact, publishing_ids
from fakebrokers.blazingmq import codes as bmq_codes
from fakebrokers.blazingmq.codes import Compression
from fakebrokers.blazingmq.frames import PutMessage
from fakebrokers.blazingmq.guid import GuidMaker
from fakebrokers.blazingmq.options import PushOption, SubscriptionInfo, read_options, write_options
from fakebrokers.blazingmq.properties import (
    Content,
    Property,
    PropertyType,
    Style,
    read_content,
    write_content,
)
from fakebrokers.rabbitmq_stream import binary, chunk
from fakebrokers.rabbitmq_stream import codes as rabbitmq_codes
from fakebrokers.rabbitmq_stream.batches import batch_entry
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.entries import messages, simple_entries, spans, whole_spans
from fakebrokers.rabbitmq_stream.frames import Deliver
from fakebrokers.rabbitmq_stream.publishing import publish
from tests.blazingmq import layouts_contents as bmq
from tests.conformance.decoders.alike import nothing_of, otherwise
from tests.conformance.decoders.fake_contents import in_our_words
from tests.conformance.decoders.test_vectors import SUITES, vectors
from tests.rabbitmq_stream.layouts_messages import ENTRIES, HI

CODES = {
    "RabbitMQ Code": "1 OK 2 STREAM_DOES_NOT_EXIST 3 SUBSCRIPTION_ID_ALREADY_EXISTS"
    " 4 SUBSCRIPTION_ID_DOES_NOT_EXIST 5 STREAM_ALREADY_EXISTS 6 STREAM_NOT_AVAILABLE"
    " 7 SASL_MECHANISM_NOT_SUPPORTED 8 AUTHENTICATION_FAILURE 9 SASL_ERROR 10 SASL_CHALLENGE"
    " 11 SASL_AUTHENTICATION_FAILURE_LOOPBACK 12 VIRTUAL_HOST_ACCESS_FAILURE 13 UNKNOWN_FRAME"
    " 14 FRAME_TOO_LARGE 15 INTERNAL_ERROR 16 ACCESS_REFUSED 17 PRECONDITION_FAILED"
    " 18 PUBLISHER_DOES_NOT_EXIST 19 NO_OFFSET 20 SASL_CANNOT_CHANGE_MECHANISM"
    " 21 SASL_CANNOT_CHANGE_USERNAME",
    "RabbitMQ OffsetType": "0 NONE 1 FIRST 2 LAST 3 NEXT 4 OFFSET 5 TIMESTAMP",
    "RabbitMQ ChunkType": "0 USER 1 TRACKING_DELTA 2 TRACKING_SNAPSHOT",
    "RabbitMQ Compression": "0 NONE 1 GZIP 2 SNAPPY 3 LZ4 4 ZSTD",
    "BlazingMQ EventType": "1 CONTROL 2 PUT 3 CONFIRM 4 PUSH 5 ACK 11 HEARTBEAT_REQ 12 HEARTBEAT_RSP"
    " 13 REJECT 15 AUTHENTICATION",
    "BlazingMQ Encoding": "0 BER 1 JSON",
    "BlazingMQ Category": "0 E_SUCCESS -1 E_UNKNOWN -2 E_TIMEOUT -3 E_NOT_CONNECTED -4 E_CANCELED"
    " -5 E_NOT_SUPPORTED -6 E_REFUSED -7 E_INVALID_ARGUMENT -8 E_NOT_READY",
    "BlazingMQ AckStatus": "0 SUCCESS 1 LIMIT_MESSAGES 2 LIMIT_BYTES 5 UNKNOWN 6 STORAGE_FAILURE 7 NOT_READY",
    "BlazingMQ ClientType": "0 E_UNKNOWN 1 E_TCPCLIENT 2 E_TCPBROKER 3 E_TCPADMIN",
    "BlazingMQ Language": "0 E_UNKNOWN 1 E_CPP 2 E_JAVA",
    "BlazingMQ ExpressionVersion": "0 E_UNDEFINED 1 E_VERSION_1",
    "BlazingMQ QueueFlag": "1 ADMIN 2 READ 4 WRITE 8 ACK",
    "BlazingMQ RoutingFlag": "1 AT_MOST_ONCE 2 DELIVER_CONSUMER_PRIORITY 4 DELIVER_ALL"
    " 8 HAS_MULTIPLE_SUB_STREAMS",
    "BlazingMQ PutFlag": "1 ACK_REQUESTED 2 MESSAGE_PROPERTIES",
    "BlazingMQ PushFlag": "1 IMPLICIT_PAYLOAD 2 MESSAGE_PROPERTIES 4 OUT_OF_ORDER",
    "BlazingMQ Compression": "0 NONE 1 ZLIB",
}


def _members(module: ModuleType, name: str) -> dict[str, type[IntEnum]]:
    """The codes of a module."""
    kinds = [
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, IntEnum | IntFlag)
    ]
    return {f"{name} {kind.__name__}": kind for kind in kinds if kind.__module__ == module.__name__}  # type: ignore[misc]


STYLES = {bmq.OLD: Style.OLD, bmq.NEW: Style.NEW, bmq.MIXED: Style.MIXED}


def _of_the_fake(carried: bmq.Carried) -> Content:
    properties = {
        name: Property(PropertyType[each.type.upper()], each.value[0] if each.type == "char" else each.value)
        for name, each in carried.content.properties.items()
    }
    return Content(carried.content.payload, properties)


def test_properties_and_payloads_of_blazingmq() -> None:
    problems: list[str] = []
    for each in bmq.contents():
        has = bool(each.content.properties)
        settings = {"has_properties": has, "schema_id": each.schema_id, "compression": each.compression}
        ours, theirs = content_in(each.data, **settings), read_content(each.data, **settings)
        problems += otherwise(f"decoder {each.name}", each.content, ours)
        problems += otherwise(f"codec {each.name}", each.content, in_our_words(theirs))
        for found in (ours, theirs):
            problems += otherwise(f"order {each.name}", list(each.content.properties), list(found.properties))
        style = STYLES.get(each.style, Style.OLD)
        written = write_content(_of_the_fake(each), style, Compression(each.compression))
        problems += otherwise(f"written {each.name}", each.data, written)
    nothing_of(problems)


def test_options_of_blazingmq() -> None:
    problems: list[str] = []
    for name, (wire, infos, form) in bmq.OPTIONS.items():
        ours = {number for number, _ in infos}
        problems += otherwise(f"decoder {name}", ours, subscriptions_in(wire))
        problems += otherwise(f"codec {name}", infos, tuple(map(tuple, read_options(wire))))
        if form:
            found = write_options([SubscriptionInfo(*each) for each in infos], PushOption(form))
            problems += otherwise(f"written {name}", wire, found)
    nothing_of(problems)


def test_guids_of_blazingmq() -> None:
    """Two bits of version, 22 of a counter, 56 of nanoseconds, and who makes them."""
    problems: list[str] = []
    for seconds, made, wanted in bmq.GUIDS:
        maker = GuidMaker(bmq.MAKER)
        maker._made = made - 1  # as if it had made them
        problems += otherwise(f"{seconds} {made}", bytes.fromhex(wanted) + bmq.MAKER, maker.new(seconds))
    nothing_of(problems)


def test_keys_of_messages_of_blazingmq() -> None:
    """The correlation id that a client without GUIDs puts in their place: 24 bits behind a zero."""
    message = PutMessage(1, bytes.fromhex("00 800203") + bytes(12), b"")
    assert message.correlation_id == 0x800203
    assert crc32c(b"123456789") == 0xE3069283


def test_entries_of_rabbitmq_stream() -> None:
    problems: list[str] = []
    for name, entry in ENTRIES.items():
        data = HI.wire + entry.wire + HI.wire
        at, end = len(HI.wire), len(HI.wire) + len(entry.wire)
        wanted = [(0, at, 1), (at, end, entry.records), (end, len(data), 1)]
        for spans_of in (spans, whole_spans):
            problems += otherwise(f"spans {name}", wanted, list(map(tuple, spans_of(data))))
        ours = list(entries_in(data))
        problems += otherwise(
            f"decoder {name}", wanted, [(each.start, each.end, each.records) for each in ours]
        )
        inner = data[ours[1].body : ours[1].end]
        bodies = [inner] if ours[1].compression is None else batch_bodies(ours[1], inner)
        problems += otherwise(f"bodies {name}", entry.bodies and list(entry.bodies), bodies)
        stored = entry.bodies or [inner]
        numbered = [(0, b"hi"), *enumerate(stored, 1), (1 + entry.records, b"hi")]
        problems += otherwise(f"messages {name}", numbered, list(messages(data)))
    nothing_of(problems)


def test_entries_of_rabbitmq_stream_are_written() -> None:
    assert simple_entries([b"hi", b""]) == ENTRIES["simple"].wire + ENTRIES["empty"].wire
    for name in ("batch", "batch of one"):
        assert batch_entry(ENTRIES[name].bodies or ()) == ENTRIES[name].wire
    ids = bytes.fromhex("0000000000000000 8000000000000000 ffffffffffffffff")
    assert binary.pack_ids([0, 1 << 63, 2**64 - 1]) == ids
    assert list(binary.unpack_ids(ids)) == publishing_ids(ids) == [0, 1 << 63, 2**64 - 1]
    published = [
        each.frame
        for each in vectors("rabbitmq-stream")
        if each.name == "Publish 1.published: twice the same"
    ]
    assert publish(1, [(7, b"hi"), (7, b"hi")]) == published[0]


def test_the_checksum_of_a_chunk() -> None:
    """CRC-32 of the data alone, as zlib has it."""
    built = Chunk.build(b"123456789", entries=1, records=1, first_offset=0, timestamp_ms=0)
    assert (built.crc, is_intact(built), built.crc_ok) == (0xCBF43926, True, True)
    assert (
        zlib.crc32(HI.wire) == Chunk.build(HI.wire, entries=1, records=1, first_offset=0, timestamp_ms=0).crc
    )


def test_what_is_wrong_with_a_size_is_mended() -> None:
    """The size of a frame, and the CRC of a chunk; of NATS that of MSG and PUB."""
    problems: list[str] = []
    for name in ("rabbitmq-stream", "blazingmq"):
        for each in vectors(name):
            frame = each.frame
            if each.is_written and not (isinstance(frame, Deliver) and not is_intact(frame.chunk)):
                damaged = bytearray(b"\xff\xfe\xfd\xfc" + each.wire[4:])
                if isinstance(frame, Deliver):
                    at = 8 + 1 + 8 * (frame.committed_chunk_id is not None) + 32
                    damaged[at : at + 4] = b"\1\2\3\4"
                writer = SUITES[name].writer(each)
                problems += otherwise(f"mended {each.name}", each.wire, writer.mend(bytes(damaged)))
    for each in vectors("nats"):
        if each.is_written and each.name.startswith(("MSG", "PUB")):
            line, end, rest = each.wire.partition(b"\r\n")
            wrong = line.rpartition(b" ")[0] + b" 12345" + end + rest
            problems += otherwise(f"mended {each.name}", each.wire, SUITES["nats"].writer(each).mend(wrong))
    nothing_of(problems)


def test_codes_have_the_numbers_of_the_notes() -> None:
    """docs/protocols/rabbitmq-stream.md, 4 and 6; docs/protocols/blazingmq.md, 1, 2, 3, 4 and 6.4."""
    found = {
        name: " ".join([f"{int(each)} {each.name}" for each in kind])
        for module, of in ((rabbitmq_codes, "RabbitMQ"), (chunk, "RabbitMQ"), (bmq_codes, "BlazingMQ"))
        for name, kind in _members(module, of).items()
    }
    assert {name: found.get(name) for name in CODES} == CODES
    assert found.keys() == CODES.keys()
