"""What a line says of a frame: keys by the names of their fields, codes by number and name, bodies."""

from __future__ import annotations

from typing import Any

import pytest

from fakebrokers import BlazingMQ, Narconi, RabbitMQStream
from fakebrokers.blazingmq.frames import Ack, AckMessage, Push, PushMessage
from fakebrokers.core.frames import Frame
from fakebrokers.journal import Journal, RunJournal, Tap
from fakebrokers.moleculer.nats.frames import Pub
from fakebrokers.moleculer.packets import Request, Response
from fakebrokers.mqtt.frames import Connack
from fakebrokers.narconi.frames import HttpDeliver, HttpReject, WsAck, WsClose, WsDeliver
from fakebrokers.pzq.frames import ConsumerAck, Delivery
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.entries import simple_entries
from fakebrokers.rabbitmq_stream.frames import (
    FRAMES,
    CreateResponse,
    Deliver,
    PublishError,
    SaslAuthenticate,
    StoreOffset,
)
from fakebrokers.rabbitmq_stream.publishing import publish
from fakebrokers.viewer import of_journal, of_log
from fakebrokers.viewer.frames import BODY, beginning, counts_of, keys_of, said_of
from fakebrokers.viewer.kinds import Kinds
from fakebrokers.viewer.rows import Row

GUID = bytes.fromhex("4000010000000000000046616b654272")
REFUSED = {"name": "ServiceNotFoundError", "code": 404}


def said(frame: Frame) -> str:
    return said_of(frame, keys_of(frame))


def batch(*bodies: bytes) -> bytes:
    """A sub-entry batch that is not compressed."""
    data = simple_entries(bodies)
    return bytes([0x80, 0, len(bodies)]) + len(data).to_bytes(4) * 2 + data


def deliver(first: int, *entries: bytes, records: int) -> Deliver:
    chunk = Chunk.build(
        b"".join(entries), entries=len(entries), records=records, first_offset=first, timestamp_ms=0, epoch=1
    )
    return Deliver(subscription_id=1, chunk=chunk)


@pytest.mark.parametrize(
    ("frame", "wanted"),
    [
        (publish(1, [(7, b"tea")]), 'publishing_ids 7 "tea"'),
        (
            publish(1, [(1, b"tea"), (2, b""), (3, b"salt")]),
            'publishing_ids 1..3 (3 messages) "tea", "" ...',
        ),
        (publish(1, [(1, b"\x00Su\xa0\x03tea")]), 'publishing_ids 1 "tea"'),
        (publish(1, [(1, b"\x00Su\xa0\x09tea")]), 'publishing_ids 1 "\\x00Su\\xa0\\x09tea"'),
        (
            deliver(7, batch(b"a", b"b", b"c"), simple_entries([b"d"]), records=4),
            'first_offset 7..10 (4 messages) "a", "b" ...',
        ),
        (CreateResponse(correlation_id=4, code=5), "code 5 STREAM_ALREADY_EXISTS correlation_id 4"),
        (CreateResponse(correlation_id=4, code=99), "code 99 correlation_id 4"),
        (
            PublishError(publisher_id=1, errors=((5, 18), (6, 18))),
            "status 18 PUBLISHER_DOES_NOT_EXIST publishing_ids 5..6 (2 messages)",
        ),
        (StoreOffset(reference="app", stream="S", offset=5), "offset 5 app S"),
        (HttpReject(409, number=3), "status 409 Conflict number 3"),
        (HttpDeliver(200, body=b"tea", number=1), 'status 200 OK number 1 "tea"'),
        (WsClose(1001, "bye"), "code 1001 going away bye"),
        (WsClose(None), ""),
        (WsDeliver(b"\xff\x00\x01", ack_id="1"), 'ack_id 1 "0xff0001"'),
        (WsAck(ack_to_id="9"), "ack_to_id 9"),
        (
            Request(id="i", action="math.add", params={"a": 1, "password": "s3cret"}),
            'id i math.add {"a":1,"password":"***"}',
        ),
        (Response(id="i", success=True, data=[1]), "status 200 success id i [1]"),
        (
            Response(id="i", success=False, error=REFUSED),
            f"status 404 ServiceNotFoundError id i {beginning(REFUSED)}",
        ),
        (Pub("MOL.PING", b"{}"), "subject MOL.PING"),
        (Connack(code=5), "code 5 not authorized"),
        (ConsumerAck(b"k", b"1"), "code 1 processed key k"),
        (Delivery(b"k", 1, 2, body=(b"tea", b"milk")), 'key k "tea", "milk"'),
        (
            Push(messages=(PushMessage(1, GUID, b"tea"),)),
            'guids 0x40000100…4272 "tea"',
        ),
        (Ack(messages=(AckMessage(1, GUID, 7),)), "status 7 NOT_READY guids 0x40000100…4272"),
    ],
)  # fmt: skip
def test_a_line_says_key_code_and_body(frame: Frame, wanted: str) -> None:
    assert said(frame) == wanted


def test_a_long_body_is_cut_and_credentials_are_none() -> None:
    assert said(publish(1, [(1, b"x" * 900)])) == f'publishing_ids 1 "{"x" * BODY}…"'
    login = SaslAuthenticate(correlation_id=1, mechanism="PLAIN", data=b"\0me\0s3cret")
    assert said(login) == "correlation_id 1 PLAIN"


def test_a_chunk_counts_messages_and_covers_all_offsets() -> None:
    frame = deliver(7, batch(b"a", b"b", b"c"), records=3)
    assert counts_of(frame, "out") == [("deliver", 3)]
    journal = Journal(FRAMES)
    journal.add(1.0, "c1", Tap.OUT, frame, 80)
    journal.add(1.1, "c2", Tap.IN, StoreOffset(reference="app", stream="S", offset=8), 20)
    rows = of_journal("x", journal, {}, protocol="rabbitmq-stream").rows
    assert rows[0].links == ["d:7"] and rows[0].span == ("d", 7, 9)
    assert rows[1].links == ["d:8"] and rows[1].scope == "S"
    assert rows[0].scope == "", "the journal does not say which stream the subscription is of"


def stored(*frames: tuple[Tap, Frame], protocol: str, full: bool = True) -> list[Row]:
    """The rows of a journal on disk, with fields or without."""
    run = RunJournal(None, "run", frames=full, protocol=protocol)
    fake: Any = {"narconi": Narconi, "rabbitmq-stream": RabbitMQStream, "blazingmq": BlazingMQ}[protocol]
    journal = Journal(fake().journal._frames)
    journal.sink = run
    for tap, frame in frames:
        journal.add(1.0, "c1", tap, frame, 30)
    journal.flush()
    run.close()
    return of_log(run.log()).rows


def test_a_stored_journal_says_the_same_and_without_fields_what_it_can() -> None:
    frames = (Tap.OUT, HttpDeliver(404, body=b"tea", number=1)), (Tap.IN, WsAck(ack_id="9"))
    assert [row.text for row in stored(*frames, protocol="narconi")] == [
        'status 404 Not Found number 1 "tea"',
        "ack_id 9",
    ]
    assert [row.text for row in stored(*frames, protocol="narconi", full=False)] == [
        "status 404 Not Found number 1",
        "key 9",
    ]
    chunk = deliver(7, batch(b"a", b"b", b"c"), simple_entries([b"d"]), records=4)
    [row] = stored((Tap.OUT, chunk), protocol="rabbitmq-stream")
    assert (row.text, row.links, row.span) == (said(chunk), ["d:7", "d:10"], ("d", 7, 10))
    [row] = stored((Tap.IN, publish(1, [(7, b"tea")])), protocol="rabbitmq-stream")
    assert row.text == 'publishing_ids 7 "tea"' and "746561" in dict(row.details)["fields"]


def test_a_batch_in_several_rows_counts_each_message_once() -> None:
    ack = Ack(messages=(AckMessage(1, GUID), AckMessage(1, GUID, 7), AckMessage(1, GUID)))
    rows = stored((Tap.OUT, ack), protocol="blazingmq")
    assert [row.counts for row in rows] == [[("confirm", 2)], [("reject", 1)]]
    assert rows[1].text == "status 7 NOT_READY guids 0x40000100…4272"


def test_fields_that_make_no_frame_are_shown_as_they_are() -> None:
    assert Kinds("rabbitmq-stream").frame_of("SaslAuthenticate", '{"data":"***"}') is None
    assert Kinds("rabbitmq-stream").frame_of("SaslAuthenticate", "[1]") is None
    assert Kinds("rabbitmq-stream").frame_of("Nonsense", "{}") is None
    assert Kinds("of-another-release").class_of("Publish") is None
    login = SaslAuthenticate(correlation_id=1, mechanism="PLAIN", data=b"\0me\0s3cret")
    [row] = stored((Tap.IN, login), protocol="rabbitmq-stream")
    assert row.text.startswith("correlation_id 1") and "s3cret" not in str(row)


def test_the_bodies_of_a_batch_with_something_to_hide_are_read_from_disk() -> None:
    [row] = stored((Tap.OUT, Push(messages=(PushMessage(1, GUID, b"tea"),))), protocol="blazingmq")
    assert row.text == 'guids 0x40000100…4272 "tea"'
