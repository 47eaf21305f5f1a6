"""Steps and questions that the scenarios of BlazingMQ share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.messages import Event, Message, same_body
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect
from conformance.suite.expect import Unsupported, slug
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.codec import BlazingCodec, event_bytes
from fakebrokers.blazingmq.codes import Category, Encoding, EventType
from fakebrokers.blazingmq.events import padded
from fakebrokers.blazingmq.frames import (
    Ack,
    AckMessage,
    ClientIdentity,
    ConfigureQueueStream,
    ConfigureStream,
    Confirm,
    ConfirmMessage,
    HeartbeatRequest,
    Push,
    PushMessage,
    Put,
    PutMessage,
)
from fakebrokers.blazingmq.options import SubscriptionInfo, write_options
from fakebrokers.core.frames import Frame
from fakebrokers.errors import UsageError
from fakebrokers.faults import drop
from fakebrokers.journal import Record, Tap

DOMAIN = "bmq://bmq.test.mem.priority/"
Q = DOMAIN + "orders"
FANOUT = "bmq://bmq.test.mem.fanout/news"
PUBLISHER = ("publisher",)
CONSUMER = ("consumer",)
BOTH = ("publisher", "consumer")

READ, WRITE = ("read",), ("write",)
READ_WRITE = ("read", "write")
GRACE = 1.2  #: times a deadline, and then
GRACE_S = 0.25
#: How an op ends that may have taken effect.
LOST = ("connection", "closed", "timeout")
#: How an op ends on a session that was stopped or lost meanwhile.
ENDED = ("closed", "cancelled", "connection", "timeout")
#: How a loss is reported; a client that never comes back may know no word but the last.
LOSS_WORDS = ("connection_lost", "reconnecting", "disconnected")
UNHANDLED = ("unhandled", "uncaught", "panic", "never retrieved")
WITHHELD = "ACKs are withheld"


# sessions and queues


def begin_open(
    client: Client,
    target: str = "q",
    uri: str = "",
    flags: Sequence[str] = WRITE,
    *,
    session: str = "s1",
    timeout: float = 5.0,
    **options: Any,
) -> Call:
    """Start to open a queue under a name; the URI follows from it."""
    args = {"session": session, "target": target, "uri": uri or DOMAIN + target, "flags": list(flags)}
    return client.begin("bmq.open_queue", timeout, **args, options=options)


async def open_queue(client: Client, target: str = "q", uri: str = "", **more: Any) -> Result:
    """Open a queue; see `begin_open`."""
    return await begin_open(client, target, uri, **more)


async def opened(client: Client, expect: Expect, target: str = "q", uri: str = "", **more: Any) -> None:
    """Open a queue as a step that only prepares."""
    expect.prepared(await open_queue(client, target, uri, **more))


async def ready(
    client: Client, expect: Expect, flags: Sequence[str] = WRITE, uri: str = Q, **options: Any
) -> None:
    """Connect, open the queue ``q``, and where it is read subscribe to it as ``c1``."""
    await client.connected()
    await opened(client, expect, "q", uri, flags=flags, **options)
    if "read" in flags:
        await client.subscribed("q")


async def close_queue(client: Client, target: str = "q", timeout: float = 5.0, session: str = "s1") -> Result:
    """Close a queue."""
    return await client.op("bmq.close_queue", timeout, session=session, target=target)


async def configure(client: Client, target: str = "q", timeout: float = 5.0, **options: Any) -> Result:
    """Configure a reader anew."""
    return await client.op("bmq.configure_queue", timeout, session="s1", target=target, options=options)


async def settle(client: Client, message: Message, sub: str = "c1") -> Result:
    """Confirm a message."""
    return await client.op("settle", sub=sub, ref=message.ref, how="ack")


# the journal


def received(broker: BlazingMQ, kind: str, *, since: int = 0, connection: str | None = None) -> list[Record]:
    """Frames of that kind that came from the client."""
    return broker.journal.select(kind=kind, tap=Tap.RECEIVED, since=since, connection=connection)


def sent(broker: BlazingMQ, kind: str, *, since: int = 0, connection: str | None = None) -> list[Record]:
    """Frames of that kind that left for the client."""
    return broker.journal.select(kind=kind, tap=Tap.SENT, since=since, connection=connection)


def from_client(broker: BlazingMQ, *, since: int = 0, connection: str | None = None) -> list[Record]:
    """All frames that came from the client, heartbeats left out."""
    found = broker.journal.select(tap=Tap.RECEIVED, since=since, connection=connection)
    return [r for r in found if r.role != "heartbeat"]


def accepted(broker: BlazingMQ, *, since: int = 0) -> list[Record]:
    """The connections that the broker accepted."""
    return broker.journal.select(kind="accepted", since=since)


def current(broker: BlazingMQ, expect: Expect) -> str:
    """The newest connection of the client."""
    found = received(broker, "clientIdentity")
    expect.exercised(found, "no client said who it is", id="no-client-said-who-it-is")
    return found[-1].connection


def requests(broker: BlazingMQ, kind: str, *, since: int = 0, connection: str | None = None) -> list[Any]:
    """The frames themselves of requests of a kind."""
    return [r.frame for r in received(broker, kind, since=since, connection=connection)]


def posts(
    broker: BlazingMQ, *, since: int = 0, connection: str | None = None
) -> list[tuple[Record, PutMessage]]:
    """Each message that came, with its record."""
    found = received(broker, "PUT", since=since, connection=connection)
    return [(r, message) for r in found if isinstance(r.frame, Put) for message in r.frame.messages]


def acked_on_the_wire(broker: BlazingMQ, data: bytes, since: int = 0) -> bool:
    """Whether a message with these data came since then, and its ACK left."""
    keys = {message.key for _, message in posts(broker, since=since) if data in message.data}
    reported = [r.frame for r in sent(broker, "ACK", since=since)]
    return any(each.key in keys for f in reported if isinstance(f, Ack) for each in f.messages)


def confirms(broker: BlazingMQ, *, since: int = 0, connection: str | None = None) -> list[ConfirmMessage]:
    """Each confirm that the broker received."""
    found = received(broker, "CONFIRM", since=since, connection=connection)
    return [message for r in found if isinstance(r.frame, Confirm) for message in r.frame.messages]


def configures(
    broker: BlazingMQ, *, since: int = 0, connection: str | None = None
) -> list[ConfigureStream | ConfigureQueueStream]:
    """Requests of both kinds that configure a reader."""
    found = broker.journal.select(tap=Tap.RECEIVED, since=since, connection=connection)
    kinds = (ConfigureStream, ConfigureQueueStream)
    return [r.frame for r in found if isinstance(r.frame, kinds)]


def identity(broker: BlazingMQ, expect: Expect) -> ClientIdentity:
    """What the client said of itself last."""
    frame = received(broker, "clientIdentity")[-1].frame if received(broker, "clientIdentity") else None
    expect.exercised(
        isinstance(frame, ClientIdentity), "no client said who it is", id="no-client-said-who-it-is"
    )
    assert isinstance(frame, ClientIdentity)
    return frame


def makes_guids(broker: BlazingMQ, expect: Expect) -> bool:
    """Whether the client makes the GUIDs of its messages itself."""
    info = identity(broker, expect).guid_info
    return info is not None and bool(info.client_id)


def features(broker: BlazingMQ, expect: Expect) -> str:
    """What the client says it can."""
    return identity(broker, expect).features


def encoding(broker: BlazingMQ, expect: Expect) -> Encoding:
    """How the broker writes control messages to this client: BER if it lists it."""
    return Encoding.BER if "BER" in features(broker, expect) else Encoding.JSON


def knows_new_properties(broker: BlazingMQ, expect: Expect) -> bool:
    """Whether the client reads properties in the new style."""
    return "MESSAGE_PROPERTIES_EX" in features(broker, expect)


# waiting


async def eventually(condition: Callable[[], Any], within_s: float) -> bool:
    """Whether the condition comes true within that time."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    while not condition():
        if loop.time() > end:
            return False
        await asyncio.sleep(0.01)
    return True


async def came(broker: BlazingMQ, expect: Expect, count: int, since: int = 0) -> list[PutMessage]:
    """Wait for so many messages on the wire."""
    await eventually(lambda: len(posts(broker, since=since)) >= count, 5.0)
    found = [message for _, message in posts(broker, since=since)]
    expect.exercised(len(found) >= count, f"{len(found)} of {count} messages came", id="n-of-n-messages-came")
    return found


async def reached_confirms(broker: BlazingMQ, count: int, *, since: int = 0) -> list[ConfirmMessage]:
    """The confirms once there are so many, or what there is after 2 s."""
    await eventually(lambda: len(confirms(broker, since=since)) >= count, 2.0)
    return confirms(broker, since=since)


async def quiet(seconds: float = 0.3) -> None:
    """Time in which something could come that must not."""
    await asyncio.sleep(seconds)


# what the broker says by hand


def say(broker: BlazingMQ, expect: Expect, *frames: Frame) -> None:
    """Say frames on the newest connection."""
    name = current(broker, expect)
    try:
        broker.say(name, *frames)
    except UsageError:
        expect.exercised(False, f"the client ended {name} early", id=slug("the-client-ended-{}-early", name))


def say_raw(broker: BlazingMQ, expect: Expect, data: bytes) -> None:
    """Say bytes, as `say` does."""
    name = current(broker, expect)
    try:
        broker.say_raw(name, data)
    except UsageError:
        expect.exercised(False, f"the client ended {name} early", id=slug("the-client-ended-{}-early", name))


def control(body: bytes, written: Encoding) -> bytes:
    """A control event with this body, which is padded already."""
    return event_bytes(EventType.CONTROL, [body], written << 5)


def broken_control(body: bytes, written: Encoding) -> bytes:
    """A control event around any bytes."""
    return control(padded(body), written)


def ack_for(broker: BlazingMQ, expect: Expect, message: PutMessage, status: int = 0) -> AckMessage:
    """The answer to a message, by the rule of ids: its GUID, or its correlation id and a fresh GUID."""
    if makes_guids(broker, expect):
        return AckMessage(message.queue_id, message.guid, status)
    guid = bytes(16) if status else (0x4000 << 112 | message.correlation_id).to_bytes(16)
    return AckMessage(message.queue_id, guid, status, message.correlation_id)


def acknowledge(broker: BlazingMQ, expect: Expect, *messages: PutMessage, status: int = 0) -> None:
    """Answer messages in one event."""
    say(broker, expect, Ack(tuple([ack_for(broker, expect, each, status) for each in messages])))


def withhold(broker: BlazingMQ) -> None:
    """From here on only `acknowledge` acknowledges."""
    broker.faults.add(drop(kind="ACK", direction="out", name=WITHHELD))


def reader(broker: BlazingMQ, expect: Expect) -> tuple[int, int]:
    """Queue id and subscription id of the reader that was configured last."""
    for frame in reversed(configures(broker)):
        if isinstance(frame, ConfigureQueueStream):
            info = frame.stream_parameters.sub_id_info
            return frame.q_id, info.sub_id if info else 0
        if frame.stream_parameters.subscriptions:
            return frame.q_id, frame.stream_parameters.subscriptions[0].s_id
    expect.exercised(False, "no reader was configured", id="no-reader-was-configured")
    raise AssertionError


def encoded(*frames: Frame) -> bytes:
    """The bytes of these frames, one event for each."""
    codec = BlazingCodec()
    return b"".join([codec.encode(frame) for frame in frames])


def guid(number: int) -> bytes:
    """A GUID that no client makes."""
    return (0x7 << 120 | number).to_bytes(16)


def push_message(
    broker: BlazingMQ, expect: Expect, body: bytes, number: int = 1, **fields: Any
) -> PushMessage:
    """A delivery for the reader that was configured last."""
    queue_id, subscription = reader(broker, expect)
    options = write_options([SubscriptionInfo(subscription)])
    return PushMessage(
        **{"queue_id": queue_id, "guid": guid(number), "data": body, "options": options, **fields}
    )


def push(broker: BlazingMQ, expect: Expect, *bodies: bytes, first: int = 1, **fields: Any) -> None:
    """Deliver messages by hand, in one event."""
    made = [push_message(broker, expect, body, first + n, **fields) for n, body in enumerate(bodies)]
    say(broker, expect, Push(tuple(made)))


def heartbeat(broker: BlazingMQ, expect: Expect) -> None:
    """Ask the client for a sign of life."""
    say(broker, expect, HeartbeatRequest())


# criteria


def as_texts(properties: Mapping[str, Any] | None) -> dict[str, Any]:
    """Properties as scripts write them, however an adapter writes numbers and truth values."""

    def text(value: Any) -> Any:
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value) if isinstance(value, int) else value

    return {name: {**each, "value": text(each["value"])} for name, each in (properties or {}).items()}


def bodies_are(
    expect: Expect,
    messages: Sequence[Message],
    wanted: Sequence[bytes],
    criterion: str,
    *,
    id: str,
    **more: Any,
) -> None:
    """The messages have these bodies, in this order."""
    fits = len(messages) == len(wanted)
    fits = fits and all(same_body(m.body, body) for m, body in zip(messages, wanted, strict=True))
    expect.that(fits, criterion, [m.body for m in messages][:6], id=id, **more)


def refused(
    expect: Expect, result: Result, category: int, criterion: str, kinds: Sequence[str] = (), *, id: str
) -> None:
    """The op was refused with that category; a kind without the category is non-strict."""
    expect.failed(result, ("refused", *kinds), criterion, id=id)
    codes = (category, Category(category).name) if category in set(Category) else (category, "E_FUTURE")
    if result.word == "refused":
        expect.tolerate(
            result.code in codes,
            f"{criterion}, with the category",
            result.code,
            id=slug("{}-with-the-category", id),
        )


def losses(client: Client, *, since: int = 0) -> list[Event]:
    """Events about a lost connection."""
    return [e for e in client.events[since:] if e.event == "session" and e["what"] == "connection_lost"]


def tellings(client: Client, *, since: int = 0) -> list[Event]:
    """How a client reports its losses: each by its first event, whichever word that has."""
    reported_by = [e for e in client.events[since:] if e.event == "session" and e["what"] in LOSS_WORDS]
    first = next((word for word in LOSS_WORDS if any(e["what"] == word for e in reported_by)), "")
    return [e for e in reported_by if e["what"] == first]


async def lost_within(client: Client, expect: Expect, seconds: float, criterion: str, *, id: str) -> None:
    """The client reports the loss of its connection."""
    found = await eventually(lambda: tellings(client), seconds)
    if not found:
        expect.lapse()
    expect.that(found, criterion, [str(e.fields) for e in client.events][-3:], id=id)


def reported(client: Client, *, since: int = 0) -> bool:
    """Whether an error event came."""
    return any(e.event == "error" for e in client.events[since:])


async def gone(broker: BlazingMQ, expect: Expect, criterion: str, *, within_s: float = 1.0, id: str) -> None:
    """The client holds none of its sockets any more."""
    for record in accepted(broker):
        limit_s = within_s * GRACE + GRACE_S
        await expect.socket_closed(broker, record.connection, criterion, within_s=limit_s, id=id)


async def still_works(
    broker: BlazingMQ, client: Client, expect: Expect, criterion: str, target: str = "q", *, id: str
) -> None:
    """The next post is acknowledged, perhaps after the client came back."""
    mark = broker.journal.last_seq
    result = await client.publish(target, b"the next one", timeout=10.0)
    expect.outcome(result, "acked", criterion, id=id)
    expect.that(
        acked_on_the_wire(broker, b"the next one", mark), criterion, "no such post, or no ACK of it", id=id
    )


async def survives(
    client: Client,
    expect: Expect,
    criterion: str = "the process survives it",
    *,
    id: str = "the-process-survives-it",
) -> None:
    """The process runs on, and answers."""
    state = await client.op("state", 5.0, session="s1")
    expect.ended(state, criterion, id=id)


def one_connection(broker: BlazingMQ, expect: Expect, criterion: str, *, id: str) -> None:
    """Nothing made the client leave."""
    expect.equal(len(accepted(broker)), 1, criterion, id=id)


def no_stderr(client: Client, expect: Expect, criterion: str, *, id: str) -> None:
    """No error of the client was left unhandled."""
    text = client.adapter.stderr().lower()
    found = [word for word in UNHANDLED if word in text]
    expect.that(not found, criterion, found, id=id)


def widest_gap_s(times: Sequence[float]) -> float:
    """The longest time between two moments."""
    return max((later - earlier for earlier, later in pairwise(times)), default=0.0)


def needs_json(broker: BlazingMQ, expect: Expect) -> None:
    """Only for clients that read control messages in JSON."""
    if "JSON" not in features(broker, expect):
        raise Unsupported("the client does not list JSON")
