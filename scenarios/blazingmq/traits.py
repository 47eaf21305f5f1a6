"""What the sweep has to know of BlazingMQ (docs/protocols/blazingmq.md, 1 to 9)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from conformance.decoders import Decoder
from conformance.decoders.blazingmq import BlazingDecoder
from conformance.run.facts import Facts
from conformance.run.traits import Args, Asks, Delivery, FaultMaterial, Questions, Reading, Settlement, Traits
from conformance.run.view import Conn
from fakebrokers.blazingmq.codec import HEADER_SIZE, BlazingCodec, event_bytes
from fakebrokers.blazingmq.codes import AckStatus, Category, ClientType, Encoding, EventType, QueueFlag
from fakebrokers.blazingmq.frames import (
    Ack,
    AckMessage,
    AdminCommandResponse,
    BrokerResponse,
    ClientIdentity,
    CloseQueue,
    CloseQueueResponse,
    ConfigureQueueStream,
    ConfigureQueueStreamResponse,
    ConfigureStream,
    ConfigureStreamResponse,
    ControlFrame,
    Disconnect,
    DisconnectResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    OpenQueue,
    OpenQueueResponse,
    OtherEvent,
    Push,
    PushMessage,
    Response,
    StatusResponse,
)
from fakebrokers.blazingmq.options import SubscriptionInfo, write_options
from fakebrokers.blazingmq.schema import (
    ConfigureQueueStreamRequest,
    ConfigureStreamRequest,
    HandleParameters,
    Identity,
    OpenQueueRequest,
    QueueStreamParameters,
    RoutingConfiguration,
    Status,
    StreamParameters,
)
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.session import Codec
from fakebrokers.errors import WireError
from scenarios.blazingmq.sweep.handles import options_of, uri_of
from scenarios.blazingmq.sweep.ordering import other_settings
from scenarios.blazingmq.sweep.spelling import spellings
from scenarios.blazingmq.sweep.tracking import Tracking

PUSH_HEAD = HEADER_SIZE + 32  #: bytes of a PUSH event in front of the options of its first message
NOBODY = 77  #: a number that no queue has
SHORTEST_MS = 500  #: a heartbeat interval below makes runs endless
MOST_WORDS = 99  #: of a header: what it says is written
CONFIGURE = (ConfigureStream, ConfigureQueueStream)

ANSWERS: Mapping[type[Frame], type[Frame]] = {
    ClientIdentity: BrokerResponse,
    OpenQueue: OpenQueueResponse,
    ConfigureStream: ConfigureStreamResponse,
    ConfigureQueueStream: ConfigureQueueStreamResponse,
    CloseQueue: CloseQueueResponse,
    Disconnect: DisconnectResponse,
}

QUESTIONS: Mapping[type[Frame], type[Frame]] = {HeartbeatRequest: HeartbeatResponse}


def _opens(args: Args, frame: Any) -> bool:
    if isinstance(frame, CONFIGURE):
        return _configures(args, frame)
    asked: HandleParameters = frame.handle_parameters
    wanted = tuple(int(word in args["flags"]) for word in ("read", "write"))
    flags = tuple(int(bool(asked.flags & flag)) for flag in (QueueFlag.READ, QueueFlag.WRITE))
    return uri_of(asked) == str(args["uri"]) and flags == (asked.read_count, asked.write_count) == wanted


def _configures(args: Args, frame: Any) -> bool:
    found = options_of(frame)
    given = args.get("options") or {}
    return found is not None and all(found[name] == int(value) for name, value in given.items())


def _closes(args: Args, frame: Any) -> bool:
    if isinstance(frame, CONFIGURE):
        return options_of(frame) is None
    return uri_of(frame.handle_parameters) == str(args["target"])


OPS = {
    "bmq.open_queue": Asks(
        (OpenQueue, *CONFIGURE),
        _opens,
        apt=lambda args, answer: "read" not in args["flags"] or isinstance(answer, StatusResponse),
        parts=lambda args: [(OpenQueue,), CONFIGURE] if "read" in args["flags"] else [(OpenQueue,)],
    ),
    "bmq.configure_queue": Asks(
        CONFIGURE, _configures, parts=lambda args: [CONFIGURE] if args.get("options") else []
    ),
    "bmq.close_queue": Asks(
        (CloseQueue, *CONFIGURE),
        _closes,
        apt=lambda args, answer: isinstance(answer, CloseQueueResponse | StatusResponse),
        parts=lambda args: [(CloseQueue,)],
    ),
}

_HANDLE = HandleParameters("bmq://bmq.test.mem.priority/nobody", NOBODY, None, 4, 0, 1)
SPECIMENS: Mapping[type[Frame], Frame] = {
    BrokerResponse: BrokerResponse(
        Status(Category.E_SUCCESS, 0), broker_identity=Identity(1, 999_999, ClientType.E_TCPBROKER)
    ),
    OpenQueueResponse: OpenQueueResponse(0, OpenQueueRequest(_HANDLE), RoutingConfiguration(2)),
    ConfigureQueueStreamResponse: ConfigureQueueStreamResponse(
        0, ConfigureQueueStreamRequest(NOBODY, QueueStreamParameters())
    ),
    ConfigureStreamResponse: ConfigureStreamResponse(0, ConfigureStreamRequest(NOBODY, StreamParameters())),
    StatusResponse: StatusResponse(0, Category.E_REFUSED, -1, "nobody asked"),
    DisconnectResponse: DisconnectResponse(0),
    CloseQueueResponse: CloseQueueResponse(0),
    AdminCommandResponse: AdminCommandResponse(0, "nothing"),
    OtherEvent: OtherEvent(9, b"abcd"),
}


def _guid(number: int) -> bytes:
    return (0x7 << 120 | number).to_bytes(16)


def _push(queue_id: int, *numbers: int) -> Push:
    options = write_options([SubscriptionInfo(1)])
    made = [PushMessage(queue_id, _guid(n), b"made up %d" % n, options=options) for n in numbers]
    return Push(tuple(made))


UNASKED: Mapping[str, Frame] = {
    "ACK for nobody": Ack((AckMessage(NOBODY, _guid(1), 0, 900), AckMessage(NOBODY, _guid(2), 1, 901))),
    "ACK of others": Ack((AckMessage(0, _guid(1), 0, 900_000), AckMessage(0, _guid(2), 1, 900_001))),
    "ACK without number": Ack((AckMessage(0, _guid(1), 0, 0),)),
    "PUSH for nobody": _push(NOBODY, 1),
    "PUSH beyond limits": _push(0, 2, 3),
    "status without number": StatusResponse(None, Category.E_REFUSED, -1, "for nobody"),
}

NOISE = {
    "unreadable control": event_bytes(EventType.CONTROL, [b"\x01\x02\x03\x01"]),
    "unreadable JSON": event_bytes(EventType.CONTROL, [b"{x}\x01"], Encoding.JSON << 5),
    "JSON of the future": event_bytes(
        EventType.CONTROL, [b'{"rId":30583,"future":{"a":1}}\x02\x02'], Encoding.JSON << 5
    ),
    "unknown encoding": event_bytes(EventType.CONTROL, [b"abc\x01"], 3 << 5),
    "unreadable PUSH": event_bytes(EventType.PUSH, [b"\xff" * 8]),
    "unreadable ACK": event_bytes(EventType.ACK, [b"\x00" * 4]),
    "impossible header": b"\x00\x00\x00\x04\x45\x02\x00\x00",
    "huge": b"\x7f\xff\xff\xff\x45\x02\x00\x00",
}


def _redeliver(broker: Any) -> None:
    for uri in broker.queues:
        broker.redeliver(uri)


HAPPENINGS = {"everything again": _redeliver}


class BlazingReading(Reading):
    """How its frames are read, and what they mean."""

    def codec(self, side: str) -> Codec:
        return BlazingCodec()

    def decoders(self, socket: str = "") -> tuple[Decoder, Decoder]:
        return BlazingDecoder(), BlazingDecoder()

    def is_garbage(self, frame: Malformed) -> bool:
        """What is wrong in an event is skipped with it; what is wrong with its length is not."""
        return frame.code in ("framing", "too-large")

    def know(self, conns: Mapping[str, Conn], ops: Sequence[Any], facts: Facts) -> None:
        facts.unordered += other_settings(facts, ops)

    def track(self, conn: Conn, facts: Facts, questions: Questions) -> None:
        Tracking(questions, conn, facts).run()

    def names(self, args: Args) -> tuple[str, str] | None:
        return (args["target"], args["uri"]) if "uri" in args else None

    def stored(self, broker: Any) -> dict[str, list[tuple[Any, bytes]]]:
        """Queues that no consumer reads: elsewhere messages are gone once they are confirmed."""
        return {
            uri: [(message.guid, message.payload) for message in broker.messages(uri)]
            for uri in broker.queues
            if uri.endswith("-kept")
        }


class BlazingQuestions(Questions):
    """Its questions, their answers, and the codes of these."""

    subscribe_asks = False
    ok, refusal = Category.E_SUCCESS, Category.E_REFUSED
    refusals = (
        Category.E_UNKNOWN, Category.E_TIMEOUT, Category.E_NOT_CONNECTED, Category.E_CANCELED,
        Category.E_INVALID_ARGUMENT, Category.E_NOT_READY,
    )  # fmt: skip
    answers = ANSWERS
    questions = QUESTIONS
    ops = OPS

    def is_answer(self, asked: Frame, frame: Frame) -> bool:
        """A status is the answer to any request that failed."""
        if isinstance(frame, StatusResponse):
            return not isinstance(asked, ClientIdentity)
        return super().is_answer(asked, frame)

    def target_of(self, frame: Frame) -> str | None:
        return uri_of(frame.handle_parameters) if isinstance(frame, OpenQueue) else None

    def accepts(self, frame: Any) -> bool:
        if isinstance(frame, StatusResponse):
            return False
        if isinstance(frame, Ack):
            return all(message.status == AckStatus.SUCCESS for message in frame.messages)
        return super().accepts(frame)

    def opposite(self, frame: Any, code: Any) -> Frame | None:
        if isinstance(frame, Ack):
            status = AckStatus.LIMIT_MESSAGES if code is None else abs(int(code))
            turned = [
                replace(each, status=status if each.status == AckStatus.SUCCESS else AckStatus.SUCCESS)
                for each in frame.messages
            ]
            return replace(frame, messages=tuple(turned))
        category = self.refusal if code is None else code
        if isinstance(frame, BrokerResponse):
            other = category if self.accepts(frame) else self.ok
            return replace(frame, result=Status(other, -1, "contrary"))
        if isinstance(frame, Response) and not isinstance(frame, StatusResponse):
            return StatusResponse(frame.r_id, category, -1, "contrary")
        return None

    def is_code(self, reported: Any, said: Any) -> bool:
        return reported == said or (said in AckStatus.__members__ and reported == AckStatus[said])


class BlazingDelivery(Delivery):
    """How its subscriptions get messages."""

    drains_on_close = True
    ending = closing = ("bmq.close_queue",)


class BlazingSettlement(Settlement):
    """Where the outcome of a message is reported."""

    def place(self, args: Args, key: Any) -> tuple[Hashable, ...]:
        return args["target"], "", key


class BlazingFaultMaterial(FaultMaterial):
    """What faults are made of here."""

    fixed = ("target", "ref", "how")
    specimens = SPECIMENS
    unasked = UNASKED
    noise = NOISE
    happenings = HAPPENINGS

    def is_bearable(self, frame: Frame) -> bool:
        if isinstance(frame, BrokerResponse):
            return not 0 < frame.heartbeat_interval_ms < SHORTEST_MS
        sizes = [each.header_words for each in frame.messages] if isinstance(frame, Push) else []
        if isinstance(frame, Ack):
            sizes.append(frame.item_words)
        return max(sizes, default=0) <= MOST_WORDS

    def said_by_server(self) -> Sequence[type[Frame]]:
        return [*dict.fromkeys(ANSWERS.values()), StatusResponse, AdminCommandResponse, OtherEvent,
                HeartbeatRequest, HeartbeatResponse]  # fmt: skip

    def payload_at(self, frame: Frame) -> int | None:
        if not isinstance(frame, Push) or not frame.messages:
            return None
        return PUSH_HEAD + len(frame.messages[0].options)

    def spellings(self, frame: Frame, data: Any) -> Mapping[str, Any]:
        return spellings(frame, bytes(data))

    def other_versions(self, data: bytes) -> dict[str, bytes]:
        """Other version bits; a longer header; a control message in the other encoding; longer answers."""
        found = {
            "bits": data[:4] + bytes((data[4] ^ 0xC0,)) + data[5:],
            "header": (len(data) + 4).to_bytes(4) + data[4:5] + b"\x03" + data[6:8] + bytes(4) + data[8:],
        }
        frame = BlazingCodec().decode(data)
        try:
            if isinstance(frame, ControlFrame):
                other = Encoding.BER if data[6] >> 5 == Encoding.JSON else Encoding.JSON
                found["encoding"] = BlazingCodec(other).encode(frame)
            elif isinstance(frame, Ack):
                found["items"] = BlazingCodec().encode(replace(frame, item_words=frame.item_words + 1))
        except WireError:
            pass  # what an earlier fault has left of it
        return found

    def close_frame(self) -> None:
        """A broker ends connections without a word."""


TRAITS = Traits(
    protocol="blazingmq",
    reading=BlazingReading(),
    questions=BlazingQuestions(),
    delivery=BlazingDelivery(),
    settlement=BlazingSettlement(),
    faults=BlazingFaultMaterial(),
)
