"""The fake Moleculer network, as tests see it."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Unpack

from fakebrokers.core.engine import Clock
from fakebrokers.core.frames import kind_of
from fakebrokers.core.listeners import Endpoint
from fakebrokers.core.profiles import find_profile
from fakebrokers.core.session import Codec, Session
from fakebrokers.core.wire import Wire
from fakebrokers.errors import UsageError, instead_of
from fakebrokers.journal import Record, Tap
from fakebrokers.moleculer.broker import MoleculerBroker
from fakebrokers.moleculer.bus import Bus, BusOptions, Partition
from fakebrokers.moleculer.carriers import BusCarrier
from fakebrokers.moleculer.node import Node
from fakebrokers.moleculer.nodes import Carrier, FakeNode
from fakebrokers.moleculer.packets import Packet, packet_in
from fakebrokers.moleculer.profile import PROFILES
from fakebrokers.moleculer.protocol import PROTOCOL
from fakebrokers.moleculer.services import Action, Service, services_from
from fakebrokers.moleculer.speaker import NodeOptions
from fakebrokers.moleculer.tcp.carrier import TcpCarrier
from fakebrokers.moleculer.tcp.network import GOSSIP_S, TcpNetwork
from fakebrokers.moleculer.transports import TRANSPORTS
from fakebrokers.options import Port, ServerOptions, struct_of
from fakebrokers.server import FakeServer

if TYPE_CHECKING:
    from fakebrokers.nats.monitor import Monitor

#: Bytes up to which a frame stays in the journal: an INFO is a few thousand bytes long, and worth a look.
BODY_LIMIT = 64 * 1024


#: Options that the servers of other transporters take over.
_SHARED = ("host", "seed", "user", "password", "token", "journal_limit")


class Moleculer(FakeServer):
    """A message bus that Moleculer nodes join, with fake nodes on it.

        with Moleculer(transporter="nats") as moleculer:
            ...                                     # nodes connect to moleculer.url

    Args:
        transporter: What carries the packets: ``nats``, ``redis``, ``mqtt``, or ``tcp`` (no server).
        profile: ``real`` (0.15), ``0.15``, ``0.14`` or ``seed``: what the fake nodes are.
        serializer: How the fake nodes write packets.
        namespace: Of the fake nodes.
        user, password, token: What clients of the bus have to show.
        management: Serve the monitoring pages of a NATS server, at `management_url`; a number is their port.
        gossip_s: Seconds between two rounds of gossip (TCP).
        udp_port: Let nodes of the TCP transporter find each other by datagrams on loopback, on this port
            (4445 is the usual one); 0: not at all.
        bus: Further fields of `BusOptions`, such as ``{"max_payload": 1000}``.
        options: Those of `FakeServer`.
    """

    protocol = PROTOCOL
    broker: MoleculerBroker

    def __init__(
        self,
        *,
        transporter: str = "nats",
        profile: str = "real",
        serializer: str = "JSON",
        namespace: str = "",
        user: str = "",
        password: str = "",
        token: str = "",
        management: bool | Port = False,
        gossip_s: float = GOSSIP_S,
        udp_port: Port = 0,
        bus: dict[str, Any] | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        if transporter not in self.protocol.variants:
            hint = instead_of(transporter, self.protocol.variants)
            raise UsageError(f"moleculer has no transporter {transporter!r}{hint}")
        self.transporter = transporter
        self.namespace = namespace
        self._profile = find_profile(PROFILES, profile, PROTOCOL.name)
        self.bus_options = struct_of(
            {"serializer": serializer, "user": user, "password": password, "token": token, **(bus or {})},
            BusOptions,
            "bus",
        )
        self._network = TcpNetwork(self, namespace, gossip_s, udp_port) if transporter == "tcp" else None
        if management is not False and transporter != "nats":
            raise UsageError(f"only NATS has monitoring pages, not {transporter}")
        self._monitor = None if management is False else _monitor(self)
        self._monitor_port = 0 if management is True else int(management)
        self._own_options: dict[str, Any] = {**options, "user": user, "password": password, "token": token}
        self._siblings: dict[str, Moleculer] = {}
        options.setdefault("body_limit", BODY_LIMIT)
        super().__init__(profile=profile, **options)

    @property
    def _wires(self) -> Sequence[Wire]:
        """The wire of the transporter."""
        return (self.protocol.wire(self.transporter),)

    def _make_broker(self, clock: Clock) -> MoleculerBroker:
        """The bus of the transporter."""
        transport = TRANSPORTS.get(self.transporter)
        random = Random(self.host if self.in_memory else None)  # runs on virtual time repeat exactly
        bus = transport.bus(self.bus_options, random) if transport is not None else None
        return MoleculerBroker(self._profile, bus, clock.wall)

    def _endpoints(self) -> list[Endpoint]:
        return [Endpoint(self._wires[0], self._new_session, self._wanted_port)]

    def _bound(self) -> None:
        """Tell the bus its address."""
        if self.broker.bus is not None:
            self.broker.bus.bound(self.host, self.port)

    def _closed(self) -> None:
        """Cut what the fake nodes have opened; they are gone."""
        for node in self.broker.nodes.values():
            node.vanish()
        if self._network is not None:
            self._network.close()

    def _new_session(self, transport: Any) -> tuple[Session, Codec]:
        if self._network is not None:
            return self._network.first_session(transport)
        return TRANSPORTS[self.transporter].session(self.broker.bus)

    async def _serve(self) -> None:
        """Accept from now on, on the monitoring port too."""
        await super()._serve()
        if self._monitor is not None:
            await self._monitor.start(self.host, self._monitor_port)
        if self._network is not None:
            await self._network.start()

    async def _unserve(self) -> None:
        """End what `serve` began besides the listeners."""
        if self._monitor is not None:
            await self._monitor.stop()

    def _stopping(self) -> None:
        """Stop the servers of other transporters that were asked for."""
        siblings, self._siblings = self._siblings, {}
        for sibling in siblings.values():
            sibling.stop()

    @property
    def _companions(self) -> Mapping[str, FakeServer]:
        return self._siblings

    def check(self, timeout: float = 0.0) -> None:
        """Raise what went wrong inside, in the servers of other transporters too."""
        for sibling in self._siblings.values():
            sibling.check(timeout)
        super().check(timeout)

    def _transport(self, name: str) -> Moleculer:
        """The server of a transporter: this one, or one more that stops with it."""
        if name == self.transporter:
            return self
        if name not in self._siblings:
            if self._loop is None:
                raise UsageError(
                    "the servers of other transporters run only while this fake does: start() it"
                )
            known = {key: value for key, value in self._own_options.items() if key in _SHARED}
            self._siblings[name] = Moleculer(transporter=name, profile=self.profile, **known).start()
            self._siblings[name]._is_companion = True
        return self._siblings[name]

    @property
    def nats(self) -> Moleculer:
        """An embedded NATS server: `url`, `host`, `port`, `faults`, `journal`."""
        return self._transport("nats")

    @property
    def redis(self) -> Moleculer:
        """An embedded Redis server, publish and subscribe only."""
        return self._transport("redis")

    @property
    def mqtt(self) -> Moleculer:
        """An embedded MQTT 3.1.1 broker."""
        return self._transport("mqtt")

    @property
    def management_url(self) -> str:
        """The monitoring pages of the NATS server."""
        if self._monitor is None or not self._monitor.port:
            raise UsageError("this fake has no monitoring pages: make it with management=True and start it")
        return f"http://{self.host}:{self._monitor.port}"

    @property
    def urls(self) -> dict[str, str]:
        """``management``, and the addresses of fake nodes of the TCP transporter."""
        found = {}
        if self._monitor is not None:
            found["management"] = self.management_url
        for node in self.broker.nodes.values():
            if node.alive and isinstance(node.carrier, TcpCarrier):
                found[node.id] = self.node_url(node.id)
        return found

    @property
    def _contents(self) -> dict[str, int]:
        return {"node": len(self.broker.nodes)}

    # fake nodes

    def node(
        self,
        id: str,
        services: Iterable[Service] | Mapping[str, Mapping[str, Action]] | None = None,
        *,
        namespace: str | None = None,
        serializer: str = "",
        separator: str = ".",
        **options: Any,
    ) -> Node:
        """A fake node that joins now.

        Args:
            id: Its nodeID.
            services: Functions by action by service, or `Service` objects.
            namespace: None for that of this fake.
            serializer: Of its packets; "" for that of this fake.
            separator: Between the words of topics; real nodes can have another one with MQTT.
            options: The fields of `NodeOptions`.
        """
        made = services_from(services)
        settings = _node_options(options)

        def act() -> FakeNode:
            return self._add_node(id, made, settings, self._carrier(namespace, serializer, separator))

        return Node(self, self.call(act))

    def _add_node(self, id: str, services: list[Service], options: NodeOptions, carrier: Carrier) -> FakeNode:
        broker = self.broker
        broker.made += 1
        random = Random(f"{self.engine.injector.seed}/{id}/{broker.made}")
        node = FakeNode(id, services, options, carrier, self._profile, broker.timers, broker.wall, random)
        (broker.pliant.discard if options.version else broker.pliant.add)(id)
        node.pliant = broker.pliant
        for version in self._versions_met():
            node.versions[version] = None
        broker.nodes[f"{id}/{broker.made}"] = node
        node.join(self.engine.now)
        if isinstance(carrier, TcpCarrier):
            carrier.started(self.engine.now)
            assert self._network is not None
            self._network.announce()
        return node

    def _versions_met(self) -> list[str]:
        """The protocols of the nodes that have said something, the last one last."""
        senders: dict[Any, str] = {}
        for record in self.journal.select(tap=Tap.RECEIVED):
            packet = None if record.frame is None else packet_in(record.frame)
            if packet is not None and isinstance(packet.ver, str):
                senders[packet.sender] = packet.ver
        return list(dict.fromkeys(senders.values()))

    def _carrier(self, namespace: str | None, serializer: str, separator: str) -> Carrier:
        if self._network is not None:
            return self._network.new_carrier(serializer or self.bus_options.serializer, self._driver)
        assert self.broker.bus is not None
        space = self.namespace if namespace is None else namespace
        return BusCarrier(self.broker.bus, space, serializer, separator)

    def node_url(self, id: str) -> str:
        """Where a fake node of the TCP transporter listens, as nodes write it in ``urls``."""
        for node in self.broker.nodes.values():
            if node.id == id and node.alive and isinstance(node.carrier, TcpCarrier):
                return f"tcp://{self.host}:{node.carrier.port}/{id}"
        raise UsageError(f"there is no node {id!r} that listens for itself: only with transporter='tcp'")

    def packets(self, kind: str | None = None, since: int = 0) -> list[tuple[Record, Packet]]:
        """The packets in the journal, with the records of the messages that carry them.

        Args:
            kind: Only those, such as ``Request``.
            since: Only records with a higher `seq`.
        """
        found = [
            (record, packet)
            for record in self.journal.records(since)
            if record.frame is not None and not record.envelope
            if (packet := packet_in(record.frame)) is not None
        ]
        return [(record, packet) for record, packet in found if kind in (None, kind_of(packet))]

    # what happens to the bus

    def partition(
        self,
        senders: Iterable[str] = (),
        receivers: Iterable[str] = (),
        *,
        one_way: bool = False,
        for_s: float | None = None,
        fault: str = "",
    ) -> None:
        """Nodes do not hear each other any more; see `faults.PartitionBus`."""
        forth = Partition(frozenset(senders), frozenset(receivers))
        parts = [forth] if one_way else [forth, Partition(forth.receivers, forth.senders)]

        def act() -> None:
            bus = self._bus()
            bus.partitions += parts
            text = f"{_names(forth.senders)} {'->' if one_way else '<->'} {_names(forth.receivers)}"
            self.journal.state(self.engine.now, "", "partition", text, fault)
            if for_s is not None:
                self.broker.timers.new(lambda now: self._mend(parts, fault)).set(self.engine.now + for_s)

        self.call(act)

    def heal(self, *, fault: str = "") -> None:
        """All nodes hear each other again."""
        self.call(lambda: self._mend(list(self._bus().partitions), fault))

    def _mend(self, parts: list[Partition], fault: str) -> None:
        bus = self._bus()
        bus.partitions = [each for each in bus.partitions if not any(each is part for part in parts)]
        self.journal.state(self.engine.now, "", "healed", "", fault)

    def _bus(self) -> Bus:
        if self.broker.bus is None:
            raise UsageError("nodes of the TCP transporter have no bus: use faults on their connections")
        return self.broker.bus

    def reset(self) -> None:
        """See `FakeServer.reset`; the fake nodes are gone, and so are the servers of other transporters."""
        siblings, self._siblings = self._siblings, {}
        for sibling in siblings.values():
            sibling.stop()

        def act() -> None:
            for node in self.broker.nodes.values():
                node.vanish()
            self.broker.nodes.clear()
            if self.broker.bus is not None:
                self.broker.bus.partitions = []

        self.call(act)
        super().reset()

    def impersonate(self, node: str, *, fault: str = "") -> None:
        """Another instance with the id of a node announces itself, and is gone again."""

        def act() -> None:
            self.journal.state(self.engine.now, "", "duplicate node", node, fault)
            options = NodeOptions(announces=False, answers_discover=False)
            double = self._add_node(node, [], options, self._carrier(None, "", "."))
            double.send_info("", self.engine.now)
            double.vanish()

        self.call(act)

    def peer_of(self, connection: str) -> str:
        """The node at the other end of a connection; "" if it has not shown."""
        found = self.engine.connections.get(connection)
        return found.peer if found is not None else ""

    @property
    def scheme(self) -> str:
        return self.transporter


def _monitor(server: Moleculer) -> Monitor:
    from fakebrokers.nats.monitor import Monitor  # aiohttp takes its time to load

    there = weakref.proxy(server)  # or it would keep alive a fake that nobody holds
    return Monitor(there, lambda: there.broker.bus)


def _names(nodes: Iterable[str]) -> str:
    return ",".join(sorted(nodes)) or "all others"


def _node_options(options: Mapping[str, Any]) -> NodeOptions:
    unknown = [name for name in options if name not in NodeOptions.__struct_fields__]
    if unknown:
        raise UsageError(
            f"a node has no option {unknown[0]!r}{instead_of(unknown[0], NodeOptions.__struct_fields__)}"
        )
    return NodeOptions(**options)
