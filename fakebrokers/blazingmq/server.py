"""The fake BlazingMQ: its public class."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Unpack

from fakebrokers.blazingmq.broker import BlazingBroker
from fakebrokers.blazingmq.cluster import Node
from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.codes import Compression
from fakebrokers.blazingmq.domains import Domain, Domains, load_domains
from fakebrokers.blazingmq.message import Message
from fakebrokers.blazingmq.profile import switched
from fakebrokers.blazingmq.properties import NO_SCHEMA, Content, Property, Style, write_content
from fakebrokers.blazingmq.protocol import PROTOCOL, WIRE
from fakebrokers.blazingmq.queue import Queue
from fakebrokers.blazingmq.session import BlazingSession
from fakebrokers.bodies import Body, body_of
from fakebrokers.core.engine import Clock
from fakebrokers.core.listeners import Endpoint
from fakebrokers.errors import UsageError
from fakebrokers.options import Seconds, ServerOptions
from fakebrokers.renamed import formerly
from fakebrokers.server import FakeServer


class BlazingMQ(FakeServer):
    """A BlazingMQ broker, or a small cluster of them.

        with BlazingMQ() as broker:
            ...                         # a client connects to broker.url
            broker.publish("bmq://bmq.test.mem.priority/orders", b"hello")
            assert broker.messages("bmq://bmq.test.mem.priority/orders") == []  # the client has confirmed it

    Domains whose names end with ``priority``, ``fanout`` (apps ``foo``, ``bar``, ``baz``) or ``broadcast``
    are there without configuration, and without limits.

    Args:
        profile: ``real``, ``plain`` (it advertises neither new properties nor subscriptions) or ``seed``.
        nodes: Brokers of the cluster; each listens on a port of its own, all have the same queues.
        domains: By name, as `Domain` or as its fields; or the path of a TOML file (see `domains`).
        heartbeats: Ask silent clients for a sign of life; None: as the profile.
        heartbeat_s, max_missed: What brokerResponse sends clients; None: as the profile.
        switches: Further fields of `Profile` to change, such as ``{"checks_crc": True}``.
        options: Those of `FakeServer`.
    """

    protocol = PROTOCOL
    broker: BlazingBroker
    _old_keywords: ClassVar = {"heartbeat_ms": ("heartbeat_s", 1e3)}

    def __init__(
        self,
        *,
        profile: str = "real",
        nodes: int = 1,
        domains: Domains | Mapping[str, Domain | Mapping[str, Any]] | str | Path | None = None,
        heartbeats: bool | None = None,
        heartbeat_s: Seconds | None = None,
        max_missed: int | None = None,
        switches: Mapping[str, Any] | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        if nodes < 1:
            raise UsageError(f"expected 1 node or more, got {nodes}")
        given = {
            "watches_clients": heartbeats,
            "heartbeat_interval_ms": None if heartbeat_s is None else round(heartbeat_s * 1000),
            "max_missed_heartbeats": max_missed,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        self.switches = switched(profile, {**changes, **(switches or {})})
        self._domains = _domains(domains)
        self._nodes = [Node(f"fake-{number + 1}") for number in range(nodes)]
        super().__init__(profile=profile, **options)

    def _make_broker(self, clock: Clock) -> BlazingBroker:
        """A broker with the domains of this fake."""
        return BlazingBroker(self.switches, wall=clock.wall, domains=self._domains, nodes=self._nodes)

    def _endpoints(self) -> list[Endpoint]:
        """One per node; the first has the port that was asked for."""
        return [
            Endpoint(
                WIRE,
                partial(self._new_session, node),
                0 if number else self._wanted_port,
                quick_acks=True,  # the C++ SDK's send buffer holds 4608 bytes
                node=number,
            )
            for number, node in enumerate(self._nodes)
        ]

    def _bound(self) -> None:
        """Tell each node its address."""
        for number, node in enumerate(self._nodes):
            node.host = self._host_of(number)
            node.port = self.listeners[number].port

    def _new_session(self, node: Node, transport: Any) -> tuple[BlazingSession, BlazingCodec]:
        codec = BlazingCodec()
        return BlazingSession(self.broker, codec, node), codec

    @property
    def _contents(self) -> dict[str, int]:
        return {"queue": len(self.broker.queues)}

    # addresses

    @property
    def scheme(self) -> str:
        """What the SDKs want in front: the URL can be given to them as it is, or as ``BMQ_BROKER_URI``."""
        return "tcp"

    @property
    def urls(self) -> dict[str, str]:
        """The further nodes, ``node2``, ``node3`` ..."""
        return {
            f"node{number}": f"{self.scheme}://{node.host}:{node.port}"
            for number, node in enumerate(self._nodes[1:], start=2)
        }

    @property
    def nodes(self) -> list[Node]:
        """The brokers of the cluster."""
        return self._nodes

    # what tests do to queues; `uri` is such as ``bmq://bmq.test.mem.priority/orders``

    def publish(
        self,
        uri: str,
        payload: Body,
        properties: Mapping[str, Property] | None = None,
        *,
        compression: Compression = Compression.NONE,
    ) -> bytes:
        """Put a message into a queue, which is made if it is not there; returns the message's GUID.

        Args:
            payload: Bytes, or text, which becomes UTF-8.
        """
        data = write_content(Content(body_of(payload), properties or {}), Style.NEW, compression)

        def act() -> bytes:
            now = self.broker.now = self.engine.now
            schema_id = NO_SCHEMA if properties else 0
            guid = self.broker.guids.new(now)
            queue = self.broker.make_queue(uri)
            queue.post(Message(guid, data, bool(properties), schema_id, compression, now))
            self.broker.flush()
            return guid

        return self.call(act)

    post = formerly("post", publish)

    def messages(self, uri: str, app_id: str | None = None) -> list[Message]:
        """What a queue holds, delivered or not, in order; with `app_id` what that app has not confirmed."""

        def act() -> list[Message]:
            stored = self.broker.queue(uri).messages.values()
            return [each for each in stored if app_id is None or app_id in each.waiting]

        return self.call(act)

    def queue(self, uri: str) -> Queue:
        """A queue itself: apps, handles ... Look, do not touch, from other threads."""
        return self.call(lambda: self.broker.queue(uri))

    @property
    def queues(self) -> list[str]:
        """The queues that are there."""
        return self.call(lambda: list(self.broker.queues))

    def purge(self, uri: str, app_id: str | None = None) -> int:
        """Drop the messages of a queue, or those of one app; returns how many."""
        return self.call(lambda: self.broker.queue(uri).purge(app_id))

    def redeliver(self, uri: str) -> None:
        """Deliver again what consumers have not confirmed."""

        def act() -> None:
            self.broker.now = self.engine.now
            self.broker.queue(uri).redeliver()
            self.broker.flush()

        self.call(act)

    def configure_domain(self, name: str, **fields: Any) -> None:
        """Add a domain, or change one; fields as of `Domain`."""
        self.call(lambda: self.broker.configure_domain(name, fields))

    # what operators do to brokers, by number, from 1

    def stop_node(self, node: int) -> None:
        """A broker goes down: its connections end, and it takes no new ones."""
        self.call(lambda: self.broker.stop_node(self._node(node)))

    def start_node(self, node: int) -> None:
        """It comes back."""
        self.call(lambda: self.broker.start_node(self._node(node)))

    def shut_down(self, node: int = 1, timeout_s: float = 5.0) -> None:
        """A broker goes down in order: each connection ends once its deliveries are confirmed."""
        self.call(lambda: self.broker.shut_down(self._node(node), timeout_s, self.engine.now))

    def reset(self) -> None:
        """See `FakeServer.reset`; all brokers run."""
        super().reset()
        for number in range(1, len(self._nodes) + 1):
            self.start_node(number)

    def _node(self, number: object) -> Node:
        if not isinstance(number, int) or not 1 <= number <= len(self._nodes):
            raise UsageError(f"expected a node from 1 to {len(self._nodes)}, got {number!r}")
        return self._nodes[number - 1]


def _domains(given: Domains | Mapping[str, Domain | Mapping[str, Any]] | str | Path | None) -> Domains:
    if isinstance(given, str | Path):
        return load_domains(given)
    return given if isinstance(given, Domains) else Domains(given)
