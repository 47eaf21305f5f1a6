"""Steps and questions that the scenarios of PZQ share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.messages import Event, Message, body_bytes, same_body
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect
from conformance.suite.expect import slug
from fakebrokers.journal import Record, Tap
from fakebrokers.pzq.frames import ConsumerAck, Produce, ProduceAck, ProduceNack
from fakebrokers.pzq.server import PZQ
from scenarios import _common
from scenarios._common import limit_s, until

PUBLISHER = ("publisher",)
CONSUMER = ("consumer",)
MONITOR = ("monitor",)

#: Timers for scenarios whose subject is redelivery: 1.0 to 1.5 s after the delivery.
QUICK = {"ack_timeout_s": 1.0, "reaper_interval_s": 0.5}
#: A fake that loses no acknowledgement of a producer that pipelines.
ROOMY = {"high_water_marks": (0, 1, 1)}
#: How an op ends that waits for a peer, where there is none, or none that speaks ZMTP.
NO_PEER = ("timeout", "connection", "protocol")


# connections


def begun(
    client: Client, expect: Expect, result: Result, kinds: Sequence[str] = NO_PEER, *, timeout: float = 5.0
) -> bool:
    """Whether an op that needs a connection has worked, where none can be had.

    With libzmq it has, and connects in the background. In a library that waits for its peer the op fails by
    its deadline, which is demanded: the application knows then, and nothing is left to wait for.
    """
    if result.ok:
        return True
    op, kind = result.op, "connect" if result.op == "connect" else "request"
    criterion = f"{op} works in the background, or ends {', '.join(kinds)}"
    expect.failed(result, kinds, criterion, id=slug("{}-works-in-the-background-or-ends-so", op))
    limit = limit_s(client.deadline_s(kind, timeout))
    expect.within(
        result.elapsed_ms / 1000,
        limit,
        f"{op} ends by its deadline",
        id=slug("{}-ends-by-its-deadline", op),
    )
    return False


async def connected_again(client: Client, expect: Expect, session: str = "s1", **options: Any) -> None:
    """What an application does whose library does not connect again: a session anew, by the same name."""
    closing = await client.close(session)
    expect.ended(closing, "close ends by its deadline", id="close-ends-by-its-deadline")
    await client.connected(session, **options)


# producers


def produced(broker: PZQ, since: int = 0) -> list[Produce]:
    """The messages that came from producers, in order."""
    frames = [record.frame for record in broker.journal.select(kind="Produce", tap=Tap.RECEIVED, since=since)]
    return [frame for frame in frames if isinstance(frame, Produce)]


def produced_bytes(broker: PZQ, body: bytes, since: int = 0) -> list[Produce]:
    """Those whose body is this one part."""
    return [frame for frame in produced(broker, since) if frame.body == (body,)]


async def came(broker: PZQ, expect: Expect, count: int = 1, since: int = 0) -> list[Produce]:
    """So many messages, no repeats counted, came from producers; they are returned in order of arrival."""
    return [*await _common.came(expect, lambda: _distinct(broker, since), count)]


def _distinct(broker: PZQ, since: int) -> list[Produce]:
    return list({frame.id: frame for frame in reversed(produced(broker, since))}.values())[::-1]


def publish(client: Client, *body: bytes, timeout: float = 2.0, **more: Any) -> Call:
    """Start to produce a message of these parts."""
    return client.begin_publish("", body, timeout=timeout, **more)


async def goes_on(
    client: Client,
    expect: Expect,
    criterion: str = "the next produce works",
    *,
    id: str = "the-next-produce-works",
) -> None:
    """A produce after all that works."""
    expect.outcome(await publish(client, b"and on we go", timeout=5.0), "acked", criterion, id=id)


def answer(broker: PZQ, frame: ProduceAck | ProduceNack, connection: str | None = None) -> None:
    """Say an acknowledgement to the producer that produced last."""
    name = connection or broker.journal.select(kind="Produce", tap=Tap.RECEIVED)[-1].connection
    broker.say(name, frame)


def unhandled(client: Client) -> list[Event]:
    """Errors that belong to no op: there should be none where answers are legal."""
    return [event for event in client.events if event.event == "error"]


# consumers


async def consuming(client: Client, expect: Expect, **options: Any) -> None:
    """Prepare: connected and subscribed; the script settles unless `auto_settle` is asked for."""
    await client.connected()
    expect.prepared(await client.subscribe("", **options))


def auto(**more: Any) -> dict[str, Any]:
    """An ``on_message`` that acknowledges each message as soon as the callback is done with it."""
    return {"mode": "event", "auto_settle": "ack", **more}


async def settle(client: Client, message: Message, how: str = "ack") -> Result:
    """Settle a message."""
    return await client.op("settle", sub=message.sub, ref=message.ref, how=how)


def parts_are(message: Message, body: Sequence[bytes]) -> bool:
    """Whether a message has just these parts."""
    given = message.body if isinstance(message.body, list) else [message.body]
    return len(given) == len(body) and all(map(same_body, given, body))


def with_body(client: Client, *body: bytes, sub: str = "c1") -> list[Message]:
    """The copies of a message that the application got so far."""
    return [message for message in client.messages(sub) if parts_are(message, body)]


async def delivered(
    client: Client,
    expect: Expect,
    *body: bytes,
    criterion: str,
    count: int = 1,
    within_s: float = 3.0,
    id: str,
) -> list[Message]:
    """The application gets a message, so many copies of it."""
    await until(lambda: len(with_body(client, *body)) >= count, within_s)
    found = with_body(client, *body)
    expect.that(len(found) >= count, criterion, f"{len(found)} of {count} came: {shown(client)}", id=id)
    return found


def shown(client: Client, sub: str = "c1") -> str:
    """What the application got, shortly."""
    return str([message.body for message in client.messages(sub)][-4:])


def acks(broker: PZQ, key: bytes | None = None, since: int = 0) -> list[ConsumerAck]:
    """Acknowledgements that came from consumers, all or those for a key."""
    frames = [r.frame for r in broker.journal.select(kind="ConsumerAck", tap=Tap.RECEIVED, since=since)]
    return [f for f in frames if isinstance(f, ConsumerAck) and key in (None, f.key)]


def statuses(broker: PZQ, key: bytes) -> list[bytes]:
    """The statuses that came for a key, in order."""
    return [ack.status for ack in acks(broker, key)]


def deliveries(broker: PZQ, key: bytes | None = None, since: int = 0) -> list[Record]:
    """Deliveries that left, all or those with a key."""
    left = broker.journal.select(kind="Delivery", tap=Tap.SENT, since=since)
    return [record for record in left if key is None or record.keys == (key,)]


async def acknowledged(
    broker: PZQ, expect: Expect, key: bytes, criterion: str, within_s: float = 3.0, count: int = 1, *, id: str
) -> None:
    """A positive acknowledgement for a key comes."""
    await until(lambda: statuses(broker, key).count(b"1") >= count, within_s)
    expect.that(
        statuses(broker, key).count(b"1") >= count, criterion, f"came: {statuses(broker, key)}", id=id
    )


async def works_on(broker: PZQ, client: Client, expect: Expect, body: bytes = b"a good one") -> None:
    """A good message after all that is delivered."""
    broker.publish(body)
    await delivered(
        client,
        expect,
        body,
        criterion="a good message after it is delivered",
        id="a-good-message-behind-it-is-surfaced",
    )


def key_of(message: Message) -> bytes:
    """The key that was delivered."""
    position = message.position
    return position.encode() if isinstance(position, str) else body_bytes(position)


def microseconds(message: Message, name: str) -> int | None:
    """``sent_us`` or ``timeout_us`` of a message, None if the client does not show it."""
    value = message.meta.get(name)
    return None if value is None else int(value)


# time


async def process_ends(client: Client, expect: Expect) -> None:
    """The client's process ends within 2 s of ``shutdown``; a new one is started in its place."""
    code = await client.adapter.shutdown()
    expect.that(
        code in (0, None),
        "the process ends within 2 s of shutdown",
        f"exit code {code}",
        id="the-process-ends-within-n-s-of-shutdown",
    )
    await client.adapter.start()
