"""The fake NATS server, or a small cluster of them, as tests see it.

with NATS() as nats:
    client = await nats_py.connect(nats.url)
    nats.publish("orders", b"hello")
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import msgspec

from fakebrokers.bodies import Body, body_of
from fakebrokers.core.driver import Driver
from fakebrokers.core.engine import Clock
from fakebrokers.core.listeners import Endpoint, Listener
from fakebrokers.core.profiles import find_profile
from fakebrokers.core.subscriptions import Subscription
from fakebrokers.core.timers import Timer
from fakebrokers.core.tls import Tls, certificate_of
from fakebrokers.errors import UsageError
from fakebrokers.nats.access import Access
from fakebrokers.nats.broker import NatsBroker
from fakebrokers.nats.codec import NatsCodec
from fakebrokers.nats.nodes import Node, new_nodes
from fakebrokers.nats.profile import PROFILES, Profile
from fakebrokers.nats.protocol import PROTOCOL, WIRE
from fakebrokers.nats.responder import Answer, Responder
from fakebrokers.nats.session import NatsSession
from fakebrokers.nats.tls import UpgradingListener
from fakebrokers.options import Port, ServerOptions, struct_of
from fakebrokers.server import FakeServer

if TYPE_CHECKING:
    from fakebrokers.nats.monitor import Monitor


class _ByHand(NamedTuple):
    """Who publishes where a test does: listens to nothing."""

    echo: bool = False


_BY_HAND = _ByHand()


class NATS(FakeServer):
    """A NATS server without JetStream, or a cluster of several.

    Args:
        profile: ``real`` or ``2.9``.
        nodes: Servers of the cluster; each listens on a port of its own.
        advertised_host: Host that INFO names; None: the one listened on.
        user, password: What clients have to show; a password alone is enough.
        token: What they may show instead.
        users: Passwords of further users, by name.
        nkeys: Public keys of users who sign what the server asks them to (needs the extra ``nats``).
        tls: Listen for TLS too, on further ports; `tls_port` and `tls.ca_file` are what a client needs. A
            name of `Certificate`, such as ``expired``: with that one. TLS begins after INFO.
        management: Serve the monitoring pages, at `management_url`; a number is their port.
        switches: Further fields of `Profile` to change, such as ``{"ping_interval_s": 1.0}``.
        options: Those of `FakeServer`.
    """

    protocol = PROTOCOL
    broker: NatsBroker

    def __init__(
        self,
        *,
        profile: str = "real",
        nodes: int = 1,
        advertised_host: str | None = None,
        user: str = "",
        password: str = "",
        token: str = "",
        users: Mapping[str, str] | None = None,
        nkeys: Sequence[str] = (),
        tls: bool | str = False,
        management: bool | Port = False,
        switches: Mapping[str, Any] | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        if nodes < 1:
            raise UsageError(f"expected 1 node or more, got {nodes}")
        found = find_profile(PROFILES, profile, PROTOCOL.name)
        known = msgspec.structs.asdict(found)
        self._profile = struct_of({**known, **(switches or {})}, Profile, "switches")
        own = {user: password} if user or password else {}
        self._access = Access({**own, **(users or {})}, token, nkeys)
        self._count = nodes
        self._advertised_host = advertised_host
        self._wants_tls = tls and certificate_of(tls)
        self.tls: Tls | None = None
        self._monitor = None if management is False else _monitor(self)
        self._monitor_port = 0 if management is True else int(management)
        super().__init__(profile=profile, **options)
        self._goodbyes: dict[int, Timer] = {}  #: when nodes that are leaving stop

    def _make_broker(self, clock: Clock) -> NatsBroker:
        random = Random(self.host if self.in_memory else None)  # runs on virtual time repeat exactly
        return NatsBroker(self._profile, self._access, new_nodes(self._count, random), random)

    def _endpoints(self) -> list[Endpoint]:
        """One per node, and one more for TLS; the first has the port that was asked for."""
        nodes = self.nodes
        plain = [
            Endpoint(WIRE, partial(self._new_session, node), 0 if number else self._wanted_port, node=number)
            for number, node in enumerate(nodes)
        ]
        if not self._wants_tls or self.in_memory:
            return plain
        self.tls = Tls(*dict.fromkeys(map(self._host_of, range(len(nodes)))), show=self._wants_tls)
        return plain + [
            Endpoint(WIRE, partial(self._new_session, node, tls=True), node=number)
            for number, node in enumerate(nodes)
        ]

    def _new_listeners(self, driver: Driver) -> list[Listener]:
        endpoints, count = self._endpoints(), len(self.nodes)
        context = None if self.tls is None else self.tls.context
        return [
            self._new_listener(driver, endpoint)
            if context is None or number < count
            else UpgradingListener(driver, endpoint, self.host, context)
            for number, endpoint in enumerate(endpoints)
        ]

    def _new_session(self, node: Node, transport: Any, *, tls: bool = False) -> tuple[NatsSession, NatsCodec]:
        codec = NatsCodec(max_payload=self._profile.max_payload)
        return NatsSession(self.broker, codec, node, tls=tls), codec

    def _bound(self) -> None:
        """Tell each node its address."""
        for number, node in enumerate(self.nodes):
            node.host = self._advertised_host or self._host_of(number)
            node.port = self.listeners[number].port
            if self.tls is not None:
                node.tls_port = self.listeners[len(self.nodes) + number].port

    async def _serve(self) -> None:
        """Accept from now on, on the monitoring port too."""
        await super()._serve()
        if self._monitor is not None:
            await self._monitor.start(self.host, self._monitor_port)

    async def _unserve(self) -> None:
        """End what `serve` began besides the listeners."""
        if self._monitor is not None:
            await self._monitor.stop()

    def _stopped(self) -> None:
        """Remove the certificates."""
        if self.tls is not None:
            self.tls.close()

    @property
    def _contents(self) -> dict[str, int]:
        return {"subscription": len(self.broker.subscriptions)}

    # addresses

    def _url_of(self, number: int, scheme: str = "nats") -> str:
        node = self.nodes[number]
        return f"{scheme}://{node.address(scheme == 'tls')}"

    @property
    def tls_port(self) -> int:
        """The first node's port for TLS."""
        if self.tls is None:
            raise UsageError("this fake has no TLS listener: make it with tls=True and start it")
        return self.nodes[0].tls_port

    @property
    def management_url(self) -> str:
        """The monitoring pages."""
        if self._monitor is None or not self._monitor.port:
            raise UsageError("this fake has no monitoring pages: make it with management=True and start it")
        return f"http://{self.host}:{self._monitor.port}"

    @property
    def urls(self) -> dict[str, str]:
        """The further nodes, ``node2``, ``node3`` ..., ``tls`` and ``management``."""
        further = {f"node{number + 1}": self._url_of(number) for number in range(1, len(self.nodes))}
        if self.tls is not None:
            further["tls"] = self._url_of(0, "tls")
        if self._monitor is not None:
            further["management"] = self.management_url
        return further

    @property
    def nodes(self) -> Sequence[Node]:
        """The servers of the cluster."""
        return self.broker.nodes

    # what tests do

    def publish(
        self, subject: str, payload: Body, *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> int:
        """A message without a publishing client; returns how many subscriptions got it.

        Args:
            payload: Bytes, or text, which becomes UTF-8.
            reply: The subject for answers.
            headers: By name.
        """
        body, head = body_of(payload), _headers(headers or {})
        return self.call(lambda: self.broker.route(_BY_HAND, subject, reply, head, body))

    def respond(
        self, subject: str, answer: Answer, *, queue: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        """Answer the requests to a subject from now on.

        Args:
            subject: Perhaps with wildcards.
            answer: Is called with the subject and the payload of each message, on the fake's thread; returns
                the payload of the answer, or None for none.
            queue: The queue group that answers.
            headers: Of the answers, by name.
        """
        owner = Responder(self.broker, answer, _headers(headers or {}))
        self.call(self.broker.subscriptions.add, Subscription(subject, owner, "responder", queue))

    @property
    def subscriptions(self) -> list[tuple[str, str]]:
        """Who listens: the subject, and the queue group or ""."""
        return self.call(lambda: sorted((each.pattern, each.queue) for each in self.broker.subscriptions))

    def say_error(self, connection: str, error: str, *, fault: str = "") -> None:
        """Say ``-ERR`` with this text, and end the connection."""

        def act() -> None:
            session = self.connection(connection).session
            assert isinstance(session, NatsSession)
            if session.state != "ended":  # the fault may be one for what is said here
                self.journal.state(self.engine.now, connection, "error", error, fault)
                session.end(error)

        self.call(act)

    def node_of(self, connection: str) -> int:
        """The number of the node that a connection is to, from 1."""
        session = self.connection(connection).session
        assert isinstance(session, NatsSession)
        return self.nodes.index(session.server) + 1

    def stop_node(self, node: int) -> None:
        """A node (by number, from 1) goes down: its connections end; clients of the others get an INFO."""

        def act() -> None:
            self._shut(node)
            self.broker.stop_node(self._node(node))

        self.call(act)

    def start_node(self, node: int) -> None:
        """The node comes back."""
        self._node(node)
        if self._loop is not None:
            for listener in self._listeners_of(node):
                self._loop.run(listener.serve())
        self.call(self._start_node, node)

    def _start_node(self, node: int) -> None:
        goodbye = self._goodbyes.pop(node, None)
        if goodbye is not None:
            goodbye.drop()
        self.broker.start_node(self._node(node))

    def lame_duck(self, node: int = 1, *, fault: str = "") -> None:
        """A node takes no new clients, warns those that it has, and ends them `Profile.lame_duck_s` later."""

        def act() -> None:
            leaving = self._node(node)
            if leaving.leaving:  # the fault may be one for what is said here
                return
            leaving.leaving = True
            self.journal.state(self.engine.now, "", "lame duck", str(node), fault)
            self._shut(node)
            self.broker.tell_nodes()
            timer = self.broker.timers.new(lambda now: self.broker.stop_node(leaving))
            timer.set(self.engine.now + self._profile.lame_duck_s)
            self._goodbyes[node] = timer

        self.call(act)

    def _node(self, number: object) -> Node:
        if not isinstance(number, int) or not 1 <= number <= len(self.nodes):
            raise UsageError(f"expected a node from 1 to {len(self.nodes)}, got {number!r}")
        return self.nodes[number - 1]

    def _listeners_of(self, node: int) -> list[Listener]:
        """That of a node, and that for TLS."""
        return list(self.listeners)[node - 1 :: len(self.nodes)]

    def _shut(self, node: int) -> None:
        """It lets nobody in any more. On the loop."""
        self._node(node)
        for listener in self._listeners_of(node):
            listener.refuse()

    def reset(self) -> None:
        """See `FakeServer.reset`; all nodes run."""
        super().reset()
        for number in range(1, len(self.nodes) + 1):
            self.start_node(number)


def _headers(headers: Mapping[str, str]) -> bytes:
    if not headers:
        return b""
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    return f"NATS/1.0\r\n{''.join(lines)}\r\n".encode()


def _monitor(server: NATS) -> Monitor:
    from fakebrokers.nats.monitor import Monitor  # aiohttp takes its time to load

    there = weakref.proxy(server)  # or it would keep alive a fake that nobody holds
    return Monitor(there, lambda: there.broker)
