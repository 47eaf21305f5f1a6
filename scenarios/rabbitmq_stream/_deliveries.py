"""Steps of the scenarios about consuming: what the stream holds, what was asked for, what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from conformance.clients.adapter.messages import Error, Message, body_bytes
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.faults import hold
from fakebrokers.journal import Record, Tap
from fakebrokers.rabbitmq_stream.codes import OffsetType
from fakebrokers.rabbitmq_stream.frames import Subscribe
from fakebrokers.rabbitmq_stream.stream import Stream
from fakebrokers.rabbitmq_stream.writer import Batch
from scenarios._common import received, sent, until
from scenarios.rabbitmq_stream._steps import STREAM

FIRST = {"type": "first"}
NEXT = {"type": "next"}
QUIET_S = 0.25  #: how long to look out for what must not come

#: 3.10 sends a chunk for each credit; 4.x holds single credits back
CHUNK_PER_CREDIT = {"switches": {"low_water_mark": False}}


# what the stream holds


def record(client: Client, body: bytes) -> bytes:
    """A message as this client's users store it: the bytes, or an AMQP 1.0 message with one data section."""
    if client.hello.formats[:1] != ["amqp"]:
        return body
    size = len(body)
    head = b"\xa0" + size.to_bytes(1, "big") if size < 256 else b"\xb0" + size.to_bytes(4, "big")
    return b"\x00\x53\x75" + head + body


def numbered(first: int, count: int, word: str = "message") -> list[bytes]:
    """Bodies that contain their offsets."""
    return [b"%s %d" % (word.encode(), number) for number in range(first, first + count)]


def write(broker: RabbitMQStream, client: Client, bodies: Sequence[bytes], name: str = STREAM) -> None:
    """Append a chunk of simple entries."""
    broker.publish(name, [record(client, body) for body in bodies])


async def store(broker: RabbitMQStream, client: Client, bodies: Sequence[bytes], name: str = STREAM) -> None:
    """Append messages; through the client on a real broker."""
    if isinstance(broker, RabbitMQStream):
        write(broker, client, bodies, name)
        return
    for body in bodies:
        await client.prepare("publish", session="s1", target=name, body={"text": body.decode()}, wait=True)


def write_entries(
    broker: RabbitMQStream, entries: bytes, count: int, records: int, name: str = STREAM
) -> None:
    """Append a chunk of any entries, good or bad."""
    batch = Batch(bytes(8 * count), entries, count, records)
    broker.call(lambda: model(broker, name).writer.publish(batch, "", lambda *_: None, broker.engine.now))


def begin_at(broker: RabbitMQStream, offset: int, name: str = STREAM) -> None:
    """Let an empty stream begin at this offset, as if what was before had expired."""
    broker.call(setattr, model(broker, name).log, "next_offset", offset)


def model(broker: RabbitMQStream, name: str = STREAM) -> Stream:
    """The stream in the model of the broker."""
    return broker.broker.stream(name)


# what was asked for


def subscribes(broker: RabbitMQStream, stream: str = STREAM, since: int = 0) -> list[Record]:
    """The Subscribe frames for a stream."""
    return [r for r in received(broker, "Subscribe", since=since) if asked(r).stream == stream]


def asked(found: Record) -> Subscribe:
    """The frame of a Subscribe record."""
    assert isinstance(found.frame, Subscribe)
    return found.frame


async def attached(
    broker: RabbitMQStream, expect: Expect, stream: str = STREAM, *, since: int = 0, within_s: float = 5.0
) -> Record:
    """The Subscribe of a stream, as soon as the broker has said yes to it."""
    deadline = asyncio.get_running_loop().time() + within_s
    while asyncio.get_running_loop().time() < deadline:
        answered = {
            (r.connection, r.keys)
            for r in broker.journal.select(kind="SubscribeResponse", tap=Tap.SENT, since=since)
            if r.status == 1
        }
        for found in subscribes(broker, stream, since):
            if (found.connection, found.keys) in answered:
                return found
        await asyncio.sleep(0.02)
    expect.exercised(
        False, f"no Subscribe for {stream} was answered", id=slug("no-subscribe-for-{}-was-answered", stream)
    )
    raise AssertionError


async def subscribed_with_backlog(
    broker: RabbitMQStream,
    client: Client,
    expect: Expect,
    fill: Callable[[int], None],
    *,
    session: str = "s1",
    sub: str = "c1",
    credit: int = 10,
    target: str = STREAM,
    on_message: dict[str, object] | None = None,
) -> int:
    """Subscribe; `fill` writes what waits in the stream once the credit of the Subscribe frame is known.

    Returns:
        That credit, which some clients do not let their users choose.
    """
    mark = broker.journal.last_seq
    held = f"Subscribe of {sub}"
    broker.faults.add(hold(kind="Subscribe", direction="in", nth=1, scope="run", name=held))
    options = {"offset": FIRST, "credit": credit}
    call = client.begin(
        "subscribe",
        session=session,
        sub=sub,
        target=target,
        options=options,
        on_message=on_message or {"mode": "event"},
    )
    found = await expect.reached(
        broker, "no Subscribe came", kind="Subscribe", since=mark, id="no-subscribe-came"
    )
    given = asked(found[-1]).credit
    fill(given)
    broker.faults.remove(held)
    expect.prepared(await call)
    return given


def credits_given(broker: RabbitMQStream) -> int:
    """The sum of the credits on the wire, without those of Subscribe."""
    return sum(r.frame.credit for r in received(broker, "Credit"))  # type: ignore[union-attr]


def start_of(broker: RabbitMQStream, offset_type: int, value: int | None, stream: str = STREAM) -> int:
    """The first offset that a client delivers for this specification, as the stream is now."""
    if offset_type == OffsetType.OFFSET:
        return value or 0
    return broker.call(
        lambda: model(broker, stream).resolve(OffsetType(offset_type), value or 0, broker.engine.now)
    )


# what came of it


async def delivered_messages(
    client: Client, count: int, sub: str = "c1", within_s: float = 5.0
) -> list[Message]:
    """What the application got: wait for `count` messages, then a little for more than those."""
    found = await client.wait_messages(count, sub, within_s)
    if len(found) < count:
        return found
    return await client.wait_messages(len(found) + 1, sub, QUIET_S)


def positions(messages: Sequence[Message]) -> list[int]:
    """The offsets of these messages."""
    return [int(message.position) for message in messages]


def bodies_of(messages: Sequence[Message]) -> list[bytes]:
    """Their bodies, which have to be small."""
    return [body_bytes(message.body) for message in messages]


async def subscribe_error(client: Client, result: Result, sub: str, within_s: float = 1.0) -> Error | None:
    """Why a subscribe was refused, also where the library reports that only later; None if it was not."""
    if result.error is not None or not client.can("lazy_subscribe"):
        return result.error
    event = await client.event("error", within_s, sub=sub)
    return None if event is None else event.error


def complaints(client: Client, after: int = 0) -> list[str]:
    """The errors and losses that the client has reported."""
    return [
        str(e.fields)
        for e in client.events[after:]
        if e.event == "error" or (e.event == "session" and e["what"] not in ("connected", "reconnected"))
    ]


async def error_reported(client: Client, expect: Expect, after: int, stderr: int) -> None:
    """The client reports an error or a loss to the application in time; a line in its log does not count."""
    await until(lambda: complaints(client, after) or not client.alive, 2.0)
    reported, logged = complaints(client, after), client.adapter.stderr(stderr).strip()
    expect.that(client.alive, "the process goes on", "it ended", id="the-process-lives-on")
    only = f"to the log only: {logged[-200:]}" if logged else "nothing"
    expect.that(
        reported,
        "an error is reported to the application",
        only,
        id="an-error-is-reported-to-the-application",
    )


async def good_chunk(
    broker: RabbitMQStream, client: Client, expect: Expect, last: bytes, offset: int, after: int
) -> list[bytes]:
    """The chunk after the bad one, which ends with `last`, is delivered on this connection or on a new one.

    Where the library connects no consumer again, but has ended its connection and reported so since `after`
    events, the application subscribes anew, from the `offset` of that chunk.

    Returns:
        All bodies that were delivered.
    """
    subs = ["c1"]
    loop = asyncio.get_running_loop()
    deadline = loop.time() + 6.0
    while last not in (got := [body for sub in subs for body in bodies_of(client.messages(sub))]):
        if loop.time() > deadline:
            expect.that(
                False,
                "the good chunk after it is delivered",
                f"delivered: {got[:20]}",
                id="the-good-chunk-behind-it-is-surfaced",
            )
        if len(subs) == 1 and _left_to_the_application(broker, client, after):
            subs.append("anew")
            start = {"type": "offset", "value": offset}
            await client.connected("anew")
            await client.subscribed(STREAM, "anew", session="anew", offset=start)
        await asyncio.sleep(0.02)
    return got


def _left_to_the_application(broker: RabbitMQStream, client: Client, after: int) -> bool:
    """Whether the library has reported the end of the consumer's connection, and does nothing more."""
    if client.reconnects("consumer") or not complaints(client, after):
        return False
    delivered = {record.connection for record in sent(broker, "Deliver")}
    return bool(delivered) and not any(broker.client_holds(name) for name in delivered)
