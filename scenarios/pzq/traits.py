"""What the sweep has to know of PZQ (docs/protocols/pzq.md, "Producer" and "Consumer")."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from conformance.clients.adapter.kit.bodies import key_bytes
from conformance.run.facts import Facts
from conformance.run.reported import joined
from conformance.run.traits import (
    Args,
    Asks,
    Connecting,
    FaultMaterial,
    OneOf,
    Questions,
    Reading,
    Settlement,
    Traits,
    Whole,
)
from conformance.run.traits import Delivery as DeliveryTraits
from conformance.run.view import Conn
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.session import Codec
from fakebrokers.pzq.codec import (
    ConsumerCodec,
    InquirerCodec,
    MonitorCodec,
    ProducerCodec,
    PzqCodec,
    ReceiveCodec,
    SendCodec,
)
from fakebrokers.pzq.frames import Delivery, MonitorReply, MonitorRequest, ProduceAck, ProduceNack
from fakebrokers.pzq.pieces import borders, pieces
from scenarios.pzq.sweep.tracking import QUEUE, place, tell_instances_apart, tell_sessions_apart, track

#: The decoders at both ends of each of the fake's sockets.
CODECS: Mapping[tuple[str, str], type[PzqCodec]] = {
    ("client", "receive"): ProducerCodec,
    ("client", "send"): ConsumerCodec,
    ("client", "monitor"): InquirerCodec,
    ("server", "receive"): ReceiveCodec,
    ("server", "send"): SendCodec,
    ("server", "monitor"): MonitorCodec,
}
ANSWERS: Mapping[type[Frame], type[Frame]] = {MonitorRequest: MonitorReply}
SAID = (ProduceAck, ProduceNack, Delivery, MonitorReply)


def _values(answer: MonitorReply, separator: str) -> Whole:
    found: dict[str, Any] = {}
    for line in answer.text.decode(errors="replace").split("\n"):
        name, there, value = line.partition(separator)
        name, value = name.strip(), value.strip()
        if name and there:
            found[name] = int(value) if value.isascii() and value.isdigit() and len(value) <= 40 else value
    return Whole(found)


def values(answer: MonitorReply) -> dict[str, Any]:
    """What a reply of the monitor says: lines ``key: value``.

    The daemon writes a blank after each colon; a line without one may be read or passed over.
    """
    return {"values": OneOf((_values(answer, ": "), _values(answer, ":")))}


OPS = {
    "pzq.monitor": Asks(
        MonitorRequest,
        lambda args, frame: frame.command == b"MONITOR" and not any(frame.envelope),
        values,
        apt=lambda args, answer: not answer.extra and bool(_values(answer, ": ")),
    )
}

UNASKED: Mapping[str, Frame] = {
    "confirm for nobody": ProduceAck(b"nobody"),
    "refusal for nobody": ProduceNack(b"nobody", texts=(b"disk full",)),
    "a message of another": Delivery(b"7|seven", 1_800_000_000_000_000, 5_000_000, body=(b"strange",)),
    "a message of long ago": Delivery(b"8|eight", 1, 5_000_000, body=(b"stale",)),
    "other counters": MonitorReply(b"messages: x\n\nnew_key: 7: 8\nno colon"),
}
LINES = {
    "other counters": b"messages: 1\nnew_key: 7: 8\nno colon\n\nmessages_inflight:0",
    "long counters": b"messages: " + b"9" * 5000,
    "no counters": b"messages: -3\nload: 1.5\nversion: v12\nnew_key: 1_000",
}
NOISE = {
    "one empty part": (b"",),
    "one part": (b"x",),
    "two empty parts": (b"", b""),
    "a head only": (b"k", b"1", b"2"),
    "no number": (b"k", b"soon", b"later", b"", b"body without times"),
    "many digits": (b"k", b"9" * 5000, b"9" * 5000, b"", b"body with long times"),
}
HAPPENINGS: Mapping[str, Callable[[Any], None]] = {"all deliveries expire": lambda broker: broker.expire()}


class PzqReading(Reading):
    """How its frames are read, and what they mean."""

    def codec(self, side: str) -> Codec:
        return ProducerCodec() if side == "client" else ReceiveCodec()

    def codec_at(self, side: str, socket: str) -> Codec:
        return CODECS[side, socket]()

    def is_odd(self, frame: Frame) -> bool:
        """The daemon's monitor says ``key: value`` in each line (docs/protocols/pzq.md, "Monitor")."""
        lines = frame.text.removesuffix(b"\n").split(b"\n") if isinstance(frame, MonitorReply) else ()
        return super().is_odd(frame) or not all(b": " in line for line in lines)

    def is_garbage(self, frame: Malformed) -> bool:
        """Messages have borders of their own: one that cannot be read is no trouble to the next."""
        return False

    def track(self, conn: Conn, facts: Facts, questions: Questions) -> None:
        track(conn, facts)

    def know(self, conns: Mapping[str, Conn], ops: Sequence[Any], facts: Facts) -> None:
        tell_sessions_apart(ops, facts)
        tell_instances_apart(facts)

    def stored(self, broker: Any) -> dict[str, list[tuple[Any, bytes]]]:
        return {QUEUE: [(message.key, joined(message.body)) for message in broker.messages()]}


class PzqQuestions(Questions):
    """Its questions, their answers, and the codes of these."""

    answers = ANSWERS
    ops = OPS
    ok, refusal = b"1", b"0"
    refusals = (b"", b"01", b"OK", b"\xff", b"2")
    subscribe_asks = False

    def accepts(self, frame: Any) -> bool:
        return not isinstance(frame, ProduceNack)

    def opposite(self, frame: Any, code: Any) -> Frame | None:
        if isinstance(frame, ProduceAck):
            return ProduceNack(frame.id, self.refusal if code is None else code, texts=(b"disk full",))
        if isinstance(frame, ProduceNack):
            return ProduceAck(frame.id)
        return None


class PzqDelivery(DeliveryTraits):
    """How its consumers get messages."""

    def subscriptions(self, case: Any, args: Args) -> int:
        """A consumer is connected to every instance whose address it was given."""
        given = [
            one.args["endpoints"] for one in case.done("connect") if one.args["session"] == args["session"]
        ]
        instances = given[-1]["send"] if given else ""
        return 1 if isinstance(instances, str) else len(instances)


class PzqSettlement(Settlement):
    """Where the outcome of a message is reported."""

    repeats = True
    redelivers = True

    def place(self, args: Args, key: Any) -> tuple[Hashable, ...]:
        id = key_bytes(key) or b"" if isinstance(key, str | Mapping) else b""
        return place(id, args["session"])


class PzqFaultMaterial(FaultMaterial):
    """What faults are made of here."""

    unasked = UNASKED
    noise = NOISE
    happenings = HAPPENINGS
    other_parts = LINES
    fixed = ("target",)

    def said_by_server(self) -> Sequence[type[Frame]]:
        return SAID

    def borders(self, frame: Frame, data: Any) -> Sequence[int]:
        return borders(data) if isinstance(data, tuple) else ()

    def pieces(self, data: Any, points: Iterable[int]) -> list[Any]:
        return list(pieces(data, points)) if isinstance(data, tuple) else super().pieces(data, points)


TRAITS = Traits(
    protocol="pzq",
    reading=PzqReading(),
    questions=PzqQuestions(),
    delivery=PzqDelivery(),
    settlement=PzqSettlement(),
    connecting=Connecting(
        unseen_connections=True,
    ),
    faults=PzqFaultMaterial(),
)
