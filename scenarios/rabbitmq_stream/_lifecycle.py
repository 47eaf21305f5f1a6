"""Steps of the scenarios about heartbeats, the ends of connections, and streams that move or go."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from conformance.clients.adapter.messages import Event
from conformance.suite import Client, Expect
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.faults import silent
from fakebrokers.journal import Record, Tap
from fakebrokers.rabbitmq_stream.codes import OffsetType
from scenarios._common import LOSSES, UNHANDLED, maybe_reconnecting, received
from scenarios.rabbitmq_stream._deliveries import FIRST, asked, attached, subscribes, write
from scenarios.rabbitmq_stream._steps import STREAM, connections, widest_gap_s

BEAT = {"heartbeat_s": 1}
OTHER = "bills"


async def reconnecting(client: Client, session: str = "s1", **options: Any) -> None:
    """Connect; where the library can reconnect, it does so soon."""
    await client.connected(session, **{**options, **maybe_reconnecting(client)})


async def at_work(
    broker: RabbitMQStream, client: Client, expect: Expect, stream: str = STREAM, *, session: str = "s1"
) -> None:
    """Prepare a stream, and a publisher and a subscription of it as far as the client has the roles."""
    broker.create_stream(stream)
    if client.has_role("publisher"):
        expect.prepared(await client.publish(stream, b"first", session=session))
    if client.has_role("consumer"):
        mark = broker.journal.last_seq
        await client.subscribed(stream, stream, session=session, offset=FIRST)
        await attached(broker, expect, stream, since=mark)
        if client.has_role("publisher"):
            await client.wait_messages(1, stream)


def standing(broker: RabbitMQStream) -> dict[str, dict[str, Any]]:
    """What the fake reports of the open connections, by name."""
    return {each["name"]: each for each in broker.connections if each["state"] == "open"}


def kept(broker: RabbitMQStream, since: int = 0) -> list[str]:
    """The open connections accepted since then, without those that the client has ended.

    The broker may not have read of such an end yet; the client's side of the socket shows it.
    """
    found = [name for name in standing(broker) if broker.client_holds(name) is not False]
    if not since:
        return found  # a long journal has forgotten when they were accepted
    accepted = {record.connection for record in connections(broker, since=since)}
    return [name for name in found if name in accepted]


async def lasting(
    broker: RabbitMQStream,
    client: Client,
    expect: Expect,
    stream: str = STREAM,
    *,
    session: str = "s1",
    since: int = 0,
) -> list[str]:
    """The connections that the session keeps: those of the connect op, else those that its work needs.

    Some libraries connect only to see that they can, and open others for what they are asked to do.
    """
    await asyncio.sleep(0.3)  # the end of such a connection may come a moment after the op's
    if not kept(broker, since):
        await at_work(broker, client, expect, stream, session=session)
    found = kept(broker, since)
    expect.exercised(
        found, "the session keeps no connection of its own", id="the-session-keeps-no-connection-of-its-own"
    )
    return found


def users(broker: RabbitMQStream, stream: str = STREAM) -> list[str]:
    """The open connections with a publisher or a subscription of the stream."""
    found = []
    for name, each in standing(broker).items():
        places = [*each["publishers"].values(), *each["subscriptions"].values()]
        if any(place["stream"] == stream for place in places):
            found.append(name)
    return found


def clock(broker: RabbitMQStream) -> float:
    """Seconds on the clock of the journal."""
    return broker.now - broker.journal.started_at  # on virtual time both begin at 0


def idle_for(broker: RabbitMQStream) -> float:
    """Seconds since the client last sent anything but heartbeats and publishes, or connected."""
    heard = broker.journal.select(tap=Tap.RECEIVED) + broker.journal.select(kind="accepted")
    times = [record.at for record in heard if record.kind not in ("Heartbeat", "Publish")]
    return clock(broker) - max(times, default=0.0)


def node_port(broker: RabbitMQStream, connection: str) -> int | None:
    """The port of the node that a connection reached, also of one that has ended; None before Open."""
    for record in broker.journal.select(kind="OpenResponse", connection=connection):
        properties = getattr(record.frame, "properties", None) or {}
        return int(properties.get("advertised_port", 0))
    return None


# heartbeats


def periods(broker: RabbitMQStream, expect: Expect) -> dict[str, int]:
    """T of each open connection, where it can be judged."""
    found = {name: int(each["heartbeat_s"]) for name, each in standing(broker).items()}
    short = {name: period for name, period in found.items() if 1 <= period <= 5}
    expect.exercised(
        short,
        f"the client's heartbeat is not between 1 and 5 s: {found}",
        id=slug("the-client-s-heartbeat-is-not-between-n-and-n-s-{}", found),
    )
    return short


def judge_gaps(
    broker: RabbitMQStream, expect: Expect, tuned: dict[str, int], begin_s: float, end_s: float
) -> None:
    """The client's bytes came often enough on all connections that it has not ended itself."""
    open_ones = {name: period for name, period in tuned.items() if name in standing(broker)}
    if not open_ones:
        closed = {record.connection for record in received(broker, "Close")}
        expect.exercised(
            not closed.issuperset(tuned),
            "the client has closed all its connections",
            id="the-client-has-closed-all-its-connections",
        )
        expect.that(
            False,
            "a connection stays",
            "the client has ended all of them without a Close",
            id="a-connection-stays",
        )
    for name, period in open_ones.items():
        gap = widest_gap_s(broker, name, begin_s, end_s)
        wanted = 1.5 * period + 0.25
        expect.within(
            gap,
            2.0 * period + 0.25,
            "the client's bytes are at most 2 T apart",
            id="the-client-s-bytes-are-at-most-n-t-apart",
        )
        expect.tolerate(
            gap <= wanted, "at most 1.5 T + 250 ms", f"{gap:.2f} s, T = {period} s", id="at-most-n-n-t-n-ms"
        )


async def fall_silent(broker: RabbitMQStream, expect: Expect) -> int:
    """From here on nothing is said on the connections that are open, but all is read; returns the longest T.

    No FIN either, though the server would end the connection of a client that is silent too.
    """
    tuned = periods(broker, expect)
    mark = broker.journal.last_seq
    for name in standing(broker):
        broker.call(setattr, broker.engine.connections[name].session, "heartbeats", None)
        broker.faults.add(silent(on="idle", after_s=0.05, connection=name, name=f"silence on {name}"))
    await expect.reached(
        broker, "the silence did not begin", kind="fault", since=mark, id="the-silence-did-not-begin"
    )
    return max(tuned.values())


# losses


def losses(client: Client, since: int = 0, session: str | None = None) -> list[Event]:
    """Events that report an end or trouble, of any session or of one."""
    return [
        event
        for event in client.events[since:]
        if (event.event == "error" or (event.event == "session" and event["what"] in LOSSES))
        and session in (None, event["session"] or session)
    ]


def let_go(broker: RabbitMQStream, names: Iterable[str]) -> bool:
    """Whether the client holds none of these connections any more."""
    return not any(broker.client_holds(name) for name in names)


def used_again(broker: RabbitMQStream, client: Client, since: int, stream: str = STREAM) -> bool:
    """Whether there is a new connection with a new publisher and a new subscription, as roles go."""
    opened = received(broker, "Open", since=since)
    declared = not client.has_role("publisher") or declares(broker, stream, since)
    subscribed = not client.has_role("consumer") or subscribes(broker, stream, since)
    return bool(opened and declared and subscribed)


def declares(broker: RabbitMQStream, stream: str = STREAM, since: int = 0) -> list[Record]:
    """The DeclarePublisher frames for a stream."""
    found = received(broker, "DeclarePublisher", since=since)
    return [record for record in found if getattr(record.frame, "stream", "") == stream]


def tries(broker: RabbitMQStream, stream: str = STREAM, since: int = 0) -> list[Record]:
    """Attempts to create a publisher or a subscription of a stream again."""
    return [*declares(broker, stream, since), *subscribes(broker, stream, since)]


# what goes on


async def goes_on(
    broker: RabbitMQStream,
    client: Client,
    expect: Expect,
    criterion: str,
    stream: str = OTHER,
    *,
    session: str = "s1",
    within_s: float = 5.0,
    id: str,
) -> None:
    """A publish is acknowledged and its message delivered, as far as the client has these roles."""
    before = len(client.messages(stream))
    if client.has_role("publisher"):
        result = await client.publish(stream, b"and on", session=session, timeout=within_s)
        expect.outcome(result, "acked", criterion, id=id)
    else:
        write(broker, client, [b"and on"], stream)
    if client.has_role("consumer"):
        messages = await client.wait_messages(before + 1, stream, within_s)
        expect.that(
            len(messages) > before,
            f"{criterion}: its messages are delivered",
            len(messages),
            id=slug("{}-its-messages-are-surfaced", id),
        )


def no_unhandled_error(client: Client, expect: Expect, mark: int) -> None:
    """Nothing on stderr since `mark` says that an error was left unhandled."""
    lines = client.adapter.stderr(mark).splitlines()
    loud = [line for line in lines if any(word in line.lower() for word in UNHANDLED)]
    expect.that(not loud, "no unhandled error", loud[:1], id="no-unhandled-error")


def positions(client: Client, sub: str = STREAM) -> list[int]:
    """The offsets that were delivered, in order."""
    return [int(message.position) for message in client.messages(sub)]


def without_gap(expect: Expect, offsets: list[int], criterion: str, *, id: str) -> None:
    """Offsets go up by one; after a new connection some may come again."""
    highest = -1
    for offset in offsets:
        expect.that(offset <= highest + 1, criterion, f"{offset} follows {highest}", id=id)
        highest = max(highest, offset)


def asks_from(expect: Expect, found: Record, position: int) -> None:
    """A Subscribe asks for the position of the consumer."""
    frame = asked(found)
    right = frame.offset_type == OffsetType.OFFSET and frame.offset in (position - 1, position)
    expect.that(
        right,
        "the consumer is subscribed from its position",
        f"type {frame.offset_type}, {frame.offset}, at {position}",
        id="the-consumer-is-subscribed-from-its-position",
    )
