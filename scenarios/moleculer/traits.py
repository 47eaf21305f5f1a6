"""What the sweep has to know of Moleculer over NATS (docs/protocols/moleculer.md, 3 to 6)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from conformance.clients.adapter.messages import body_bytes
from conformance.decoders import Decoder
from conformance.decoders.nats import GARBAGE
from conformance.run.facts import Facts, Question, Record
from conformance.run.trace import Position
from conformance.run.traits import (
    Args,
    Asks,
    Connecting,
    Delivery,
    FaultMaterial,
    Peers,
    Questions,
    Reading,
    Traits,
    Whole,
)
from conformance.run.view import Conn
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.session import Codec
from fakebrokers.moleculer.mqtt.frames import Subscribe as Topics
from fakebrokers.moleculer.nats.frames import Err, NatsPing, NatsPong, Sub, Unsub
from fakebrokers.moleculer.packets import (
    PACKETS,
    Disconnect,
    Discover,
    Event,
    Heartbeat,
    Info,
    Ping,
    Pong,
    Request,
    Response,
)
from fakebrokers.moleculer.redis.frames import Subscribe as Channels
from scenarios.moleculer.sweep.contents import gives_stream, has_params, words_in
from scenarios.moleculer.sweep.offering import offered, other_selves, overheard, unheard
from scenarios.moleculer.sweep.reading import AnyWireDecoder, Wire, writer
from scenarios.moleculer.sweep.roster import DEFAULT_TIMEOUT_S, is_silent, needless, wrong_roster
from scenarios.moleculer.sweep.sending import neglected, wrong_sending
from scenarios.moleculer.sweep.serving import broken_streams, changed_errors, misread_streams, refused_offers
from scenarios.moleculer.sweep.spelling import spellings
from scenarios.moleculer.sweep.surfacing import due, for_others
from scenarios.moleculer.sweep.tracking import VERSION, Tracking

HEARTBEAT_S = 10.0  #: of a node without options
START_S = 0.5  #: a node waits for others after its DISCOVER, then its timers start (chapter 3)
PLAIN_ERRORS = ("MoleculerError", "Error")  #: names of errors that say no more than their members
OK, NOT_FOUND, FAILED = 200, 404, 500
PEER, STRANGER = "peer", "stranger"  #: a fake node, and one that the client has not seen
BY: dict[str, Any] = {"ver": VERSION, "sender": STRANGER}


def meta_of(args: Args, answer: Response) -> Mapping[str, Any]:
    """The meta of the call with that of its answer over it."""
    if answer.stream is True or not isinstance(answer.meta, Mapping):
        return {}
    return {"meta": Whole({**(args.get("meta") or {}), **answer.meta})}


def answer_of(answer: Response) -> Mapping[str, Any]:
    """What the op returns for an answer that is no stream."""
    if answer.stream is True:
        return {"from": answer.sender}
    return {"data": None if answer.data is UNSET else answer.data, "from": answer.sender}


def _is_of(args: Args, frame: Any) -> bool:
    """Whether a request is that of a call. Before 0.15 the stream was in the place of the parameters."""
    is_stream = frame.params is None and gives_stream(args)
    return bool(frame.action == args["action"] and (is_stream or has_params(args, frame)))


def _is_plain(answer: Response) -> bool:
    """Whether it says if it is one with success, and what the error is, if not."""
    return isinstance(answer.success, bool) and (answer.success or isinstance(answer.error, Mapping))


def words_of(answer: Response) -> dict[str, str]:
    """The message and the type of an error, unless it is of a name from which a library makes its own."""
    error = answer.error if answer.success is False and isinstance(answer.error, Mapping) else {}
    if error.get("name") not in PLAIN_ERRORS:
        return {}
    said = {"text": words_in(error), "type": error.get("type")}
    return {name: value for name, value in said.items() if isinstance(value, str) and value.isprintable()}


OPS = {
    "mol.call": Asks(
        Request,
        _is_of,
        answer_of,
        said=words_of,
        apt=lambda args, answer: _is_plain(answer) and answer.stream is not True,
        also=meta_of,
    ),
    "mol.ping": Asks(
        Ping,
        lambda args, frame: True,
        lambda answer: {"from": answer.sender},
        apt=lambda args, answer: answer.sender == args.get("node"),
        none=lambda reported: all(
            one.get("rtt_ms", 0) is None for one in reported.get("nodes") or [reported]
        ),
    ),
}

SPECIMENS: Mapping[type[Frame], Frame] = {
    Info: Info(services=[], instanceID="nobody", seq=1, config={}, metadata={}, client={}, **BY),
    Heartbeat: Heartbeat(cpu=1, **BY),
    Discover: Discover(**BY),
    Disconnect: Disconnect(**BY),
    Ping: Ping(time=1, id="", **BY),
    Pong: Pong(time=1, id="", arrived=2, **BY),
    Request: Request(id="", action="nobody.asks", params={}, meta={}, timeout=0, level=1, **BY),
    Response: Response(id="", success=True, data="nobody", meta={}, **BY),
    Event: Event(id="", event="nobody.listens", data=1, **BY),
}

UNASKED: Mapping[str, Frame] = {
    "answer for nobody": Response(id="nobody", success=True, data=1, meta={}, **BY),
    "answer without an id": Response(success=True, data=1, meta={}, **BY),
    "stream for nobody": Response(id="nobody", success=True, data=1, stream=True, seq=3, meta={}, **BY),
    "old version": Heartbeat(cpu=1, ver="2", sender=PEER),
    "beat with a seq": Heartbeat(cpu=1, more={"seq": 77}, ver=VERSION, sender=PEER),
    "no sender": Heartbeat(cpu=1, ver=VERSION),
    "services of another shape": Info(services={"a": 1}, seq=9, instanceID=PEER, **BY),
    "request of a chunk": Request(id="chunk", action="s.echo", stream=True, seq=5, **BY),
    "request without params": Request(id="bare", action="s.echo", timeout=0, **BY),
    "server asks": NatsPing(),
    "server answers": NatsPong(),
}


def message(topic: str, payload: bytes) -> bytes:
    """A message on the wire."""
    return b"MSG %s 1 %d\r\n%s\r\n" % (topic.encode(), len(payload), payload)


NOISE = {
    "empty payload": message("MOL.INFO.client", b""),
    "no JSON": message("MOL.RES.client", b"{oops"),
    "no object": message("MOL.REQ.client", b"[1,2]"),
    "null": message("MOL.HEARTBEAT", b"null"),
    "no UTF-8": message("MOL.REQ.client", b'{"id":"\xff\xfe"}'),
    "deep": message("MOL.EVENT.client", b"[" * 20_000),
    "foreign topic": message("weather.today", b"{}"),
    "unknown command": message("MOL.NOPE.client", b'{"ver":"5","sender":"peer"}'),
    "nul": message("MOL.HEARTBEAT", b'{"ver":"5","sender":"pe\\u0000er","cpu":1}'),
    "ok": b"+OK\r\n",
    "lower case": b"ping\r\n",
}


def _vanish(broker: Any) -> None:
    for node in broker.broker.nodes.values():
        if node.alive and node.id == PEER:
            node.vanish()
            node.join(broker.engine.now)


HAPPENINGS = {
    "peer is there again": _vanish,
}


ANSWERS: Mapping[type[Frame], type[Frame]] = {Request: Response, Ping: Pong}


class MoleculerReading(Reading):
    """How its frames are read, and what they mean."""

    def reads(self, broker: Any) -> bool:
        """What is carried by NATS."""
        return bool(broker.transporter == "nats")

    def codec(self, side: str) -> Codec:
        return writer("client" if side == "client" else "server")

    def decoders(self, socket: str = "") -> tuple[Decoder, Decoder]:
        wire = Wire()
        return AnyWireDecoder("client", wire), AnyWireDecoder("server", wire)

    def is_odd(self, frame: Frame) -> bool:
        """An answer may be odd, too."""
        return super().is_odd(frame) or (isinstance(frame, Response) and not _is_plain(frame))

    def is_garbage(self, frame: Malformed) -> bool:
        return frame.code == GARBAGE

    def know(self, conns: Mapping[str, Conn], ops: Sequence[Any], facts: Facts) -> None:
        """Every node sends its heartbeats as often as it was configured to, and stays who it is."""
        facts.broken += other_selves(facts, [done.begun for done in ops if done.op == "connect"])
        facts.wrong += refused_offers(ops, facts)
        facts.wrong += changed_errors(ops, facts)
        facts.wrong += [*broken_streams(ops, facts), *misread_streams(ops, facts)]
        options = [done.args["options"] for done in ops if done.op == "connect"]
        balances = all(one.get("disable_balancer") for one in options)
        facts.deaf += unheard(conns.values(), facts, balances=balances)
        closes = [done.begun for done in ops if done.op in ("close", "abort")]
        facts.overheard += overheard(conns.values(), facts, closes)
        patience = [one.get("heartbeat_timeout_s", DEFAULT_TIMEOUT_S) for one in options]
        facts.needless += needless(conns.values(), facts, min(patience, default=DEFAULT_TIMEOUT_S))
        beats = [one.get("heartbeat_s", HEARTBEAT_S) for one in options]
        for conn in conns.values():
            conn.agreed = conn.agreed._replace(
                heartbeat_s=max(beats, default=HEARTBEAT_S), quiet_s=(math.inf, math.inf), start_s=START_S
            )

    def track(self, conn: Conn, facts: Facts, questions: Questions) -> None:
        Tracking(conn, facts).run()


class MoleculerQuestions(Questions):
    """Its questions, their answers, and the codes of these."""

    answers = ANSWERS
    ops = OPS
    answer_within_s = 3.0
    answers_move = True
    refuses_by_itself = (NOT_FOUND,)
    ok, refusal = OK, FAILED
    refusals = (0, NOT_FOUND, 504, 2**31, "ENOENT", None)

    def deadline_of(self, frame: Frame) -> float | None:
        if not isinstance(frame, Request) or not isinstance(frame.timeout, int | float):
            return None
        return frame.timeout / 1000 if frame.timeout else None

    def is_silent(self, case: Any, question: Question, at: Position) -> bool:
        return is_silent(case, question.to, at)

    def opposite(self, frame: Any, code: Any) -> Frame | None:
        if not isinstance(frame, Response):
            return None
        if not self.accepts(frame):
            return msgspec.structs.replace(frame, success=True, data="yes", error=UNSET)
        error: dict[str, Any] = {"name": "Error", "message": "no", "nodeID": PEER}
        if code is None:
            error["code"] = self.refusal
        elif code:
            error["code"] = code
        return msgspec.structs.replace(frame, success=False, data=None, error=error)


class MoleculerDelivery(Delivery):
    """How its subscriptions get messages."""

    ending = ("mol.unserve", "mol.stop")
    listening = ("mol.listen",)

    def due(self, case: Any, args: Args, begun: Position) -> list[tuple[Position, Record]]:
        return due(case, args, begun)

    def for_others(self, case: Any, args: Args, body: bytes) -> str:
        return for_others(case, args, body)

    def is_same(self, reported: bytes, due: bytes) -> bool:
        """Data are reported as JSON: only the values count."""
        return bool(json.loads(reported) == json.loads(due))


class MoleculerPeers(Peers):
    """What its nodes owe each other."""

    rosters = ("mol.registry",)
    sending = ("mol.call", "mol.emit", "mol.broadcast")

    def wrong_sending(self, case: Any, done: Any) -> str:
        return wrong_sending(case, done)

    def neglected(self, case: Any) -> str:
        return neglected(case)

    def offered(self, case: Any) -> Sequence[tuple[Position, Any]]:
        return offered(case)

    def streamed(self, args: Args, result: Any) -> tuple[bytes | None, Args | None]:
        given = args.get("stream")
        objects = args.get("objects")
        source = body_bytes(given) if given else b"".join(json.dumps(one).encode() for one in objects or ())
        data = result.value.get("data") if result is not None and result.ok else None
        return (source if given or objects else None), _stream_in(data)

    def breaks(self, args: Args) -> str:
        return str(args.get("breaks", ""))

    def wrong_roster(self, case: Any, reported: Args, begun: Position, ended: Position) -> str:
        return wrong_roster(case, reported, begun, ended)


class MoleculerFaultMaterial(FaultMaterial):
    """What faults are made of here."""

    # an event that is sent twice looks like two, and a call has its own limit among its arguments
    concurrent = ("close", "cancel", "loss")
    specimens = SPECIMENS
    unasked = UNASKED
    noise = NOISE
    happenings = HAPPENINGS
    troubles = (
        *(("rst", None), ("fin", None), ("rst-before", None), ("lost", None), ("cut-fin", 5), ("bit", 0)),
        *(("contradict", ["instead", None]), ("contradict", ["instead", 504]), ("shape", "shorter")),
        *(("latency", 3.0), ("goodbye", "stays"), ("twice", None)),
    )
    fixed = (
        *("node_id", "namespace", "timeout_ms", "sleep_ms", "params", "chunk", "len", "seed", "gen"),
        *("meta", "actions", "text", "every_ms", "objects"),
    )

    def spellings(self, frame: Frame, data: Any) -> Mapping[str, Any]:
        return spellings(bytes(data))

    def said_by_server(self) -> Sequence[type[Frame]]:
        return list(PACKETS)

    def close_frame(self) -> Frame:
        return Err("Stale Connection")


def _stream_in(data: Any) -> Args | None:
    """The stream that an op has returned, as a body in a report."""
    if not isinstance(data, Mapping):
        return None
    if "objects" in data:
        return {"text": "".join(json.dumps(one) for one in data["objects"])}
    return data["stream"] if isinstance(data.get("stream"), Mapping) else None


TRAITS = Traits(
    protocol="moleculer",
    reading=MoleculerReading(),
    questions=MoleculerQuestions(),
    delivery=MoleculerDelivery(),
    peers=MoleculerPeers(),
    connecting=Connecting(
        set_up=(Sub, Unsub, NatsPing, NatsPong, Channels, Topics),
        settles_s=0.5,  # docs/protocols/moleculer.md, 3: a fixed wait for the INFO of others
        greetings=(Discover,),
    ),
    faults=MoleculerFaultMaterial(),
)
