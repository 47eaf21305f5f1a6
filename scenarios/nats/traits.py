"""What the sweep has to know of NATS (docs/protocols/nats.md, 2 and 3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from conformance.clients.adapter.kit import report_body
from conformance.clients.adapter.messages import body_bytes
from conformance.decoders import Decoder
from conformance.decoders.nats import CRLF, GARBAGE, NatsDecoder
from conformance.run.facts import Facts
from conformance.run.traits import (
    Args,
    Asks,
    Connecting,
    Delivery,
    FaultMaterial,
    Questions,
    Reading,
    Settlement,
    Traits,
)
from conformance.run.view import Conn
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.session import Codec
from fakebrokers.nats import frames as f
from fakebrokers.nats.codec import NatsCodec
from scenarios.nats.sweep.tracking import NO_RESPONDERS, Tracking, status

INFO = {"server_id": "N", "version": "2.9.10", "proto": 1, "headers": True, "max_payload": 1 << 20}

#: Of `OPS` only a request has an answer of its own: that of a publish is the PONG to a PING.
OPS = {
    "nats.request": Asks(
        (f.Pub, f.Hpub),
        lambda args, frame: frame.subject == args["target"] and frame.payload == body_bytes(args["body"]),
        lambda answer: {"body": report_body(answer.payload)},
    )
}
SPECIMENS: Mapping[type[Frame], Frame] = {
    f.Info: f.Info(INFO),
    f.Msg: f.Msg("nobody.listens", "77", b"x"),
    f.Hmsg: f.Hmsg("nobody.listens", "77", b"NATS/1.0\r\n\r\n", b"x"),
    f.Err: f.Err('Permissions Violation for Publish to "x"'),
}
UNASKED: Mapping[str, Frame] = {
    "the login has expired": f.Err("User Authentication Expired"),
    "an answer for nobody": f.Hmsg("_INBOX.nobody.1", "1", b"NATS/1.0 503\r\n\r\n", b""),
    "a message without a subscription": f.Msg("orders", "999", b"strange", "reply"),
    "other servers": f.Info({**INFO, "connect_urls": ["127.0.0.1:1", "[::1]:1", ""]}),
    "lame duck mode": f.Info({**INFO, "ldm": True}),
}
NOISE = {
    "unknown line": b"NOPE\r\n",
    "empty line": b"\r\n",
    "info without an object": b"INFO []\r\n",
    "info without json": b"INFO {oops\r\n",
    "message without a size": b"MSG orders 1 x\r\n",
    "message of another size": b"MSG orders 1 2\r\nabcdef\r\n",
    "headers beyond the size": b"HMSG orders 1 9 5\r\nNATS/1.0\r\n\r\n\r\n",
    "negative size": b"MSG orders 1 -1\r\n",
    "huge size": b"MSG orders 1 99999999999999999999\r\n",
    "letters": b"hello\r\n\r\n",
}
HAPPENINGS: Mapping[str, Callable[[Any], None]] = {
    "a login expires": lambda broker: _say(broker, "User Authentication Expired"),
    "the server finds a connection stale": lambda broker: _say(broker, "Stale Connection"),
}


def _say(broker: Any, text: str) -> None:
    for one in list(broker.connections):
        broker.say_error(one["name"], text)


class NatsReading(Reading):
    """How its frames are read, and what they mean."""

    silent_end = CRLF

    def codec(self, side: str) -> Codec:
        return NatsCodec("client" if side == "client" else "server")

    def decoders(self, socket: str = "") -> tuple[Decoder, Decoder]:
        return NatsDecoder("client"), NatsDecoder("server")

    def is_garbage(self, frame: Malformed) -> bool:
        return frame.code == GARBAGE

    def track(self, conn: Conn, facts: Facts, questions: Questions) -> None:
        Tracking(questions, conn, facts).run()

    def know(self, conns: Mapping[str, Conn], ops: Sequence[Any], facts: Facts) -> None:
        """Who drains a connection ends it."""
        for drained in [done.begun for done in ops if done.op == "nats.drain"]:
            for conn in conns.values():
                if conn.stands(drained):
                    conn.unwanted = conn.unwanted or drained


class NatsQuestions(Questions):
    """Its questions, their answers, and the codes of these."""

    answers = {f.Pub: f.Hmsg, f.Hpub: f.Hmsg}  # noqa: RUF012 # as its type says
    questions = {f.Ping: f.Pong}  # noqa: RUF012
    ops = OPS
    ok, refusal = 0, NO_RESPONDERS
    refusals = (NO_RESPONDERS,)
    subscribe_asks = False

    def is_code(self, reported: Any, said: Any) -> bool:
        """Clients change the case of what the server says."""
        return str(reported).casefold() == str(said).casefold()

    def is_reported_as(self, code: Any, text: str, said: Any) -> bool:
        """Its errors have no number, only words, which a client may report among its own."""
        return self.is_code(code, said) or str(said).casefold() in text.casefold()

    def accepts(self, frame: Any) -> bool:
        return not isinstance(frame, f.Hmsg) or status(frame) != NO_RESPONDERS

    def opposite(self, frame: Any, code: Any) -> Frame | None:
        if not isinstance(frame, f.Msg | f.Hmsg) or not frame.subject.startswith("_INBOX."):
            return None
        if not self.accepts(frame):
            return f.Msg(frame.subject, frame.sid, b"yes")
        head = b"NATS/1.0 %d\r\n\r\n" % (self.refusal if code is None else code)
        return f.Hmsg(frame.subject, frame.sid, head, b"")


class NatsFaultMaterial(FaultMaterial):
    """What faults are made of here."""

    specimens = SPECIMENS
    unasked = UNASKED
    noise = NOISE
    happenings = HAPPENINGS
    fixed = ("target", "queue", "max")
    concurrent = ("close", "cancel", "loss", "hurried")  # a subject may be listened to twice

    def said_by_server(self) -> Sequence[type[Frame]]:
        return f.Info, f.Msg, f.Hmsg, f.Ping, f.Pong, f.Ok, f.Err

    def payload_at(self, frame: Frame) -> int | None:
        if not isinstance(frame, f.Msg | f.Hmsg) or not frame.payload:
            return None
        return len(NatsCodec().encode(frame)) - len(frame.payload) - 2


class NatsDelivery(Delivery):
    """How its subscriptions get messages."""

    ending = ("nats.drain",)

    def settings(self, options: Args) -> dict[str, Any]:
        return {"queue": options.get("queue", "")}


class NatsSettlement(Settlement):
    """Where the outcome of a message is reported: it has no id, so by its body alone."""

    def properties_given(self, args: Args) -> Any:
        return None


TRAITS = Traits(
    protocol="nats",
    reading=NatsReading(),
    questions=NatsQuestions(),
    delivery=NatsDelivery(),
    settlement=NatsSettlement(),
    connecting=Connecting(announces_end=False, set_up=(f.Ping, f.Pong), flushes=(f.Ping,)),
    faults=NatsFaultMaterial(),
)
