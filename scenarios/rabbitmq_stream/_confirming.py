"""Publishing and confirming, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from conformance.clients.adapter.messages import Event
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop
from fakebrokers.journal import Record, Tap
from fakebrokers.rabbitmq_stream.binary import pack_ids
from fakebrokers.rabbitmq_stream.frames import Publish, PublishConfirm
from scenarios._common import came, received
from scenarios.rabbitmq_stream._sending import Sent, begin_publishing
from scenarios.rabbitmq_stream._steps import STREAM, say

LOST = "confirms are lost"


def numbered_body(number: int) -> bytes:
    """The body of a message of `hold_confirms`; none is the beginning of another."""
    return b"message %03d" % number


async def hold_confirms(broker: RabbitMQStream, client: Client, expect: Expect, count: int) -> list[Sent]:
    """Publish `count` messages whose confirms never leave; returns them once all are on the wire."""
    broker.faults.add(drop(role="confirm", name=LOST))
    mark = broker.journal.last_seq
    sent = begin_publishing(client, STREAM, [numbered_body(n) for n in range(count)])
    await came(expect, partial(published, broker, mark), count)
    return sent


def published(broker: RabbitMQStream, since: int = 0) -> list[tuple[Record, int]]:
    """Each message that came: its Publish frame and publishing id."""
    return [(r, int(key)) for r in received(broker, "Publish", since=since) for key in r.keys]


def publisher_of(broker: RabbitMQStream, expect: Expect) -> tuple[str, int]:
    """Connection and publisher id of the newest Publish."""
    found = [r for r in received(broker, "Publish") if isinstance(r.frame, Publish)]
    expect.exercised(found, "no Publish came", id="no-publish-came")
    return found[-1].connection, found[-1].frame.publisher_id  # type: ignore[union-attr]


def confirmed(broker: RabbitMQStream, body: bytes, since: int = 0) -> bool:
    """Whether a message with that body was published since then, and its id confirmed where it was."""
    confirms = broker.journal.select(kind="PublishConfirm", tap=Tap.SENT, since=since)
    reported = {(r.connection, r.frame.publisher_id, int(key)) for r in confirms for key in r.keys}  # type: ignore[union-attr]
    for record in received(broker, "Publish", since=since):
        frame = record.frame
        if isinstance(frame, Publish) and body in frame.entries:
            ids = {(record.connection, frame.publisher_id, int(key)) for key in record.keys}
            if ids & reported:
                return True
    return False


def confirm(broker: RabbitMQStream, expect: Expect, ids: Sequence[int]) -> None:
    """Confirm publishing ids on the connection that published last."""
    connection, publisher_id = publisher_of(broker, expect)
    say(broker, expect, connection, PublishConfirm(publisher_id, pack_ids(ids)))


def all_acked(expect: Expect, results: Sequence[Result], criterion: str) -> None:
    """Demand that every publish ended acked."""
    for number, result in enumerate(results):
        expect.outcome(
            result, "acked", f"{criterion} (message {number + 1})", id=slug("{}-message-n", criterion)
        )


def no_second_completion(client: Client, expect: Expect) -> None:
    """No outcome or error was reported besides the answers; that of a lost connection is of no message."""
    late = [e for e in client.events if e.event == "outcome" or _is_of_a_message(e)]
    expect.that(not late, "one completion for each message", late[:2], id="one-completion-for-each-message")


def _is_of_a_message(event: Event) -> bool:
    return event.event == "error" and event["error"]["kind"] != "connection"
