"""What the sweep has to know of Redis (docs/protocols/redis.md, "What goes over the wire")."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar

from conformance.clients.adapter.kit import body_bytes, number, report_body
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
from fakebrokers.core.frames import Frame
from fakebrokers.core.session import Codec
from fakebrokers.redis import frames as f
from fakebrokers.redis import resp
from fakebrokers.redis.codec import RedisCodec
from scenarios.redis.sweep.tracking import ENDING, OPENING, channels_of, code_of, is_set_up, track

#: Texts of errors, by their first word; a word that no server has, too.
REFUSALS: Mapping[str, str] = {
    "LOADING": "LOADING Redis is loading the dataset in memory",
    "READONLY": "READONLY You can't write against a read only replica.",
    "MOVED": "MOVED 3999 127.0.0.1:1",
    "NOAUTH": "NOAUTH Authentication required.",
    "OOM": "OOM command not allowed when used memory > 'maxmemory'.",
    "FUTURE": "FUTURE nobody knows this word",
}

SPECIMENS: Mapping[type[Frame], Frame] = {
    f.Reply: f.Reply("OK"),
    f.RedisError: f.RedisError("ERR no"),
    f.Message: f.Message("C", b"z"),
    f.Pmessage: f.Pmessage("C*", "C1", b"z"),
    f.Smessage: f.Smessage("S", b"z"),
    f.Subscribed: f.Subscribed("subscribe", "C", 1),
}

UNASKED: Mapping[str, Frame] = {
    "a reply to nobody": f.Reply(b"nobody's"),
    "a refusal for nobody": f.RedisError("ERR nobody's"),
    "a message for nobody": f.Message("nowhere", b"strange"),
    "an end for nobody": f.Subscribed("unsubscribe", "nowhere", 0),
}

NOISE = {
    "unknown mark": b"?x\r\n",
    "no number": b":x\r\n",
    "no length": b"$x\r\n",
    "no line end": b"$1\r\nabc",
    "letters": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "nothing": b"*-1\r\n",
    "empty": b"*0\r\n",
}


def value_of(value: Any) -> Any:
    """A reply as ops return it: libraries do not say which kind of string it was."""
    match value:
        case resp.Failure():
            return {"error": code_of(str(value))}
        case str():
            return report_body(resp.raw(value))
        case bytes():
            return report_body(value)
        case bool() | float() | None:
            return value
        case int():
            return number(value)
        case Mapping():
            return [value_of(part) for pair in value.items() for part in pair]
    return [value_of(part) for part in value]


def words_of(args: Args) -> list[bytes]:
    """The command of an op."""
    return [word.encode() if isinstance(word, str) else body_bytes(word) for word in args["words"]]


def _fits(args: Args, frame: f.Command) -> bool:
    verb, *arguments = words_of(args)
    return resp.raw(frame.verb).upper() == verb.upper() and list(frame.arguments) == arguments


OPS = {"redis.call": Asks(f.Command, _fits, lambda answer: {"value": value_of(answer.value)})}
HAPPENINGS: Mapping[str, Callable[[Any], None]] = {"a key is gone": lambda broker: broker.delete("K")}


class RedisReading(Reading):
    """How its frames are read, and what they mean."""

    def codec(self, side: str) -> Codec:
        return RedisCodec("client" if side == "client" else "server")

    def track(self, conn: Conn, facts: Facts, questions: Questions) -> None:
        track(conn, facts)


class RedisQuestions(Questions):
    """Its questions, their answers, and the words of errors."""

    answers: ClassVar[Mapping[type[Frame], type[Frame]]] = {
        **dict.fromkeys((f.Command, f.Hello, f.Auth, f.Publish, f.Spublish), f.Reply),
        **dict.fromkeys((*OPENING, *ENDING), f.Subscribed),
    }
    ops = OPS
    ok, refusal = "OK", "ERR"
    refusals = tuple(REFUSALS)
    passing = ("LOADING", "BUSY", "TRYAGAIN", "MASTERDOWN", "CLUSTERDOWN")

    def accepts(self, frame: Any) -> bool:
        return not isinstance(frame, f.RedisError)

    def opposite(self, frame: Any, code: Any) -> Frame | None:
        if isinstance(frame, f.Reply | f.Subscribed):
            return f.RedisError(REFUSALS.get(code, "ERR no"))
        return f.Reply("OK") if isinstance(frame, f.RedisError) else None

    def is_astray(self, frame: Frame) -> bool:
        return is_set_up(frame)

    def target_of(self, frame: Frame) -> str | None:
        names = channels_of(frame)
        return names[0] if len(names) == 1 else None


class RedisSettlement(Settlement):
    """Where the outcome of a message is reported: ops name no id."""

    def place(self, args: Args, key: Any) -> tuple[Hashable, ...]:
        return args["target"], "", key


class RedisFaultMaterial(FaultMaterial):
    """What faults are made of here."""

    specimens = SPECIMENS
    unasked = UNASKED
    noise = NOISE
    happenings = HAPPENINGS
    fixed = ("words", "commands")
    troubles = (
        *(("rst", None), ("fin", None), ("rst-before", None), ("lost", None), ("cut-fin", 5), ("bit", 0)),
        *(("contradict", ["instead", None]), ("contradict", ["instead", "LOADING"]), ("latency", 3.0)),
    )

    def said_by_server(self) -> Sequence[type[Frame]]:
        return [*SPECIMENS]

    def payload_at(self, frame: Frame) -> int | None:
        """Messages end with their payload and a line end."""
        if not isinstance(frame, f.Message | f.Pmessage | f.Smessage) or not frame.payload:
            return None
        return len(RedisCodec().encode(frame)) - len(frame.payload) - 2


class RedisDelivery(Delivery):
    """How its subscriptions get messages."""

    shares = True

    def settings(self, options: Args) -> dict[str, Any]:
        return {"way": options.get("way", "channel")}


TRAITS = Traits(
    protocol="redis",
    reading=RedisReading(),
    questions=RedisQuestions(),
    delivery=RedisDelivery(),
    settlement=RedisSettlement(),
    connecting=Connecting(announces_end=False, set_up=(f.Hello, f.Auth)),
    faults=RedisFaultMaterial(),
)
