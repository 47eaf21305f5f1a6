"""What the sweep has to know of Narconi (docs/protocols/narconi.md, "Routes" and "WebSocket")."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import msgspec

from conformance.clients.adapter.kit import report_body
from conformance.clients.adapter.messages import body_bytes
from conformance.run.facts import Facts
from conformance.run.showing import message, shown
from conformance.run.traits import (
    Args,
    Asks,
    Connecting,
    Delivery,
    FaultMaterial,
    OneOf,
    Questions,
    Reading,
    Settlement,
    Traits,
)
from conformance.run.view import Agreed, Conn
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.session import Codec
from fakebrokers.narconi import frames as f
from fakebrokers.narconi.codec import NarconiCodec
from fakebrokers.narconi.websocket import CLOSE, CONTINUATION, PING, TEXT, encode_frame
from scenarios.narconi.sweep.legal import is_by_the_letter
from scenarios.narconi.sweep.reading import ANSWERS, ODD, Answers, Requests, metadata
from scenarios.narconi.sweep.spelling import spellings
from scenarios.narconi.sweep.tracking import PUBLISHING, Tracking

PROJECT = "test"  #: what clients use where no option says otherwise
EMPTY = (("Content-Length", "0"),)
LAST_CHUNK = b"\r\n0\r\n\r\n"  #: after a body that is one chunk
PREFIX = "x-msg-x-"
METADATA = ("x-msg-", "content-type")
#: What an answer with a yes looks like.
YES: Mapping[type[Frame], tuple[int, ...]] = {
    f.QueueEnsured: (201,),
    f.QueueDeleted: (204,),
    f.HttpConfirm: (201,),
    f.HttpDeliver: (200, 204),
    f.HttpEmpty: (200, 204),
    f.HttpReject: (),
    f.HttpError: (),
    f.WsAccept: (101,),
    f.WsRefuse: (),
}


def taken(answer: f.HttpResponse) -> dict[str, Any]:
    """What the op returns for a message, or for none."""
    if answer.status == 204:
        return {"message": None}
    named = {name.lower(): value for name, value in reversed(answer.headers)}
    headers: dict[str, Any] = {
        name: readings(value) for name, value in named.items() if name.startswith(PREFIX)
    }
    if "content-type" in named:
        headers["Content-Type"] = readings(named["content-type"])
    stamp, again = named.get("x-msg-timestamp"), named.get("x-msg-redelivered")
    message: dict[str, Any] = {"headers": headers, "body": report_body(answer.body)}
    message["ts"] = int(stamp) if stamp and stamp.isdecimal() else None
    message["redelivered"] = None if again is None else again == "true"
    return {"message": message}


def readings(value: str) -> Any:
    """What a client may make of a header: beyond ASCII, HTTP does not say how its bytes are read."""
    try:
        return OneOf((value, value.encode("latin-1").decode(errors="replace")))
    except UnicodeError:
        return value


def _of(args: Args, frame: f.HttpRequest) -> bool:
    return bool(frame.queue == args["target"])


def carries(args: Args, frame: f.HttpRequest) -> bool:
    """Whether a request has the body and the metadata that were given, and no other; but HTTP libraries add a
    type of their own where none is given. A name that the server does not keep goes as it is, or gets the
    prefix. A value that is no text goes as any: HTTP has no other values."""
    sent = {name.lower(): plain(value) for name, value in frame.headers}
    given = {name.lower(): value for name, value in (args.get("headers") or {}).items()}
    there = {name: value for name, value in sent.items() if name.startswith(METADATA)}
    if "content-type" not in given:
        there.pop("content-type", None)
    for name in [name for name in given if not name.startswith(METADATA)]:
        kept_as = PREFIX + name if PREFIX + name in there else name
        there[name] = there.pop(kept_as, sent.get(name, ""))
    is_said = there.keys() == given.keys() and all(
        not isinstance(value, str) or there[name] == plain(value) for name, value in given.items()
    )
    return is_said and frame.body == body_bytes(args["body"])


def otherwise(args: Args, frame: f.HttpRequest) -> str:
    """What is otherwise in a request that publishes than was given, as a sentence without its subject."""
    if carries(args, frame):
        return ""
    if frame.body != body_bytes(args["body"]):
        return (
            f"was sent with {message(frame.body)}, the application gave {message(body_bytes(args['body']))}"
        )
    there = {name: value for name, value in frame.headers if name.lower().startswith(METADATA)}
    return f"was sent with {shown(there)}, the application gave {shown(args.get('headers') or {})}"


def plain(text: str) -> str:
    """What a header says, as far as the fake reads it as it was written: that is ASCII."""
    return "".join(letter if letter.isascii() else "?" for letter in text)


def _is_apt(args: Args, answer: f.HttpResponse) -> bool:
    """No request but an upgrade may be answered by a change of the protocol (RFC 9110, 15.2.2), and a client
    may take any 2xx for a yes (15.3), or that alone which the server says."""
    is_usual = not is_success(answer.status) or answer.status in YES[type(answer)]
    return answer.status != 101 and is_usual and is_by_the_letter(answer)


def is_success(status: int) -> bool:
    """Whether it says that what was asked is done, or will be."""
    return 200 <= status < 300


OPS = {
    "narc.ensure_queue": Asks(f.EnsureQueue, _of, apt=_is_apt),
    "narc.delete_queue": Asks(f.DeleteQueue, _of, apt=_is_apt),
    "narc.post": Asks(
        f.HttpPublish,
        lambda args, frame: _of(args, frame) and carries(args, frame),
        apt=_is_apt,
        differs=otherwise,
    ),
    "narc.take": Asks(f.HttpConsume, _of, taken, apt=_is_apt),
}

SPECIMENS: Mapping[type[Frame], Frame] = {
    f.QueueEnsured: f.QueueEnsured(201, EMPTY),
    f.QueueDeleted: f.QueueDeleted(204),
    f.HttpConfirm: f.HttpConfirm(201, EMPTY),
    f.HttpReject: f.HttpReject(404, EMPTY),
    f.HttpDeliver: f.HttpDeliver(200, (("Content-Length", "1"),), b"z"),
    f.HttpEmpty: f.HttpEmpty(204),
    f.HttpError: f.HttpError(404, EMPTY),
    f.Continue: f.Continue(100),
    f.WsAccept: f.WsAccept(101),
    f.WsRefuse: f.WsRefuse(404, (("Connection", "close"), *EMPTY)),
    f.WsReject: f.WsReject("Message too large.", 429),
    f.WsError: f.WsError("Something has happened.", 500),
    f.WsDeliver: f.WsDeliver(b"z", ack_id="77"),
}

NOISE = {
    "masked": encode_frame(TEXT, b"", masked=True),
    "reserved bit": encode_frame(TEXT, b"", rsv=4),
    "unknown opcode": encode_frame(3, b"a"),
    "continuation of nothing": encode_frame(CONTINUATION, b"a"),
    "no UTF-8": encode_frame(TEXT, b"\xff\xfe"),
    "large ping": encode_frame(PING, bytes(126)),
    "ping in pieces": encode_frame(PING, b"a", fin=False),
    "no JSON": encode_frame(TEXT, b"hello"),
    "a list": encode_frame(TEXT, b"[1]"),
    "a number": encode_frame(TEXT, b"5"),
    "empty object": encode_frame(TEXT, b"{}"),
    "close of one byte": encode_frame(CLOSE, b"\x03"),
    "close without a code": encode_frame(CLOSE, b""),
    "letters": b"hello\r\n\r\n",
    "huge": b"\x82\x7f" + (1 << 40).to_bytes(8),
}

UNASKED: Mapping[str, Frame] = {
    "ping": f.WsPing(b"are you there"),
    "pong": f.WsPong(b"nobody asked"),
    "close 1001": f.WsClose(1001, "going away"),
    "close 1011": f.WsClose(1011, ""),
}


def _delete(broker: Any) -> None:
    for name in list(broker.broker.queues):
        broker.delete_queue(*name.split("_", 1))


HAPPENINGS = {
    "queues are deleted": _delete,
    "the backend is lost": lambda broker: broker.lose_backend(),
}


class NarconiReading(Reading):
    """How its frames are read, and what they mean."""

    def codec(self, side: str) -> Codec:
        return NarconiCodec()

    def decoders(self, socket: str = "") -> tuple[Codec, Codec]:
        requests = Requests()
        return Answers(requests), requests

    def is_garbage(self, frame: Malformed) -> bool:
        return frame.code != ODD

    def track(self, conn: Conn, facts: Facts, questions: Questions) -> None:
        Tracking(questions, conn, facts).run()

    def know(self, conns: Mapping[str, Conn], ops: Sequence[Any], facts: Facts) -> None:
        """A client that keeps its connections alive sends a ping in each interval in which nothing comes, and
        wants a pong."""
        beats = [done.args["options"].get("keepalive_s") for done in ops if done.op == "connect"]
        if not beats or None in beats:
            return
        for conn in conns.values():
            if conn.is_session:
                sent = [seen.at.t for seen in conn.of("in") if isinstance(seen.frame, f.WsPing)]
                pongs = [seen.at.t for seen in conn.of("out") if isinstance(seen.frame, f.WsPong)]
                conn.signs = sorted((*sent, *conn.handed))
                conn.agreed = Agreed(2 * max(beats), quiet_s=(0.0, 2 * max(beats)), answer_s=max(beats))
                conn.answered = pongs

    def stored(self, broker: Any) -> dict[str, list[tuple[Any, bytes]]]:
        """Of the queues from which no consumer has taken anything.

        Ops do not say the project: queues of one name in several are one here.
        """
        by_name = defaultdict(list)
        for name, queue in broker.broker.queues.items():
            by_name[name.split("_", 1)[1]].append(queue)
        return {
            name: [(one.place, one.payload) for queue in queues for one in queue.ready]
            for name, queues in by_name.items()
            if all(queue.total == len(queue.ready) for queue in queues)
        }


class NarconiQuestions(Questions):
    """Its questions, their answers, and the codes of these."""

    answers = ANSWERS
    questions = {f.WsPing: f.WsPong}  # noqa: RUF012 # as its type says
    ops = OPS
    ok, refusal = 200, 404
    refusals = (202, 301, 400, 401, 403, 429, 500, 503, 999)
    passing = (500, 503)
    unauthorized = (401,)

    def accepts(self, frame: Any) -> bool:
        if isinstance(frame, f.HttpResponse):
            wanted = YES.get(type(frame), ())
            return frame.status in wanted or (is_success(frame.status) and any(map(is_success, wanted)))
        return not isinstance(frame, f.WsReject)

    def opposite(self, frame: Any, code: Any) -> Frame | None:
        said = self.refusal if code is None else code
        if isinstance(frame, f.WsConfirm):
            return f.WsReject("no", said, frame.number)
        if isinstance(frame, f.WsReject):
            return f.WsConfirm(frame.number)
        if isinstance(frame, f.WsAccept) and frame.status == 101:
            return f.WsRefuse(said, (("Connection", "close"), *EMPTY), number=frame.number)
        if not isinstance(frame, f.HttpResponse) or type(frame) not in YES:
            return None
        yes = YES[type(frame)] or (201,)
        other: Frame = msgspec.structs.replace(frame, status=said if self.accepts(frame) else yes[0])
        return other

    def is_opening(self, frame: Frame) -> bool:
        return isinstance(frame, f.WsUpgrade)

    def is_astray(self, frame: Frame) -> bool:
        return isinstance(frame, f.OtherRequest)


class NarconiDelivery(Delivery):
    """How its subscriptions get messages."""

    last_words = f.WsStop

    def properties_of(self, heard: Any) -> Any:
        shown = {name: heard[name] for name in ("headers", "redelivered", "ts")}
        if isinstance(shown["headers"], Mapping):
            shown["headers"] = metadata(shown["headers"])
        return shown

    def settings(self, options: Args) -> dict[str, Any]:
        limit = options.get("limit")
        return {
            "ack": bool(options.get("ack")),
            "limit": None if limit is None else str(limit),
            "encoding": options.get("encoding"),
        }


class NarconiSettlement(Settlement):
    """Where the outcome of a message is reported."""

    posting = ("narc.post",)
    producers = (PUBLISHING,)

    def properties_given(self, args: Args) -> Any:
        return args.get("headers") or {}

    def place(self, args: Args, key: Any) -> tuple[Hashable, ...]:
        return args["target"], "", key


class NarconiFaultMaterial(FaultMaterial):
    """What faults are made of here."""

    specimens = SPECIMENS
    unasked = UNASKED
    noise = NOISE
    happenings = HAPPENINGS
    fixed = ("encoding",)
    troubles = (
        *(("rst", None), ("fin", None), ("rst-before", None), ("lost", None), ("cut-fin", 5), ("bit", 0)),
        *(("contradict", ["instead", None]), ("contradict", ["instead", 503]), ("shape", "shorter")),
        *(("latency", 3.0), ("goodbye", "stays")),
    )

    def said_by_server(self) -> Sequence[type[Frame]]:
        return [*SPECIMENS, f.WsConfirm, f.WsPing, f.WsPong]

    def close_frame(self) -> Frame:
        return f.WsClose(1000)

    def last_of(self, frame: Frame) -> Frame | None:
        if not isinstance(frame, f.HttpResponse) or isinstance(frame, f.WsAccept | f.WsRefuse | f.Continue):
            return None
        others = (row for row in frame.headers if row[0].lower() != "connection")
        return msgspec.structs.replace(frame, headers=(*others, ("Connection", "close")))

    def spellings(self, frame: Frame, data: Any) -> Mapping[str, Any]:
        return spellings(frame, bytes(data))

    def payload_at(self, frame: Frame) -> int | None:
        if isinstance(frame, f.HttpResponse):
            tail = LAST_CHUNK if ("Transfer-Encoding", "chunked") in frame.headers else b""
            end = len(NarconiCodec().encode(frame)) - len(tail)
            return end - len(frame.body) if frame.body else None
        if not isinstance(frame, f.WsDeliver) or frame.encoding is not None or not frame.payload:
            return None
        return len(NarconiCodec().encode(frame)) - len(frame.payload)


TRAITS = Traits(
    protocol="narconi",
    reading=NarconiReading(),
    questions=NarconiQuestions(),
    delivery=NarconiDelivery(),
    settlement=NarconiSettlement(),
    connecting=Connecting(
        connects_late=True,
    ),
    faults=NarconiFaultMaterial(),
)
