"""The fake RabbitMQ: its public class."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import msgspec

from fakebrokers.bodies import Body, bodies_of
from fakebrokers.core.engine import Clock
from fakebrokers.core.listeners import Endpoint
from fakebrokers.core.profiles import find_profile
from fakebrokers.core.session import Codec, Session
from fakebrokers.core.tls import Tls, certificate_of
from fakebrokers.errors import UsageError
from fakebrokers.options import U32, Port, ServerOptions, check_names
from fakebrokers.rabbitmq_stream.broker import StreamBroker
from fakebrokers.rabbitmq_stream.chunking import RULES, Chunking, PerStep
from fakebrokers.rabbitmq_stream.cluster import Cluster, Node
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.codec_seed import codec_for
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.profile import PROFILES, Profile
from fakebrokers.rabbitmq_stream.protocol import PROTOCOL, WIRE
from fakebrokers.rabbitmq_stream.session import StreamSession
from fakebrokers.rabbitmq_stream.stream import Message, Stream
from fakebrokers.reading import one_of
from fakebrokers.renamed import warn_of_old
from fakebrokers.server import FakeServer

if TYPE_CHECKING:
    from fakebrokers.rabbitmq_stream.management.api import Management


class RabbitMQStream(FakeServer):
    """A RabbitMQ broker, or a small cluster of them, that speaks the stream protocol.

        with RabbitMQStream() as broker:
            broker.create_stream("orders")
            ...                                     # a client connects to broker.host, broker.port
            assert [m.body for m in broker.messages("orders")] == [b"hello"]

    Args:
        profile: ``real`` (4.3), ``4.3``, ``4.0``, ``3.10`` or ``seed``.
        nodes: Brokers of the cluster; each listens on a port of its own.
        load_balancer: Connections go to the nodes in turn, whatever address they used.
        advertised_host: Host that clients get to connect to; None: the one listened on.
        heartbeat_s, frame_max: What the server's Tune offers (seconds, bytes); None: as the profile.
        tls: Listen for TLS too, on further ports; `tls_port` and `tls.ca_file` are what a client needs. A
            name of `Certificate`, such as ``expired``: with that one.
        management: Serve a management HTTP API in RabbitMQ's shape, at `management_url`; a number: there.
        real_delays: Hold back the answer to a failed login for 3 s, as 4.x does.
        chunking: Where chunks end, by hand: a name in `chunking.RULES`. None: ``publish`` while the fake is
            `exact`, else ``step``.
        switches: Further fields of `Profile` to change, such as ``{"request_timeout_s": 1.0}``.
        options: Those of `FakeServer`.
    """

    protocol = PROTOCOL
    broker: StreamBroker

    def __init__(
        self,
        *,
        profile: str = "real",
        nodes: int = 1,
        load_balancer: bool = False,
        advertised_host: str | None = None,
        heartbeat_s: U32 | None = None,
        frame_max: U32 | None = None,
        tls: bool | str = False,
        management: bool | Port = False,
        real_delays: bool = False,
        chunking: str | None = None,
        switches: Mapping[str, Any] | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        if nodes < 1:
            raise UsageError(f"expected 1 node or more, got {nodes}")
        self.switches = _switched(profile, heartbeat_s, frame_max, real_delays, switches or {})
        if chunking is not None and chunking not in RULES:
            raise UsageError(f"expected chunking {one_of(list(RULES), chunking)}")
        self._chunking = chunking
        self._advertised_host = advertised_host
        self._wants_tls = tls and certificate_of(tls)
        self._management = None if management is False else _management(self)
        self._management_port = 0 if management is True else int(management)
        self.tls: Tls | None = None
        self._cluster = Cluster([Node("rabbit") for _ in range(nodes)], load_balancer=load_balancer)
        super().__init__(profile=profile, **options)
        self._name_nodes()

    def _name_nodes(self) -> None:
        """As with a real server, the host part is what it advertises; several on one host have numbers."""
        there: Counter[str] = Counter()
        for number, node in enumerate(self._cluster.nodes):
            host = self._advertised_host or self._host_of(number)
            there[host] += 1
            node.name = f"rabbit{'' if there[host] == 1 else there[host]}@{host}"

    def _make_broker(self, clock: Clock) -> StreamBroker:
        """A broker whose timestamps follow `clock`; in memory there are no TCP segments to keep apart."""
        profile = self.switches
        if self.in_memory:
            profile = msgspec.structs.replace(profile, first_delivery_delay_s=0.0)
        return StreamBroker(profile, wall=clock.wall, cluster=self._cluster, new_chunking=self._new_chunking)

    def _new_chunking(self) -> Chunking:
        return PerStep(lambda: self.exact) if self._chunking is None else RULES[self._chunking]()

    def _endpoints(self) -> list[Endpoint]:
        """One per node, and one more for TLS; the first has the port that was asked for."""
        nodes = self._cluster.nodes
        plain = [
            Endpoint(WIRE, partial(self._new_session, node), 0 if number else self._wanted_port, node=number)
            for number, node in enumerate(nodes)
        ]
        if not self._wants_tls or not self._has_streams:
            return plain
        hosts = [self._host_of(number) for number in range(len(nodes))]
        self.tls = Tls(*dict.fromkeys(hosts), ask_client=True, show=self._wants_tls)
        return plain + [
            Endpoint(WIRE, partial(self._new_tls_session, node), 0, self.tls.context, node=number)
            for number, node in enumerate(nodes)
        ]

    def _bound(self) -> None:
        """Tell each node its address, and the journal how chunks were chosen by hand."""
        if self._chunking is not None:
            self.journal.state(self.engine.now, "", "chunking", self._chunking)
        nodes = self._cluster.nodes
        if self._home is not None:
            self._name_nodes()
        for number, node in enumerate(nodes):
            node.host = self._advertised_host or self._host_of(number)
            node.port = self.listeners[number].port
            if self.tls is not None:
                node.tls_port = self.listeners[len(nodes) + number].port

    async def _serve(self) -> None:
        """Accept from now on, on the management API too."""
        await super()._serve()
        if self._management is not None:
            await self._management.start(self.host, self._management_port)

    async def _unserve(self) -> None:
        """End what `serve` began besides the listeners."""
        if self._management is not None:
            await self._management.stop()

    def _stopped(self) -> None:
        """Remove the certificates."""
        if self.tls is not None:
            self.tls.close()

    def _new_session(self, node: Node, transport: Any) -> tuple[StreamSession, StreamCodec]:
        codec = codec_for(self.switches)
        return StreamSession(self.broker, codec, node), codec

    def _new_tls_session(self, node: Node, transport: Any) -> tuple[Session, Codec]:
        session, codec = self._new_session(node, transport)
        session.tls = True
        subject = (transport.get_extra_info("peercert") or {}).get("subject", ())
        names = [value for part in subject for key, value in part if key == "commonName"]
        session.certificate_name = names[0] if names else ""
        return session, codec

    @property
    def _contents(self) -> dict[str, int]:
        return {"stream": len(self.broker.streams)}

    # addresses

    @property
    def tls_port(self) -> int:
        """The first node's port for TLS."""
        if self.tls is None:
            raise UsageError("this fake has no TLS listener: make it with tls=True and start it")
        return self._cluster.nodes[0].tls_port

    @property
    def management_url(self) -> str:
        """The management API, with the login of the user guest."""
        if self._management is None or not self._management.port:
            raise UsageError("this fake has no management API: make it with management=True and start it")
        return f"http://guest:guest@{self.host}:{self._management.port}"

    @property
    def urls(self) -> dict[str, str]:
        """The further nodes, ``node2``, ``node3`` ..., ``tls`` and ``management``."""
        further = {
            f"node{number + 1}": f"{self.scheme}://{self._host_of(number)}:{node.port}"
            for number, node in enumerate(self._cluster.nodes)
            if number
        }
        if self.tls is not None:
            further["tls"] = f"{self.scheme}+tls://{self.host}:{self.tls_port}"
        if self._management is not None:
            further["management"] = f"http://{self.host}:{self._management.port}"
        return further

    @property
    def nodes(self) -> list[Node]:
        """The brokers of the cluster."""
        return self._cluster.nodes

    # what tests do to streams; `name` is that of a stream in the virtual host "/"

    def create_stream(self, name: str, **arguments: str | int) -> None:
        """Create a stream; arguments with underscores (``max_age="1h"``) become ``max-age``."""
        wire = {key.replace("_", "-"): str(value) for key, value in arguments.items()}
        self.call(lambda: self.broker.create("/", name, wire, self._cluster.nodes[0]))

    def delete_stream(self, name: str) -> None:
        """Delete a stream; its users get a MetadataUpdate."""
        self.call(lambda: self.broker.delete(name, self.engine.now))

    def create_super_stream(
        self, name: str, partitions: Sequence[str], keys: Sequence[str], **arguments: str | int
    ) -> None:
        """Create a super stream, its partitions, and a routing key for each."""
        wire = {key.replace("_", "-"): str(value) for key, value in arguments.items()}
        node = self._cluster.nodes[0]
        self.call(lambda: self.broker.create_super_stream("/", name, partitions, keys, wire, node))

    def delete_super_stream(self, name: str) -> None:
        """Delete a super stream and its partitions; their users get a MetadataUpdate."""
        self.call(lambda: self.broker.announce(self.broker.remove_super_stream("/", name), self.engine.now))

    def publish(self, name: str, bodies: Body | Iterable[Body]) -> None:
        """Append messages to a stream as a client's Publish does: up to 32 of them are one chunk.

        Args:
            bodies: Of the messages, or of a single one: bytes, or text, which becomes UTF-8.
        """
        stored = bodies_of(bodies)
        self.call(lambda: self.broker.publish(name, stored, self.engine.now))

    def store_offset(self, name: str, reference: str, offset: int) -> None:
        """Store an offset of a stream, as a consumer does."""
        self.call(lambda: self.broker.stream(name).tracking.put_offset(reference, offset))

    def store_sequence(self, name: str, reference: str, publishing_id: int) -> None:
        """Note the highest publishing id of a publisher reference, as if it had published before."""
        self.call(lambda: self.broker.stream(name).tracking.put_sequence(reference, publishing_id))

    def messages(self, name: str) -> list[Message]:
        """All messages of a stream."""
        return self.call(lambda: list(self.broker.stream(name).messages()))

    def stream_named(self, name: str) -> Stream:
        """The stream itself: chunks, stored offsets, sequences ... Look, do not touch, from other threads."""
        return self.call(lambda: self.broker.stream(name))

    @property
    def streams(self) -> list[str]:
        """The streams of the virtual host "/"."""
        return self.call(lambda: [name for host, name in self.broker.streams if host == "/"])

    @property
    def stream_names(self) -> list[str]:
        """Old name of `streams`."""
        warn_of_old("RabbitMQStream.stream_names", "RabbitMQStream.streams")
        return self.streams

    def move_leader(self, name: str, node: int | None) -> None:
        """Let another node (by number, from 1) lead a stream, or none; its users get a MetadataUpdate."""
        target = None if node is None else self._node(node)
        self.call(lambda: self.broker.move_leader(name, target, self.engine.now))

    def restart_stream(self, name: str, virtual_host: str = "/") -> None:
        """Let the nodes of a stream elect a leader again; its users get a MetadataUpdate."""
        self.call(lambda: self.broker.restart_stream(name, self.engine.now, virtual_host))

    def say_close(
        self, connection: str, code: int = Code.UNKNOWN_FRAME, reason: str = "unknown frame"
    ) -> None:
        """Close a connection as the server does after a bad frame: Close, and the end with its answer."""

        def act() -> None:
            session = self.connection(connection).session
            assert isinstance(session, StreamSession)
            session.close(Code(code), reason, self.engine.now)

        self.call(act)

    def stop_node(self, node: int) -> None:
        """A node (by number, from 1) goes down: its connections end, its streams lose that member."""
        self.call(lambda: self.broker.stop_node(self._node(node), self.engine.now))

    def start_node(self, node: int) -> None:
        """The node comes back."""
        self.call(lambda: self.broker.start_node(self._node(node), self.engine.now))

    def reset(self) -> None:
        """See `FakeServer.reset`; all nodes run."""
        super().reset()
        for number in range(1, len(self.nodes) + 1):
            self.start_node(number)

    def _node(self, number: object) -> Node:
        if not isinstance(number, int) or not 1 <= number <= len(self.nodes):
            raise UsageError(f"expected a node from 1 to {len(self.nodes)}, got {number!r}")
        return self.nodes[number - 1]


def _management(server: RabbitMQStream) -> Management:
    from fakebrokers.rabbitmq_stream.management.api import Management  # aiohttp takes its time to load

    return Management(weakref.proxy(server))  # or it would keep alive a fake that nobody holds


def _switched(
    name: str, heartbeat_s: int | None, frame_max: int | None, real_delays: bool, switches: Mapping[str, Any]
) -> Profile:
    profile = find_profile(PROFILES, name, PROTOCOL.name)
    if real_delays:
        profile = profile.with_delays()
    changes = dict(switches)
    if heartbeat_s is not None:
        changes["heartbeat_s"] = heartbeat_s
    if frame_max is not None:
        changes["frame_max"] = frame_max
    check_names(changes, Profile.__struct_fields__, "switch")
    return msgspec.structs.replace(profile, **changes)
