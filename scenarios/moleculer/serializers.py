"""Serializers with a schema: what a packet is when each of its members has a place and a type."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

from msgspec import UNSET

from conformance.clients.adapter.messages import body_bytes
from conformance.suite import Client, Expect, scenario
from fakebrokers import Moleculer
from fakebrokers.journal import Tap
from fakebrokers.moleculer.calls import RemoteError
from fakebrokers.moleculer.node import Node
from fakebrokers.moleculer.packets import Event, Info, Request
from fakebrokers.moleculer.serialization import serializer_of
from fakebrokers.moleculer.services import Context, MoleculerError, Service, Stream
from scenarios.moleculer._steps import (
    BEAT_MOST_S,
    BOTH_WAYS,
    CALLER,
    NODE,
    SERVICE,
    a_listener,
    a_service,
    ask,
    asked,
    begin_call,
    call,
    echo,
    heard,
    is_answered,
    joined,
    limit,
    met,
    peer,
    respond,
    settled,
    until,
    wall_ms,
    withheld,
)
from scenarios.moleculer._streams import is_stream, kibibytes
from scenarios.moleculer._wire import came, mark, packets, services_in

PROTOBUF, AVRO, THRIFT = ({"serializer": name} for name in ("ProtoBuf", "Avro", "Thrift"))
RARELY: dict[str, Any] = {"transporter": "tcp", "gossip_s": 30.0}  #: so that the client has to ask
GOSSIP_S = 12.0  #: some rounds of a client that has one in two seconds

NOTHING: tuple[Any, ...] = (None, "")  #: ProtoBuf has no null

PARAMS: dict[str, Any] = {
    "text": "Grüße, 世界 🎉",
    "none": None,
    "list": [],
    "deep": {"a": [1, -2.5, {"b": True}]},
    "large": 2**53,
}
DATA: tuple[Any, ...] = (PARAMS, "text", "", 0, False, [], None)
META = {"user": {"id": 7, "name": "Ünal"}, "none": None}
ERROR: dict[str, Any] = {"message": "bäd thing", "code": 422, "type": "BAD", "data": {"f": [1, None]}}


CHUNKS = kibibytes(5)
BODY = {"b64": base64.b64encode(b"".join(CHUNKS)).decode()}


def fail(ctx: Context) -> Any:
    """An action that fails with all that an error has."""
    raise MoleculerError(ERROR["message"], 422, "BAD", ERROR["data"], name="MoleculerClientError")


def all_in_it(broker: Moleculer, expect: Expect, nodes: Iterable[Node]) -> None:
    """All that the client has published are packets of the fake's serializer, and the peers can read them."""
    frames: list[Any] = [each.frame for each in broker.journal.select(kind="Pub", tap=Tap.RECEIVED)]
    wanted = broker.bus_options.serializer
    found = {serializer_of(frame.payload).name for frame in frames}
    expect.equal(
        found, {wanted}, "each packet is one of the serializer", id="each-packet-is-one-of-the-serializer"
    )
    broken = [each for node in nodes for each in node.broken]
    expect.that(not broken, "the peers can read each packet", broken[:1], id="the-peers-can-read-each-packet")


def is_info(found: Info) -> bool:
    """Whether an INFO has everything, each of its own type."""
    texts = [found.hostname, found.instanceID, *(found.ipList or [None]), *dict(found.client).values()]
    maps = [found.config, found.metadata, *found.services]
    return (
        all(isinstance(each, str) and each for each in texts)
        and all(isinstance(each, dict) for each in maps)
        and sorted(found.client) == ["langVersion", "type", "version"]
        and isinstance(found.seq, int)
        and found.seq >= 1
    )


@scenario(
    "MOL-1.16",
    "SHOULD",
    "medium",
    basis=["M2", "M3", "M7", "M9"],
    variants=("thrift",),
    roles=SERVICE,
    server=THRIFT,
)
@scenario("MOL-1.16", variants=("avro",), roles=SERVICE, server=AVRO)
@scenario("MOL-1.16", variants=("protobuf",), roles=SERVICE, server=PROTOBUF)
async def life_with_a_schema(broker: Moleculer, client: Client, expect: Expect) -> None:
    """INFO, HEARTBEAT and PING in a serializer with a schema.

    Fault: ProtoBuf, Avro or Thrift on all nodes; the client serves; a peer sends PING on MOL.PING.<client>
    and on MOL.PING
    Pass: Each packet of the client is one of this serializer, and the peer can read it: DISCOVER; INFO with
    services, config and metadata as JSON in texts, ipList as texts, client as a record of three texts, seq
    and instanceID; HEARTBEAT with cpu as a double; PONG with the same id and time, to the millisecond. The
    client takes the peer's INFO: its action can be called
    Seen: measured: moleculer 0.14.36 (0.15 has none of the three), recordings of each packet
    """
    node = peer(broker, services={"p": {"echo": echo}})
    await joined(broker, client, heartbeat_s=1, offers=[a_service({"echo": "echo"})])
    infos = await came(broker, "Info", within_s=limit(4.0), where=lambda p: services_in(p) == ["s"])
    expect.that(infos, "an INFO names the service", "none", id="an-info-tells-of-the-service")
    info: Any = infos[-1][1]
    expect.that(is_info(info), "INFO has all of its members", info, id="info-has-all-of-its-members")
    await met(broker, node, "s.echo")
    beats: Any = await came(broker, "Heartbeat", within_s=limit(client.heartbeat_s(1, BEAT_MOST_S) + 0.5))
    expect.that(beats, "a HEARTBEAT comes", "none", id="a-heartbeat-comes")
    cpu = beats[0][1].cpu
    expect.that(isinstance(cpu, int | float) and cpu >= 0, "cpu is a number", cpu, id="cpu-is-a-number")
    for target in (NODE, ""):
        since, sent = mark(broker), wall_ms(node)
        node.send("PING", target, time=sent, id=f"ping-{target}")
        pongs: Any = await came(broker, "Pong", since=since)
        expect.equal(
            [(pong.id, pong.time) for _, pong in pongs],
            [(f"ping-{target}", sent)],
            "a PING gets one PONG, with its id and time",
            id="a-ping-gets-one-pong-with-its-id-and-time",
        )
        near = abs(pongs[0][1].arrived - wall_ms(node)) < 5000
        expect.that(
            near, "arrived is near the wall clock", pongs[0][1].arrived, id="arrived-is-near-the-wall-clock"
        )
    if client.has_role("caller"):
        await is_answered(
            client,
            expect,
            "the peer's action can be called",
            "p.echo",
            {"n": 1},
            id="the-peer-s-action-can-be-called",
        )
    all_in_it(broker, expect, [node])


@scenario(
    "MOL-1.17",
    "SHOULD",
    "low",
    basis=["M2", "M9"],
    variants=("thrift",),
    roles=CALLER,
    server={**RARELY, **THRIFT},
)
@scenario("MOL-1.17", variants=("avro",), roles=CALLER, server={**RARELY, **AVRO})
@scenario("MOL-1.17", variants=("protobuf",), roles=CALLER, server={**RARELY, **PROTOBUF})
async def gossip_with_a_schema(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Gossip in a serializer with a schema.

    Fault: TCP transporter with ProtoBuf, Avro or Thrift on all nodes; three peers whose addresses the client
    has, and which do not gossip by themselves
    Pass: The client finds each of them: a call to each is answered. `online` and `offline` of each gossip
    packet are maps, as JSON in a text, or nothing, in what goes to a node that is offline, too
    Seen: measured: moleculer 0.14.36 writes `online` of the second packet of a round as a text in a text;
    moleculer transporters/tcp.js, serializers/base.js (source): a node that reads it answers as if the sender
    knew nobody
    """
    nodes = [peer(broker, name, {name: {"echo": echo}}) for name in ("p", "q", "r")]
    await joined(broker, client)
    gossip = ("GossipRequest", "GossipResponse")

    def reported() -> list[Any]:
        return [packet for kind in gossip for packet in packets(broker, kind)]

    def found_by_client() -> bool:
        return all(NODE in node.peers and node.peers[NODE].available for node in nodes)

    await until(found_by_client, GOSSIP_S)
    for node in nodes:
        await settled(node)
        await is_answered(
            client,
            expect,
            "a call to each peer is answered",
            f"{node.id}.echo",
            {"n": 1},
            id="a-call-to-each-peer-is-answered",
        )
    maps = [each for packet in reported() for each in (packet.online, packet.offline) if each is not UNSET]
    expect.exercised(maps, "the client does not gossip", id="the-client-does-not-gossip")
    wrong = [each for each in maps if not isinstance(each, dict)]
    expect.that(not wrong, "online and offline are maps", wrong[:1], id="online-and-offline-are-maps")


@scenario(
    "MOL-3.28",
    "SHOULD",
    "medium",
    basis=["M5", "M9", "M10"],
    variants=("thrift",),
    roles=BOTH_WAYS,
    server=THRIFT,
)
@scenario("MOL-3.28", variants=("avro",), roles=BOTH_WAYS, server=AVRO)
@scenario("MOL-3.28", variants=("protobuf",), roles=BOTH_WAYS, server=PROTOBUF)
async def calls_with_a_schema(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Call in a serializer with a schema.

    Fault: ProtoBuf, Avro or Thrift on all nodes, both ways: params that are an object with Unicode, nested
    nothing, an empty list and numbers; then answers with data that are an object, a text, an empty text, 0,
    false, an empty list and null; then an action that fails with message, code, type and data
    Pass: Each packet of the client is one of this serializer. REQUEST: params and meta equal, timeout that of
    the call, level 1, parentID and caller nothing. Result and meta equal, whatever the data are. The failed
    call ends with message, code and type of the error; the client's own error arrives with these and its
    data, as one JSON text. Not demanded, as the schema has no place for it: headers, null apart from nothing
    Seen: moleculer serializers/base.js (source): params and data are bytes, with paramsType and dataType;
    measured: moleculer 0.14.36
    """
    node = peer(broker, services={"p": {"wait": withheld, "fail": fail}})
    await joined(broker, client, offers=[a_service({"echo": "echo", "fail": {"throw": ERROR}})])
    for number, data in enumerate(DATA):
        pending = begin_call(client, "p.wait", PARAMS, 4.0, meta=META)
        (found,) = await asked(node, skip=number)
        check_request(expect, found)
        respond(node, found, data=data, meta={**META, "number": number})
        value = expect.ok(await pending, "the call is answered", id="the-call-is-answered")
        expect.equal(value["data"], data, "the result equals data", id="the-result-equals-data")
        expect.equal(
            value["meta"], {**META, "number": number}, "with the answer's meta", id="with-the-answer-s-meta"
        )
    result = await call(client, "p.fail")
    expect.failed(
        result, ("refused",), "a call fails with the code of the error", code=422,
        id="a-call-fails-with-the-code-of-the-error",
    )  # fmt: skip
    shown = "" if result.error is None else result.error.text
    expect.that(ERROR["message"] in shown, "and with its message", shown, id="and-with-its-message")
    await met(broker, node, "s.echo", "s.fail")
    for data in (PARAMS, "text", 0, False, []):
        served = await ask(node, "s.echo", data)
        expect.equal(served, data, "what is served is equal", id="what-is-served-is-equal")
    error = await ask(node, "s.fail", {})
    expect.that(
        isinstance(error, RemoteError),
        "an action's error is reported",
        error,
        id="an-action-s-error-is-reported",
    )
    reported = {name: error.error.get(name) for name in ERROR}
    expect.equal(reported, ERROR, "with message, code, type and data", id="with-message-code-type-and-data")
    all_in_it(broker, expect, [node])


def check_request(expect: Expect, found: Request) -> None:
    """Demand what the REQUEST of the root call with a time-out of 4 s has to hold."""
    expect.equal(found.params, PARAMS, "params are equal", id="params-are-equal")
    expect.equal(found.meta, META, "meta is equal", id="meta-is-equal")
    expect.equal(
        (found.timeout, found.level),
        (4000, 1),
        "timeout is in ms, and level 1",
        id="timeout-is-in-ms-and-level-n",
    )
    expect.that(
        found.parentID in NOTHING and found.caller in NOTHING,
        "parentID and caller are nothing",
        (found.parentID, found.caller),
        id="parentid-and-caller-are-nothing",
    )


@scenario(
    "MOL-4.24",
    "SHOULD",
    "medium",
    basis=["M6", "M9"],
    variants=("thrift",),
    roles=("emitter", "listener"),
    server=THRIFT,
)
@scenario("MOL-4.24", variants=("avro",), roles=("emitter", "listener"), server=AVRO)
@scenario("MOL-4.24", variants=("protobuf",), roles=("emitter", "listener"), server=PROTOBUF)
async def events_with_a_schema(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Event in a serializer with a schema.

    Fault: ProtoBuf, Avro or Thrift on all nodes: the client emits and broadcasts an event with Unicode,
    nested nothing and an empty list in its data; then EVENTs without `groups` to a listener of the client,
    with data that are an object, a text, an empty text, 0, false and an empty list
    Pass: Each packet of the client is one of this serializer. EVENT: event, data and meta equal, level 1,
    broadcast as it was sent, groups those of the peer, which a broadcast may leave empty or out. The listener
    gets each EVENT once, with equal data: no groups are all groups. Not demanded, as the schema has no place
    for it: headers
    Seen: measured: moleculer 0.14.36
    """
    node = peer(broker, services=[Service("shop", events={"shop.*": lambda ctx: None})])
    await joined(broker, client, offers=[a_listener("news", "news")])
    for number, (op, is_broadcast) in enumerate((("mol.emit", False), ("mol.broadcast", True))):
        expect.ok(
            await client.op(op, 3.0, session="s1", event="shop.open", data=PARAMS),
            "an event is sent",
            id="an-event-is-sent",
        )
        found = await heard(node, Event, skip=number)
        expect.equal(len(found), 1, "one EVENT comes", id="one-event-comes")
        event = found[0]
        expect.equal(
            (event.event, event.data, event.broadcast, event.meta, event.level),
            ("shop.open", PARAMS, is_broadcast, {}, 1),
            "with event, data, broadcast, meta and level",
            id="with-event-data-broadcast-meta-and-level",
        )
        groups = ([], ["shop"]) if is_broadcast else (["shop"],)
        expect.that(
            (event.groups or []) in groups,
            "with the groups that it is for",
            event.groups,
            id="with-the-groups-that-it-is-for",
        )
    sent = [PARAMS, "text", "", 0, False, []]
    for number, data in enumerate(sent):
        node.send(
            "EVENT", NODE, id=f"event-{number}", event="news", data=data, broadcast=True, meta=META, level=1
        )
    await client.wait_messages(len(sent), "news", 2.0)
    await settled(node)
    came_in = [json.loads(body_bytes(each.body)) for each in client.messages("news")]
    expect.equal(came_in, sent, "each listener gets equal data", id="each-listener-gets-equal-data")
    all_in_it(broker, expect, [node])


def bytes_of(ctx: Context) -> Any:
    """An action that says of what bytes an upload was."""
    return None if ctx.stream is None else base64.b64encode(b"".join(ctx.stream.chunks)).decode()


@scenario(
    "MOL-4.25",
    "SHOULD",
    "medium",
    basis=["M9", "M13"],
    needs=["streams"],
    variants=("thrift",),
    roles=BOTH_WAYS,
    server=THRIFT,
)
@scenario("MOL-4.25", variants=("avro",), roles=BOTH_WAYS, server=AVRO)
@scenario("MOL-4.25", variants=("protobuf",), roles=BOTH_WAYS, server=PROTOBUF)
async def streams_with_a_schema(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Stream in a serializer with a schema.

    Fault: ProtoBuf, Avro or Thrift on all nodes: the client uploads 5 KiB in chunks of 1 KiB and takes a
    download of as much, then a peer does both with actions of the client
    Pass: The bytes are equal each time, whichever they are; seq is without a gap. Each chunk is raw bytes,
    with 3 as its type. Non-strict: a chunk as the object that is used for bytes in JSON
    Seen: moleculer serializers/base.js (source): DATATYPE_BUFFER; measured: moleculer 0.14.36
    """
    node = peer(broker, services={"p": {"up": bytes_of, "down": lambda ctx: Stream(CHUNKS)}})
    await joined(
        broker,
        client,
        offers=[a_service({"read": {"read_stream": True}, "source": {"stream": BODY, "chunk": 1024}})],
    )
    sent = await is_answered(
        client, expect, "an upload is answered", "p.up", stream=BODY, chunk=1024, id="an-upload-is-answered"
    )
    expect.equal(sent, BODY["b64"], "the peer gets equal bytes", id="the-peer-gets-equal-bytes")
    taken = await is_answered(client, expect, "a download is answered", "p.down", id="a-download-is-answered")
    expect.that(
        is_stream(taken, CHUNKS), "the caller gets equal bytes", taken, id="the-caller-gets-equal-bytes"
    )
    await met(broker, node, "s.read", "s.source")
    read = await ask(node, "s.read", stream=Stream(CHUNKS))
    expect.that(
        is_stream(read, CHUNKS), "the action reads equal bytes", read, id="the-action-reads-equal-bytes"
    )
    found = await ask(node, "s.source")
    whole = b"".join(found.chunks) if isinstance(found, Stream) else found
    expect.equal(whole, b"".join(CHUNKS), "the action's bytes are equal", id="the-action-s-bytes-are-equal")
    uploaded = [each for each in packets(broker, "Request") if each.stream is True or each.seq]
    downloaded = [each for each in packets(broker, "Response") if each.stream is True]
    numbers = [each.seq for each in uploaded]
    expect.equal(numbers, list(range(len(numbers))), "seq is without a gap", id="seq-is-without-a-gap")
    chunks = [each.params for each in uploaded if each.seq and each.stream]
    chunks += [each.data for each in downloaded if each.seq]
    raw = [each for each in chunks if isinstance(each, bytes)]
    expect.tolerate(
        len(raw) == len(chunks),
        "each chunk is raw bytes",
        f"{len(raw)} of {len(chunks)}",
        id="each-chunk-is-raw-bytes",
    )
    all_in_it(broker, expect, [node])
