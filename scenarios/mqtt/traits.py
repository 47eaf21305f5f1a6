"""What the sweep has to know of MQTT (docs/protocols/mqtt.md, 2 and 3)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from conformance.run.facts import Facts
from conformance.run.traits import Args, Asks, FaultMaterial, Questions, Reading, Settlement, Traits
from conformance.run.traits import Delivery as DeliveryTraits
from conformance.run.view import Conn
from fakebrokers.core.frames import Frame
from fakebrokers.core.session import Codec
from fakebrokers.mqtt.codec import MqttCodec
from fakebrokers.mqtt.frames import (
    Connack,
    Connect,
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
)
from scenarios.mqtt.sweep.tracking import Session, Tracking, place

NOBODY = 0x7777  #: a packet id that nothing has
ANSWERS: Mapping[type[Frame], type[Frame]] = {
    Connect: Connack,
    Subscribe: Suback,
    Unsubscribe: Unsuback,
    Pingreq: Pingresp,
}
UNASKED: Mapping[str, Frame] = {
    "PUBACK of nothing": Puback(NOBODY),
    "PUBREC of nothing": Pubrec(NOBODY),
    "PUBREL of nothing": Pubrel(NOBODY),
    "PUBCOMP of nothing": Pubcomp(NOBODY),
    "SUBACK of nothing": Suback(NOBODY, (1,)),
    "UNSUBACK of nothing": Unsuback(NOBODY),
    "PINGRESP": Pingresp(),
    "a message for nobody": Publish("nobody/listens", b"strange", 1, NOBODY),
}
NOISE = {
    "type 15": b"\xf0\x00",
    "a length of five bytes": b"\x30\xff\xff\xff\xff\x01",
    "PUBLISH with QoS 3": b"\x36\x05\x00\x01a\x00\x01",
    "PUBLISH cut short": b"\x30\x03\x00\x09a",
    "PUBACK with id 0": b"\x40\x02\x00\x00",
    "a CONNECT from the server": b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00",
}


def _again(broker: Any) -> None:
    for client, connected in broker.clients.items():
        if connected:
            broker.redeliver(client)


HAPPENINGS: Mapping[str, Callable[[Any], None]] = {"all that waits comes again": _again}


class MqttReading(Reading):
    """How its frames are read, and what they mean."""

    def codec(self, side: str) -> Codec:
        return MqttCodec()

    def track(self, conn: Conn, facts: Facts, questions: Questions) -> None:
        """What a connection means depends on those before it: see `know`."""

    def know(self, conns: Mapping[str, Conn], ops: Sequence[Any], facts: Facts) -> None:
        sessions: dict[str, Session] = {}
        ended_s = max((done.begun.t for done in ops), default=0.0)
        for conn in conns.values():
            found = Tracking(conn, facts, TRAITS.questions, sessions)
            found.run()
            found.unanswered(ended_s)
        _end_what_failed(ops, facts)
        facts.sort()


def _end_what_failed(ops: Sequence[Any], facts: Facts) -> None:
    """A subscription of which the application has heard that it failed delivers nothing, whatever comes."""
    for done in ops:
        if done.op == "subscribe" and done.ended is not None and not done.result.ok:
            for window in facts.windows:
                if window.target == done.args["target"] and done.begun < window.asked < done.ended:
                    window.closed = min(window.closed or done.ended, done.ended)


class MqttQuestions(Questions):
    """Its questions, their answers, and the codes of these."""

    answers = ANSWERS
    ops: ClassVar[Mapping[str, Asks]] = {
        "subscribe": Asks(
            Subscribe,
            lambda args, frame: (
                frame.filters == ((args["target"], (args.get("options") or {}).get("qos", 1)),)
            ),
        )
    }
    refusals = (1, 2, 3, 4, 5, 6, 0x80)
    passing = (3,)

    def target_of(self, frame: Frame) -> str | None:
        return frame.filters[0][0] if isinstance(frame, Subscribe) else None

    def accepts(self, frame: Any) -> bool:
        if isinstance(frame, Suback):
            return frame.codes[:1] in ((0,), (1,), (2,))
        return super().accepts(frame)

    def opposite(self, frame: Any, code: Any) -> Frame | None:
        if isinstance(frame, Suback):
            other = 0x80 if self.accepts(frame) else 1
            return replace(frame, codes=tuple([other] * len(frame.codes)))
        if isinstance(frame, Connack) and code == 0x80:
            return None
        return super().opposite(frame, code)


class MqttDelivery(DeliveryTraits):
    """How its subscriptions get messages."""

    def properties_of(self, heard: Any) -> Any:
        return {name: heard["meta"].get(name) for name in ("topic", "retain")}

    def settings(self, options: Args) -> dict[str, Any]:
        return {"qos": options.get("qos", 1)}


class MqttSettlement(Settlement):
    """Where the outcome of a message is reported."""

    repeats = True
    outlives = True  # 4.4: until PUBACK or PUBCOMP, in a session that lasts

    def properties_given(self, args: Args) -> Any:
        return {"qos": args.get("qos", 1), "retain": args.get("retain", False)}

    def place(self, args: Args, key: Any) -> tuple[Hashable, ...]:
        return place(args["target"], key)


class MqttFaultMaterial(FaultMaterial):
    """What faults are made of here."""

    unasked = UNASKED
    noise = NOISE
    happenings = HAPPENINGS
    fixed = ("target",)
    not_made_up = (Publish,)

    def said_by_server(self) -> Sequence[type[Frame]]:
        return Connack, Puback, Pubrec, Pubrel, Pubcomp, Suback, Unsuback, Pingresp

    def payload_at(self, frame: Frame) -> int | None:
        if not isinstance(frame, Publish):
            return None
        return len(MqttCodec().encode(frame)) - len(frame.payload)


TRAITS = Traits(
    protocol="mqtt",
    reading=MqttReading(),
    questions=MqttQuestions(),
    delivery=MqttDelivery(),
    settlement=MqttSettlement(),
    faults=MqttFaultMaterial(),
)
