"""What the sweep has to know of RabbitMQ Stream (docs/protocols/rabbitmq-stream.md, 2 to 8)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from conformance.clients.adapter.kit.bodies import is_wanted
from conformance.decoders import Decoder
from conformance.decoders.rabbitmq_stream import StreamDecoder
from conformance.decoders.rabbitmq_stream.messages import CHUNK, publishing_ids, whole_entries
from conformance.run.facts import Facts
from conformance.run.traits import (
    AnyOrder,
    Args,
    Asks,
    Delivery,
    Entries,
    FaultMaterial,
    Questions,
    Reading,
    Settlement,
    Traits,
)
from conformance.run.view import Conn
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.session import Codec
from fakebrokers.rabbitmq_stream.binary import pack_ids
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import (
    FRAMES,
    Close,
    CloseResponse,
    ConsumerUpdate,
    ConsumerUpdateResponse,
    Create,
    CreateResponse,
    CreateSuperStream,
    CreateSuperStreamResponse,
    CreditResponse,
    DeclarePublisher,
    DeclarePublisherResponse,
    Delete,
    DeletePublisher,
    DeletePublisherResponse,
    DeleteResponse,
    DeleteSuperStream,
    DeleteSuperStreamResponse,
    Deliver,
    ExchangeCommandVersions,
    ExchangeCommandVersionsResponse,
    Heartbeat,
    Metadata,
    MetadataResponse,
    MetadataUpdate,
    Open,
    OpenResponse,
    Partitions,
    PartitionsResponse,
    PeerProperties,
    PeerPropertiesResponse,
    PublishConfirm,
    PublishError,
    QueryOffset,
    QueryOffsetResponse,
    QueryPublisherSequence,
    QueryPublisherSequenceResponse,
    Route,
    RouteResponse,
    SaslAuthenticate,
    SaslAuthenticateResponse,
    SaslHandshake,
    SaslHandshakeResponse,
    StreamFrame,
    StreamStats,
    StreamStatsResponse,
    Subscribe,
    SubscribeResponse,
    Unsubscribe,
    UnsubscribeResponse,
)
from scenarios.rabbitmq_stream.sweep.records import plain_content
from scenarios.rabbitmq_stream.sweep.tracking import PUBLISHER, Tracking, filter_of

SINGLE = "single-active-consumer"  #: the property of a subscription that makes it one
LARGEST = 64 << 20  #: bytes of a frame that a correct client lets in
DELIVER_HEAD = 9  #: bytes of a Deliver in front of its chunk
HEAD = 8  #: bytes of a frame up to its key and version
COMMITTED = 8  #: further ones in version 2
NOBODY = 77  #: an id that no publisher and no subscription has
LEFT_TO_BROKER = (MetadataUpdate, Close, Heartbeat)


def whereabouts(answer: MetadataResponse) -> dict[str, Any]:
    """What the op returns for an answer to Metadata."""
    nodes = {broker.reference: f"{broker.host}:{broker.port}" for broker in answer.brokers}
    streams = [
        {
            "name": entry.stream,
            "exists": entry.code == Code.OK,
            "code": entry.code,
            "leader": nodes.get(entry.leader),
            "replicas": AnyOrder(nodes.get(reference) for reference in entry.replicas),
        }
        for entry in answer.streams
    ]
    return {"streams": AnyOrder(streams)}


ANSWERS: Mapping[type[Frame], type[Frame]] = {
    PeerProperties: PeerPropertiesResponse,
    SaslHandshake: SaslHandshakeResponse,
    SaslAuthenticate: SaslAuthenticateResponse,
    Open: OpenResponse,
    ExchangeCommandVersions: ExchangeCommandVersionsResponse,
    Create: CreateResponse,
    Delete: DeleteResponse,
    Metadata: MetadataResponse,
    DeclarePublisher: DeclarePublisherResponse,
    DeletePublisher: DeletePublisherResponse,
    QueryPublisherSequence: QueryPublisherSequenceResponse,
    Subscribe: SubscribeResponse,
    Unsubscribe: UnsubscribeResponse,
    QueryOffset: QueryOffsetResponse,
    Partitions: PartitionsResponse,
    Route: RouteResponse,
    StreamStats: StreamStatsResponse,
    CreateSuperStream: CreateSuperStreamResponse,
    DeleteSuperStream: DeleteSuperStreamResponse,
    Close: CloseResponse,
}

QUESTIONS: Mapping[type[Frame], type[Frame]] = {ConsumerUpdate: ConsumerUpdateResponse, Close: CloseResponse}


#: The arguments of a stream: numbers are written in digits, and some clients choose a leader by themselves.
ARGUMENTS = Entries(
    lambda args: {name: str(value) for name, value in (args.get("arguments") or {}).items()},
    lambda frame: dict(frame.arguments or {}),
    own=frozenset({"queue-leader-locator"}),
)


def partitions(args: Args) -> dict[str, Any]:
    """What the creation of a super stream is given."""
    keys = tuple(args.get("keys") or map(str, range(args.get("partitions", 0))))
    names = tuple(f"{args['target']}-{key}" for key in keys)
    return {**ARGUMENTS.given(args), "partitions": names, "binding keys": keys}


SUPER_STREAM = Entries(
    partitions,
    lambda frame: {
        **ARGUMENTS.asked(frame), "partitions": frame.partitions, "binding keys": frame.binding_keys,
    },
    own=ARGUMENTS.own,
)  # fmt: skip


def numbers(answer: StreamStatsResponse) -> dict[str, Any]:
    """What the op returns for an answer to StreamStats."""
    found = {name: answer.stats.get(f"{name}_chunk_id", -1) for name in ("first", "committed")}
    return {name: None if value == -1 else value for name, value in found.items()}


OPS = {
    "rmqs.create": Asks(Create, lambda args, frame: frame.stream == args["target"], entries=ARGUMENTS),
    "rmqs.delete": Asks(Delete, lambda args, frame: frame.stream == args["target"]),
    "rmqs.create_super_stream": Asks(
        CreateSuperStream, lambda args, frame: frame.name == args["target"], entries=SUPER_STREAM
    ),
    "rmqs.delete_super_stream": Asks(DeleteSuperStream, lambda args, frame: frame.name == args["target"]),
    "rmqs.stream_stats": Asks(StreamStats, lambda args, frame: frame.stream == args["target"], numbers),
    "rmqs.metadata": Asks(
        Metadata,
        lambda args, frame: set(frame.streams) <= set(args["targets"]),  # some ask for one after the other
        whereabouts,
        apt=lambda args, answer: sorted(args["targets"]) == sorted(entry.stream for entry in answer.streams),
    ),
    "rmqs.query_offset": Asks(
        QueryOffset,
        lambda args, frame: (frame.stream, frame.reference) == (args["target"], args["name"]),
        lambda answer: {"offset": answer.offset},
    ),
    "rmqs.query_sequence": Asks(
        QueryPublisherSequence,
        lambda args, frame: (frame.stream, frame.reference) == (args["target"], args["name"]),
        lambda answer: {"sequence": answer.sequence},
    ),
    "rmqs.partitions": Asks(
        Partitions,
        lambda args, frame: frame.super_stream == args["target"],
        lambda answer: {"streams": list(answer.streams)},
    ),
    "rmqs.route": Asks(
        Route,
        lambda args, frame: (frame.super_stream, frame.routing_key) == (args["target"], args["key"]),
        lambda answer: {"streams": AnyOrder(answer.streams)},
    ),
}

SPECIMENS: Mapping[type[Frame], Frame] = {
    Deliver: Deliver(NOBODY, Chunk.build(b"\0\0\0\1z", entries=1, records=1, first_offset=0, timestamp_ms=1)),
}

UNASKED: Mapping[str, Frame] = {
    "confirm for nobody": PublishConfirm(NOBODY, pack_ids([1, 2, 3])),
    "confirm of others": PublishConfirm(1, pack_ids([900, 901])),
    "refusal for nobody": PublishError(NOBODY, ((1, Code.PUBLISHER_DOES_NOT_EXIST),)),
    "refusal of others": PublishError(1, ((900, Code.INTERNAL_ERROR),)),
    "credit refused": CreditResponse(Code.PRECONDITION_FAILED, 1),
    "Heartbeat": Heartbeat(),
}

NOISE = {
    "nothing": b"\0\0\0\0",
    "letters": b"\0\0\0\x05abcde",
    "short": b"\0\0\0\x02\0\x03",
    "unknown key": b"\0\0\0\x08\x7f\x01\0\1\0\0\0\1",
}


def _move(broker: Any, stream: str) -> None:
    if stream in broker.streams:
        broker.move_leader(stream, 1)


HAPPENINGS = {
    "leader moves": lambda broker: _move(broker, "S"),
    "another leader moves": lambda broker: _move(broker, "S2"),
}


class StreamReading(Reading):
    """How its frames are read, and what they mean."""

    size_field = 4

    def codec(self, side: str) -> Codec:
        if side == "client":
            return StreamCodec("client", LARGEST)
        return StreamCodec("server", 0)

    def decoders(self, socket: str = "") -> tuple[Decoder, Decoder]:
        return StreamDecoder("client", LARGEST), StreamDecoder("server")

    def is_garbage(self, frame: Malformed) -> bool:
        """An unknown frame is skipped by its size; one that is known and broken cannot be trusted."""
        return frame.code != "unknown" or len(frame.data) < HEAD

    def track(self, conn: Conn, facts: Facts, questions: Questions) -> None:
        Tracking(questions, conn, facts).run()

    def know(self, conns: Mapping[str, Conn], ops: Sequence[Any], facts: Facts) -> None:
        """A client may leave where the server does not offer the mechanism that was ordered."""
        options = [done.args.get("options") or {} for done in ops if done.op == "connect"]
        ordered = {one["mechanism"] for one in options if "mechanism" in one}
        for conn in conns.values() if ordered else ():
            for seen in conn.of("out"):
                if isinstance(seen.frame, SaslHandshakeResponse) and ordered - set(seen.frame.mechanisms):
                    conn.unwanted = conn.unwanted or seen.at

    def content(self, body: bytes, form: str) -> bytes:
        return plain_content(body) if form == "amqp" else body

    def stored(self, broker: Any) -> dict[str, list[tuple[Any, bytes]]]:
        streams = broker.call(lambda: dict(broker.broker.streams))
        return {
            name: [(message.offset, bytes(message.body)) for message in stream.messages()]
            for (_, name), stream in streams.items()  # no base has two of a name
        }


class StreamQuestions(Questions):
    """Its questions, their answers, and the codes of these."""

    creating = ("rmqs.create", "rmqs.create_super_stream")
    ok, refusal = Code.OK, Code.STREAM_DOES_NOT_EXIST
    refusals = (0, Code.STREAM_NOT_AVAILABLE, Code.ACCESS_REFUSED, Code.PRECONDITION_FAILED, 99, 0xFFFF)
    answers = ANSWERS
    questions = QUESTIONS
    ops = OPS

    def opposite(self, frame: Any, code: Any) -> Frame | None:
        if isinstance(frame, PublishConfirm):
            ids = publishing_ids(frame.publishing_ids)
            said = Code.INTERNAL_ERROR if code is None else code
            return PublishError(frame.publisher_id, tuple((one, said) for one in ids))
        if isinstance(frame, PublishError):
            return PublishConfirm(frame.publisher_id, pack_ids([one for one, _ in frame.errors]))
        if type(frame) in self.answers.values():
            return super().opposite(frame, code)
        return None

    def target_of(self, frame: Frame) -> str | None:
        return getattr(frame, "stream", None)

    def located(self, answer: Frame) -> Mapping[str, bool]:
        if not isinstance(answer, MetadataResponse):
            return {}
        return {entry.stream: entry.code == Code.OK for entry in answer.streams}


class StreamDelivery(Delivery):
    """How its subscriptions get messages."""

    is_log = True
    crediting = ("rmqs.credit",)
    ending = ("rmqs.delete_publisher",)
    storing = ("rmqs.store_offset",)

    def start_of(self, options: Args) -> Any:
        return options.get("offset")

    def first_position(self, start: Any) -> int | None:
        found: int | None = start["value"] if start["type"] == "offset" else None
        return found

    def stores(self, args: Args) -> tuple[str, str, Any]:
        return args["target"], args["name"], args["offset"]

    def tracked(self, options: Args) -> str | None:
        is_tracked = (options.get("tracking") or {}).get("by") == "library"
        return options.get("name") if is_tracked else None

    def settings(self, options: Args) -> dict[str, Any]:
        properties = dict(options.get("properties") or {})
        if options.get("name") is not None:
            properties["name"] = options["name"]
        given = options.get("filter") or {}
        values = [*given.get("values", ()), *filter_of(properties)["values"]]
        wanted = {"values": sorted(values), "unfiltered": bool(given.get("unfiltered"))}
        return {"properties": properties, "credit": options.get("credit", 10), "filter": wanted}

    def spreads(self, args: Args) -> bool:
        return "routing" in args or bool((args.get("options") or {}).get("super_stream"))

    def leads(self, case: Any, args: Args) -> set[Any]:
        """A message goes to each partition that is bound with its key (document, 9)."""
        routing = args.get("routing") or {}
        asked = (args["target"], routing.get("key"))
        if routing.get("by") != "key":
            return set()
        routes = [one for one in case.facts.questions if isinstance(one.frame, Route) and one.accepted]
        said = [
            set(one.answer.streams)
            for one in routes
            if (one.frame.super_stream, one.frame.routing_key) == asked
        ]
        return set.intersection(*said) if said else set()

    def wants(self, args: Args, body: bytes) -> bool:
        wanted = (args.get("options") or {}).get("filter")
        return wanted is None or is_wanted(body, wanted)

    def holds(self, name: str, asked: Any, ordered: Any) -> bool:
        """The name of a consumer is needed for a single active one only (document, Subscribe), which nobody
        is by himself; a client may filter without the server."""
        if name == "filter":
            return not asked["values"] or bool(asked == ordered)
        if name == "properties" and SINGLE in asked and SINGLE not in ordered:
            return False
        if name == "properties" and SINGLE not in ordered:
            ordered = {key: value for key, value in ordered.items() if key != "name" or key in asked}
        return super().holds(name, asked, ordered)


class StreamSettlement(Settlement):
    """Where the outcome of a message is reported."""

    dropping = ("rmqs.delete_publisher",)
    rises = True
    producers = (PUBLISHER,)

    def place(self, args: Args, key: Any) -> tuple[Hashable, ...]:
        return args["target"], args.get("name") or "", int(key)


class StreamFaultMaterial(FaultMaterial):
    """What faults are made of here."""

    specimens = SPECIMENS
    unasked = UNASKED
    noise = NOISE
    happenings = HAPPENINGS

    def said_by_server(self) -> Sequence[type[Frame]]:
        return [
            kind
            for kind in FRAMES
            if issubclass(kind, StreamFrame)
            and kind.SENDER in ("server", "both")
            and kind not in LEFT_TO_BROKER
        ]

    def payload_at(self, frame: Frame) -> int | None:
        if not isinstance(frame, Deliver):
            return None
        return DELIVER_HEAD + (COMMITTED if frame.version == 2 else 0) + CHUNK

    def borders(self, frame: Frame, data: Any) -> Sequence[int]:
        start = self.payload_at(frame)
        if start is None or not isinstance(frame, Deliver):
            return ()
        return [start + entry.start for entry in whole_entries(frame.chunk.data)][1:]

    def other_versions(self, data: bytes) -> dict[str, bytes]:
        """Versions 1 and 6 above its own, in its shape and with four bytes more; the key of its question."""
        found = {}
        key = int.from_bytes(data[4:6]) ^ 0x8000
        found["other direction"] = data[:4] + key.to_bytes(2) + data[6:]
        for name, step in (("next", 1), ("far", 6)):
            head = data[4:6] + (int.from_bytes(data[6:8]) + step).to_bytes(2)
            for shape, inserted in (("", b""), (" moved", b"\0\0\0\7")):
                body = head + inserted + data[8:]
                found[name + shape] = len(body).to_bytes(4) + body
        return found

    def close_frame(self) -> Frame:
        return Close(99, Code.OK, "bye")


TRAITS = Traits(
    protocol="rabbitmq-stream",
    reading=StreamReading(),
    questions=StreamQuestions(),
    delivery=StreamDelivery(),
    settlement=StreamSettlement(),
    faults=StreamFaultMaterial(),
)
