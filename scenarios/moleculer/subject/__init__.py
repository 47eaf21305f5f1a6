"""Moleculer: a node that calls a fake peer and listens to its events, over NATS.

A queue is a list of texts that the peer keeps. A publish is a call that adds one and gets it back; consuming
is listening to the event of that name, which the peer then sends once for each text. In the further ways the
peer calls an action of the client, and the client emits an event to the peer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, cast

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.contract import Contract
from conformance.clients.adapter.messages import Message, same_body
from conformance.clients.adapter.result import Result
from conformance.suite.client import Body
from conformance.suite.expect import Unsupported, slug
from fakebrokers import Moleculer
from fakebrokers.faults import delay, rewrite
from fakebrokers.journal import Record, Tap
from fakebrokers.moleculer.calls import RemoteError
from fakebrokers.moleculer.faults import break_packet
from fakebrokers.moleculer.node import Node
from scenarios._common import limit_s
from scenarios.moleculer._steps import CALL_S, MQTT, NATS, REDIS, TCP, call_timeout, node_timeout, settled
from scenarios.moleculer.subject.keeper import ECHO, EMITTED, PEER, PUT, Keeper
from scenarios.moleculer.subject.texts import text_of, unwrapped
from scenarios.subjects.base import Check, Subject
from scenarios.subjects.facts import Op

START_S = 8.0  #: a node waits for others, half a second and more
MIB = 1 << 20
#: Places in what the server says first (INFO, PONG, +OK, the peer's INFO); few, as a start takes 1.5 s.
HANDSHAKE_CUTS = (1, 4, 16, 64, 160, 320, 480, 800)
ALL_ROLES = ("caller", "service", "emitter", "listener")
#: These run the base script, whose further ways need all roles.
BASE_SCRIPT = ("1.01", "1.02", "1.03", "1.04", "1.05", "1.06", "1.10", "1.12", "4.03", "4.07")
#: These ask the client whether it takes its peer for alive.
LOOKS = ("1.07", "1.16")
#: These depend on how the library of each server connects and closes.
OVER_SERVERS = ("2.01", "2.06", "2.07", "3.09")
SERVERS = ("nats", "redis", "mqtt")
BEAT_S = 10.0  #: between two heartbeats of a node without options
JITTER_S = 0.5  #: that real nodes add to it
BEATS = 2.5


class MoleculerSubject(Subject):
    """Each session is a node of its own id; calls are what is acked."""

    protocol = "moleculer"
    roles: ClassVar = {"publisher": "caller", "consumer": "listener"}
    variants: ClassVar = {"nats": NATS, "redis": REDIS, "mqtt": MQTT, "tcp": TCP}
    rows: ClassVar = {
        "": {"ops": ("mol.call",), "variants": ("nats",)},
        **{f"NET-{number}": {"roles": ALL_ROLES} for number in BASE_SCRIPT},
        "NET-1.01": {"roles": ALL_ROLES, "variants": (*SERVERS, "tcp")},
        **{f"NET-{number}": {"ops": ("mol.call", "mol.registry")} for number in LOOKS},
        "NET-1.09": {"roles": ("caller",)},
        "NET-1.14": {"variants": SERVERS},
        **{f"NET-{number}": {"variants": SERVERS} for number in OVER_SERVERS},
        "NET-2.02": {"roles": ("caller",), "variants": SERVERS},
        **{f"NET-{number}": {"roles": ("caller",)} for number in ("2.03", "3.01", "3.05", "3.10", "4.06")},
    }
    phases: ClassVar = {
        "link handshake": ("connect", "ServerInfo"),
        "answer": ("publish", "Response"),
        "delivery": ("consume", "Event"),
    }
    publishing = "Request"
    confirm = "Response"
    delivery = "Event"
    close_frame = close_answer = "Disconnect"
    maintenance_code = 0  # there is none
    largest = 512 * 1024
    beyond = MIB + 1
    crowd = 5
    slow_options: ClassVar = {"heartbeat_s": 2, "heartbeat_timeout_s": 12}
    connect_may_hang = True
    messages_wait = False

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.keeper = Keeper(self.fake)
        self._serving: set[str] = set()
        self._beat_s = BEAT_S
        self._since: dict[str, int] = {}  #: by node, where the journal was before its last connect

    @property
    def fake(self) -> Moleculer:
        return cast(Moleculer, self.broker)

    @property
    def peer(self) -> Node:
        """The node that keeps the texts."""
        return self.keeper.node

    # the fake's side

    def settings(self, limit_s: float) -> dict[str, Any]:
        return {"transporter": self.fake.transporter}

    def add_queue(self, name: str) -> None:
        self.keeper.add(name, [])

    def stored(self, name: str) -> list[bytes]:
        return [text.encode() for text in self.keeper.texts.get(name, ())]

    def put(self, name: str, bodies: Sequence[bytes]) -> None:
        self.keeper.add(name, [body.decode() for body in bodies])

    def established(self, since: int) -> bool:
        """A node that is back subscribes again; nothing else shows it."""
        return bool(self.subscriptions(since))

    def subscriptions(self, since: int) -> list[Record]:
        kind = "Sub" if self.fake.transporter == "nats" else "Subscribe"
        return self.broker.journal.select(kind=kind, tap=Tap.RECEIVED, since=since)

    def ask_to_close(self, connection: str, code: int, reason: str) -> None:
        raise NotImplementedError("servers of Moleculer's buses have no close frame")

    def cuts(self, longest: int) -> Sequence[int]:
        return HANDSHAKE_CUTS

    def refuse_publishes(self) -> None:
        error = {"name": "MoleculerError", "message": "no", "code": 500, "type": "REFUSED", "nodeID": PEER}
        fields = {"success": False, "data": None, "error": error}
        self.broker.faults.add(rewrite(fields, kind="Response", nth=1, scope="run"))

    def malformed(self) -> bytes:
        return b"MSG nonsense\r\n"

    def bad_delivery(self) -> None:
        self.broker.faults.add(break_packet("garbage", kind="Event", direction="out", nth=1, scope="run"))

    def unknown_fields(self) -> Mapping[str, tuple[str, str]]:
        more = {"more": {"future": {"n": [1, None]}, "": 7}, "headers": {"future": "yes"}}
        for kind in ("Request", "Response", "Event"):
            self.broker.faults.add(rewrite(more, kind=kind, direction="out", name=kind))
        return {
            kind: (f"no {kind} was delivered", slug("no-{}-was-delivered", kind))
            for kind in ("Request", "Response", "Event")
        }

    def answer_nobody(self, count: int) -> None:
        for _ in range(count):
            id = self.peer.core.new_id()
            self.peer.send("RES", _node("s1"), id=id, meta={}, success=True, data="x" * 900)

    def confirm_later(self) -> None:
        self.broker.faults.add(delay(3.0, kind="Response", direction="out"))

    # the client's side

    @property
    def publishes_in_time(self) -> bool:
        """Each call has a time-out of its own."""
        return True

    @property
    def keeps_order(self) -> bool:
        """Nothing of the protocol promises it (docs/protocols/moleculer.md, 4.8)."""
        return not Contract(self.client.hello).allows("shuffles")

    def keeping_alive(self, limit_s: float) -> dict[str, Any]:
        """Nodes look for silent peers once in each limit, so that it may take twice as long."""
        return {"heartbeat_s": limit_s / 2, "heartbeat_timeout_s": limit_s}

    def found_within_s(self, limit_s: float) -> float:
        return super().found_within_s(2 * limit_s)

    def carries(self, message: Message, body: Body) -> bool:
        """Of a long text the adapter reports the digest of its JSON."""
        text = text_of(body)
        whole = json.dumps(text) if "sha256" in message.body else text
        return same_body(message.body, whole.encode())

    def ops(self, queue: str, tag: str = "") -> list[Op]:
        args = {"action": PUT, "params": {"queue": queue, "body": f"pending {tag}"}}
        return [Op("call", "mol.call", self.publishing, self.confirm, args)]

    def value_made_for(self, number: int) -> tuple[Op, Any]:
        params = {"number": number}
        args = {"action": ECHO, "params": params}
        return Op("call", "mol.call", self.publishing, self.confirm, args), params

    def value_of(self, result: Result) -> Any:
        return result.value["data"]

    async def heartbeats(self) -> None:
        """Of each node that is on the bus; real ones draw the interval anew, up to half a second more."""
        since, begun = self.broker.journal.last_seq, self._now
        nodes = {self.fake.peer_of(name) for name in self.is_open()} - {""}
        await asyncio.sleep(BEATS * self._beat_s)
        beats = [(r.at, p.sender) for r, p in self.fake.packets("Heartbeat", since) if r.tap & Tap.RECEIVED]
        for node in sorted(nodes):
            times = [begun, *[at for at, sender in beats if sender == node], self._now]
            gap = max(later - earlier for earlier, later in pairwise(times))
            most = limit_s(self._beat_s) + JITTER_S
            self.expect.within(gap, most, f"{node}: heartbeats keep their period", id="heartbeats")

    @property
    def _now(self) -> float:
        """Seconds since the fake started, as in the journal."""
        return self.broker.now - self.broker.journal.started_at

    def deadline_s(self, op: Op, timeout: float) -> float:
        own = self.waiting(CALL_S) if op.op == "mol.call" else {}
        return super().deadline_s(op, own.get("request_timeout_ms", timeout * 1000) / 1000)

    def waiting(self, timeout: float) -> dict[str, Any]:
        return node_timeout(self.client, timeout)

    def begin(self, op: Op, timeout: float, session: str = "s1") -> Call:
        """Calls have the deadline from the library itself."""
        more: dict[str, float] = {}
        if op.op == "mol.call":
            timeout, more = call_timeout(self.client, session, timeout)
        return self.client.begin(op.op, timeout, session=session, **op.args, **more)

    def begin_connect(self, session: str = "s1", *, timeout: float = 5.0, **options: Any) -> Call:
        """Nodes wait for others while they start, so the peer has to be there first."""
        offered = self.client.hello.transporters
        if offered and self.fake.transporter not in offered:
            raise Unsupported(f"the client has no transporter {self.fake.transporter}")
        assert self.peer.core.alive
        self._beat_s = options.get("heartbeat_s", BEAT_S)
        self._since[_node(session)] = self.broker.journal.last_seq
        more = {"node_id": _node(session), **self.waiting(CALL_S)}
        servers = options.get("endpoints", ())
        if isinstance(servers, str) or not servers:
            more["transporter"] = self._url
        return self.client.begin_connect(session, timeout=max(timeout, START_S), **{**more, **options})

    @property
    def _url(self) -> str:
        return ",".join(self.fake.urls.values()) if self.fake.transporter == "tcp" else self.fake.url

    async def rehearse(self, **more: Any) -> None:
        """The same; what it leaves on its way may not meet the faults."""
        await super().rehearse(**more)
        await self.until(lambda: not self.is_open(), 2.0)

    async def open(self, queue: str, session: str, check: Check, timeout: float) -> None:
        """A node finds its peers while it starts and afterwards: wait until it knows what is called."""
        if not self.client.has("mol.registry"):
            await self._introduced(_node(session), check, timeout)
            return
        end = self.client.now + timeout
        while True:
            result = await self.client.op("mol.registry", timeout, session=session)
            check(result, "the registry can be asked", id="the-registry-can-be-asked")
            nodes = result.value["nodes"] if result.ok else ()
            if not result.ok or any(each["id"] == PEER and "p" in each["services"] for each in nodes):
                return
            if self.client.now > end:
                self.demand(
                    False,
                    "the client finds the peer's service",
                    nodes,
                    check,
                    id="the-client-finds-the-peer-s-service",
                )
            await asyncio.sleep(0.05)

    async def _introduced(self, node: str, check: Check, timeout: float) -> None:
        """A library that does not show its registry: its node was sent the peer's INFO, and has read it."""

        def is_sent() -> bool:
            infos = self.fake.packets("Info", self._since.get(node, 0))
            return any(
                packet.sender == PEER
                and record.tap & Tap.SENT
                and self.fake.peer_of(record.connection) == node
                for record, packet in infos
            )

        if not await self.until(is_sent, timeout):
            text = "the client finds the peer's service"
            self.demand(
                False, text, "no INFO was sent to it", check, id="the-client-finds-the-peer-s-service"
            )
        await settled(self.peer, target=node)

    def begin_publish(
        self,
        queue: str,
        body: Body = b"hello",
        *,
        session: str = "s1",
        timeout: float = 5.0,
        wait: bool = True,
    ) -> Call:
        """Call the peer's action that keeps a text."""
        params = {"queue": queue, "body": text_of(body)}
        return self.begin(
            Op("call", "mol.call", "Request", "Response", {"action": PUT, "params": params}), timeout, session
        )

    def outcomes(self, results: Sequence[Result], since: int) -> dict[int, str]:
        return {result.id: result.outcome for result in results}

    def subscribe(
        self, queue: str, sub: str = "c1", session: str = "s1", timeout: float = 5.0, **options: Any
    ) -> Call:
        """Listen to the event; `wait_messages` lets the peer send what it has kept."""
        self.keeper.listens(sub, queue, _node(session))
        return self.client.begin(
            "mol.listen", timeout, session=session, sub=sub, event=queue, on_message={"mode": "event"}
        )

    def subscribe_and_do(self, queue: str, inner: Sequence[Op]) -> Call:
        self.keeper.listens("c1", queue, _node("s1"))
        ops = [{"op": op.op, "args": {"session": "s1", **op.args}, "timeout_ms": 5000} for op in inner]
        plan = {"mode": "event", "do": ops}
        return self.client.begin("mol.listen", session="s1", sub="c1", event=queue, on_message=plan)

    def messages(self, sub: str = "c1") -> list[Message]:
        """Events, with the text itself in place of its JSON."""
        return [unwrapped(message) for message in self.client.messages(sub)]

    async def wait_messages(self, count: int, sub: str = "c1", within_s: float = 5.0) -> list[Message]:
        self.keeper.report(sub)
        return [unwrapped(message) for message in await self.client.wait_messages(count, sub, within_s)]

    async def exchange(
        self,
        queue: str,
        wanted: Sequence[bytes],
        *,
        session: str,
        check: Check,
        timeout: float,
        prefix: str = "",
        at_once: bool = False,
    ) -> None:
        """Calls, each with its own answer; events; then the other ways."""
        calls = (self.begin_publish(queue, body, session=session, timeout=timeout) for body in wanted)
        for body, call in zip(wanted, list(calls) if at_once else calls, strict=True):
            result = await call
            check(result, "each call is answered", id="each-call-is-answered")
            if result.ok:
                same = self.value_of(result) == body.decode()
                self.demand(
                    same,
                    f"{prefix}each call gets its own answer",
                    result.value,
                    check,
                    id=slug("{}each-call-gets-its-own-answer", prefix),
                )
        await self.consume(queue, wanted, session=session, check=check, timeout=timeout, prefix=prefix)
        await self.other_ways(queue, session, check=check, timeout=timeout, prefix=prefix)

    async def other_ways(
        self, queue: str, session: str, *, check: Check, timeout: float, prefix: str = ""
    ) -> int:
        """A call from the peer to the client, and an event from the client to the peer."""
        service = f"s-{session}"
        if session not in self._serving:
            self._serving.add(session)
            actions = {"echo": "echo"}
            check(
                await self.client.op("mol.serve", timeout, session=session, service=service, actions=actions),
                "mol.serve works",
                id="mol-serve-works",
            )
        params = {"queue": queue}
        future = self.peer.start_call(f"{service}.echo", params, timeout=timeout, target=_node(session))
        try:
            found = await asyncio.wrap_future(future)
        except RemoteError as error:
            found = error
        self.demand(
            found == params,
            f"{prefix}the client answers a call",
            found,
            check,
            id=slug("{}the-client-answers-a-call", prefix),
        )
        before = self.keeper.heard(_node(session))
        check(
            await self.client.op("mol.emit", timeout, session=session, event=EMITTED, data=params),
            "mol.emit works",
            id="mol-emit-works",
        )
        came = await self.until(lambda: self.keeper.heard(_node(session)) > before, timeout)
        self.demand(
            came,
            f"{prefix}the peer gets the client's event",
            "it does not",
            check,
            id=slug("{}the-peer-gets-the-client-s-event", prefix),
        )
        return 2


def _node(session: str) -> str:
    return f"node-{session}"


SUBJECT = MoleculerSubject
