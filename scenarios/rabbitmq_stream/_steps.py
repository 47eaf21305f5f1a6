"""Steps and questions that the scenarios of RabbitMQ Stream share."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import ceil

from conformance.clients.adapter.messages import body_bytes
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect
from conformance.suite.expect import Unsupported, slug
from fakebrokers import RabbitMQStream
from fakebrokers.core.frames import Frame
from fakebrokers.errors import UsageError
from fakebrokers.journal import Record, Tap
from fakebrokers.rabbitmq_stream.frames import Tune
from scenarios._common import received, sent

STREAM = "orders"
PUBLISHER = ("publisher",)
CONSUMER = ("consumer",)
BOTH = ("publisher", "consumer")
ADMIN = ("admin",)

#: Every kind of error but a timeout.
NOT_LATE = ("auth", "unsupported", "refused", "closed", "connection", "protocol", "internal", "invalid")


async def stream_exists(broker: RabbitMQStream, client: Client, name: str = STREAM) -> None:
    """The stream is there: made by the fake itself, or through the client on a real broker."""
    if isinstance(broker, RabbitMQStream):
        broker.create_stream(name)
    else:
        await client.op("rmqs.delete", session="s1", target=name)
        await client.prepare("rmqs.create", session="s1", target=name)


async def stored_bodies(
    broker: RabbitMQStream, client: Client, count: int, name: str = STREAM
) -> list[bytes]:
    """What the stream holds: the fake knows it, a real broker delivers it (to a wait for `count`)."""
    if isinstance(broker, RabbitMQStream):
        return [message.body for message in broker.messages(name)]
    sub = f"all of {name}"
    await client.subscribed(name, sub, offset={"type": "first"})
    return [body_bytes(message.body) for message in await client.wait_messages(count, sub, 10.0)]


def answered(broker: RabbitMQStream, kind: str, since: int = 0) -> list[Record]:
    """The requests of a kind that came since then and whose answers left whole on their connection."""
    answers = sent(broker, f"{kind}Response", since=since)
    whole = {(r.connection, r.keys) for r in answers if not r.fault}
    return [r for r in received(broker, kind, since=since) if (r.connection, r.keys) in whole]


def connections(broker: RabbitMQStream, *, since: int = 0) -> list[Record]:
    """The connections that were accepted."""
    return broker.journal.select(kind="accepted", since=since)


def opened(broker: RabbitMQStream, expect: Expect, criterion: str, *, since: int = 0, id: str) -> Record:
    """The Open with which a handshake since then was completed; a client's "ok" alone shows nothing."""
    found = received(broker, "Open", since=since)
    expect.that(found, criterion, "the broker has seen no Open", id=id)
    return found[-1]


def say(broker: RabbitMQStream, expect: Expect, connection: str, *frames: Frame) -> None:
    """Say frames on a connection that has to be open; clients may have ended it by themselves meanwhile."""
    expect.exercised(
        say_if_open(broker, connection, *frames),
        f"the client ended {connection} early",
        id=slug("the-client-ended-{}-early", connection),
    )


def say_raw(broker: RabbitMQStream, expect: Expect, connection: str, data: bytes) -> None:
    """Say bytes, as `say` does."""
    said = _spoken(lambda: broker.say_raw(connection, data))
    expect.exercised(
        said, f"the client ended {connection} early", id=slug("the-client-ended-{}-early", connection)
    )


def say_if_open(broker: RabbitMQStream, connection: str, *frames: Frame) -> bool:
    """Say frames, unless the connection has ended; returns whether they were said."""
    return _spoken(lambda: broker.say(connection, *frames))


def close_if_open(broker: RabbitMQStream, connection: str, code: int, reason: str) -> bool:
    """Close a connection as the server does, unless it has ended; returns whether that was said."""
    return _spoken(lambda: broker.say_close(connection, code, reason))


def _spoken(act: Callable[[], None]) -> bool:
    try:
        act()
    except UsageError:
        return False
    return True


def stores(broker: RabbitMQStream, body: bytes, name: str = STREAM) -> int:
    """How many messages of a stream hold that body, also where the client has wrapped it."""
    return sum(body in message.body for message in broker.messages(name))


def heartbeat_of(client: Client, wanted_s: int, *, most_s: int = 5) -> int:
    """The heartbeat to ask for: `wanted_s`, or the smallest that the library takes.

    Raises:
        Unsupported: That is more than `most_s`, which is as long as a scenario can watch.
    """
    least = ceil(client.hello.limits.get("heartbeat_min_s", 0))
    if least > most_s:
        raise Unsupported(f"the library's smallest heartbeat is {least} s, more than {most_s} s")
    return max(wanted_s, least)


def tunes(broker: RabbitMQStream, expect: Expect, *, since: int = 0) -> dict[str, Record]:
    """The client's answers to Tune, by connection."""
    found = received(broker, "Tune", since=since)
    expect.exercised(found, "no Tune answer came", id="no-tune-answer-came")
    return {record.connection: record for record in found}


def asked_heartbeat(tune: Record) -> int:
    """T: the heartbeat of a client's answer to Tune, in seconds; 0 for none."""
    assert isinstance(tune.frame, Tune)
    return tune.frame.heartbeat


def widest_gap_s(broker: RabbitMQStream, connection: str, begin_s: float, end_s: float) -> float:
    """The longest time without a frame from the client between two moments of the journal's clock."""
    frames = [r for r in broker.journal.records() if r.connection == connection and r.tap & Tap.RECEIVED]
    times = [begin_s, *(r.at for r in frames if begin_s <= r.at <= end_s), end_s]
    return max(later - earlier for earlier, later in pairwise(times))


async def publish_batch(
    client: Client, expect: Expect, count: int, size: int, letter: bytes = b"x"
) -> list[str]:
    """Publish equal messages, in one call if the library has one; returns their outcomes."""
    body = {"text": letter.decode() * size}
    if not client.has("publish_many"):
        calls = [client.begin_publish(STREAM, body, timeout=10.0) for _ in range(count)]
        return [(await call).outcome for call in calls]
    args = {"session": "s1", "target": STREAM, "messages": [{"body": body}] * count, "wait": True}
    result = await client.op("publish_many", 10.0, **args)
    expect.ended(result, "the batch ends", id="the-batch-ends")
    return [row["outcome"] for row in (result.value or {}).get("outcomes", [])]


async def connect_refused(
    broker: RabbitMQStream,
    expect: Expect,
    result: Result,
    deciding: str,
    kinds: tuple[str, ...],
    *,
    within_s: float,
    case: str = "",
    since: int = 0,
    code: int | None = None,
) -> None:
    """A connect failed because of the frame `deciding`, in time, and the client let go of its socket."""
    prefix = f"{case}: " if case else ""
    answers = sent(broker, deciding, since=since)
    expect.exercised(
        answers, f"{prefix}no {deciding} was sent", id=slug("{}no-{}-was-sent", prefix, deciding)
    )
    expect.failed(
        result,
        kinds,
        f"{prefix}connect fails as {' or '.join(kinds)}",
        code=code,
        id=slug("{}connect-fails-as-{}", prefix, " or ".join(kinds)),
    )
    answered_ns = (answers[-1].at + broker.journal.started_at) * 1e9
    expect.within(
        (result.ended_ns - answered_ns) / 1e9,
        within_s,
        f"{prefix}within {within_s} s of the answer",
        id=slug("{}within-{}-s-of-the-answer", prefix, within_s),
    )
    await expect.socket_closed(
        broker,
        answers[-1].connection,
        f"{prefix}the client's socket is closed",
        within_s=1.2 + 0.25,
        id=slug("{}the-client-s-socket-is-closed", prefix),
    )
