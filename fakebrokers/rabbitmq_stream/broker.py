"""What all connections of a fake RabbitMQ share: streams, super streams, groups, nodes and users.

Knows no frames. Raises `Refused`, whose code goes into the answer. `now` is monotonic seconds.
Rules: docs/protocols/rabbitmq-stream.md, 6 to 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from fakebrokers.core.session import Broker
from fakebrokers.errors import UsageError
from fakebrokers.rabbitmq_stream.access import Access, User
from fakebrokers.rabbitmq_stream.arguments import parse_arguments, parse_name
from fakebrokers.rabbitmq_stream.chunking import Chunking, Doubling
from fakebrokers.rabbitmq_stream.cluster import Cluster, Node
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.groups import Coordinator
from fakebrokers.rabbitmq_stream.policies import Policies
from fakebrokers.rabbitmq_stream.profile import V4_3, Profile
from fakebrokers.rabbitmq_stream.refusals import Refused
from fakebrokers.rabbitmq_stream.stream import Stream, Watcher
from fakebrokers.rabbitmq_stream.superstreams import PREDECLARED, Binding, SuperStream, parse_bindings
from fakebrokers.rabbitmq_stream.writer import Wall, Writer


class Client(Watcher, Protocol):
    """A connection, as the broker sees it.

    Attributes:
        user: None before the login.
        virtual_host: None before Open.
        node: The node it is connected to.
    """

    user: User | None
    virtual_host: str | None
    node: Node

    def kick(self, now: float) -> None:
        """End the connection without a Close frame, as an operator or a dying node does."""


class StreamBroker(Broker):
    """The broker model.

    Attributes:
        profile: Which server version it is.
        wall: Wall clock: seconds since the Unix epoch for a monotonic `now`.
        cluster: The nodes; one, unless the test gives more.
        access: Users, virtual hosts and limits.
        streams: By virtual host and name.
        super_streams: By virtual host and name.
        coordinator: The groups of single active consumers.
        clients: All connections that are open or opening.
        policies: Limits by the streams' names; call `apply_policies` after a change.
        disk_alarm: Publishers are refused (code 17).
        new_chunking: Makes the chunk rule of each new stream.
    """

    def __init__(
        self,
        profile: Profile = V4_3,
        *,
        wall: Wall,
        cluster: Cluster | None = None,
        new_chunking: Callable[[], Chunking] = Doubling,
    ) -> None:
        self.profile = profile
        self.wall = wall
        self.cluster = cluster or Cluster([Node("rabbit@localhost")])
        self.access = Access()
        self.streams: dict[tuple[str, str], Stream] = {}
        self._open_writers: dict[Writer, None] = {}
        self.super_streams: dict[tuple[str, str], SuperStream] = {}
        self.coordinator = Coordinator()
        self.clients: dict[Client, None] = {}
        self.policies = Policies()
        self.disk_alarm = False
        self.new_chunking = new_chunking

    # --- start and end ------------------------------------------------------------------------

    def reset(self) -> None:
        """Forget all streams, super streams and groups; nodes, users and policies stay."""
        self.streams.clear()
        self._open_writers.clear()
        self.super_streams.clear()
        self.coordinator.clear()
        self.disk_alarm = False

    def step_ended(self, now: float) -> None:
        """Write the chunks that were left open for what else the step might bring."""
        while self._open_writers:
            next(iter(self._open_writers)).end_step(now)

    def restarted(self, now: float) -> None:
        """The broker came back with its disk: no connections, and each stream in a new epoch."""
        self.coordinator.clear()
        for stream in self.streams.values():
            stream.abandon()
            stream.elect(now)

    # --- connections --------------------------------------------------------------------------

    def connected(self, client: Client) -> None:
        """A connection was accepted."""
        self.clients[client] = None

    def disconnected(self, client: Client) -> None:
        """A connection has ended; it has left its streams and groups itself."""
        self.clients.pop(client, None)

    def check_virtual_host(self, user: User, virtual_host: str) -> None:
        """Check that a connection of `user` may open a virtual host.

        Raises:
            Refused: No such virtual host, no access, or too many connections: code 12.
        """
        opened = [
            (client.user.name, client.virtual_host)
            for client in self.clients
            if client.user is not None and client.virtual_host is not None
        ]
        self.access.check_virtual_host(user, virtual_host, opened)

    # --- streams ------------------------------------------------------------------------------

    def create(self, virtual_host: str, name: str, arguments: Mapping[str, str], node: Node) -> Stream:
        """Declare a stream from a connection to `node`.

        Raises:
            Refused: Bad name or argument, or it exists with others: code 17. It exists: code 5.
            Crashed: An argument that is no number.
        """
        key = virtual_host, parse_name(name)
        parsed = parse_arguments(arguments, self.profile)
        present = self.streams.get(key)
        if present is not None:
            same = present.arguments.declared == parsed.declared
            raise Refused(Code.STREAM_ALREADY_EXISTS if same else Code.PRECONDITION_FAILED)
        led = (stream.membership.leader for stream in self.streams.values())  # looked at only if it matters
        membership = self.cluster.place(parsed, node, led)
        stream = Stream(
            *key, parsed, membership, self.wall, self.new_chunking(), self.timers, self._open_writers
        )
        stream.limit(self.policies.of(*key))
        self.streams[key] = stream
        return stream

    def remove(self, virtual_host: str, name: str) -> Stream:
        """Delete a stream; its users are told by `announce`, after the answer to the one who deletes.

        Raises:
            Refused: There is none: code 2.
        """
        stream = self.find(virtual_host, name)
        del self.streams[virtual_host, name]
        self.coordinator.forget_stream(virtual_host, name)
        for super_stream in self.super_streams.values():
            if super_stream.virtual_host == virtual_host:
                super_stream.unbind(name)
        return stream

    def announce(self, streams: Iterable[Stream], now: float) -> None:
        """Send a MetadataUpdate to every connection that uses these streams."""
        for stream in streams:
            stream.lost(now)

    def find(self, virtual_host: str, name: str) -> Stream:
        """The stream of that name.

        Raises:
            Refused: There is none: code 2.
        """
        stream = self.streams.get((virtual_host, name))
        if stream is None:
            raise Refused(Code.STREAM_DOES_NOT_EXIST)
        return stream

    def find_led(self, virtual_host: str, name: str) -> Stream:
        """The stream of that name, if it has a leader.

        Raises:
            Refused: There is none: code 2. No leader: code 6.
        """
        stream = self.find(virtual_host, name)
        if not stream.membership.can_write:
            raise Refused(Code.STREAM_NOT_AVAILABLE)
        return stream

    def find_member(self, virtual_host: str, name: str, node: Node) -> Stream:
        """The stream of that name, if it has a member on `node`.

        Raises:
            Refused: There is none: code 2. No member there: code 6.
        """
        stream = self.find(virtual_host, name)
        if not stream.membership.has_member_on(node):
            raise Refused(Code.STREAM_NOT_AVAILABLE)
        return stream

    # --- policies, users and virtual hosts ----------------------------------------------------

    def apply_policies(self) -> None:
        """Let the policies count, as they are now, for all streams."""
        for key, stream in self.streams.items():
            stream.limit(self.policies.of(*key))

    def delete_user(self, name: str, now: float) -> bool:
        """Delete a user; the connections that logged in as that user end. Whether there was one."""
        user = self.access.users.pop(name, None)
        self._kick(now, lambda client: client.user is not None and client.user.name == name)
        return user is not None

    def delete_virtual_host(self, name: str, now: float) -> bool:
        """Delete a virtual host with all that is in it; its connections end. Whether there was one."""
        if name not in self.access.virtual_hosts:
            return False
        del self.access.virtual_hosts[name]
        self._kick(now, lambda client: client.virtual_host == name)
        for key in [key for key in self.super_streams if key[0] == name]:
            del self.super_streams[key]
        for key in [key for key in self.streams if key[0] == name]:
            self.delete(key[1], now, name)
        self.policies.forget(name)
        for user in self.access.users.values():
            user.permissions.pop(name, None)
        return True

    def _kick(self, now: float, wanted: Callable[[Client], bool]) -> None:
        for client in [client for client in self.clients if wanted(client)]:
            client.kick(now)

    # --- super streams ------------------------------------------------------------------------

    def create_super_stream(
        self,
        virtual_host: str,
        name: str,
        partitions: Sequence[str],
        keys: Sequence[str],
        arguments: Mapping[str, str],
        node: Node,
    ) -> SuperStream:
        """Declare a super stream and its partitions; their default locator is ``balanced``.

        Raises:
            Refused: Differing counts or bad names: code 17. It, or a partition, exists: code 5. Bad
                arguments: code 15, and only if there is a partition to declare with them.
            Crashed: An argument that is no number.
        """
        name = parse_name(name)
        bindings = parse_bindings(partitions, keys)
        arguments = {"queue-leader-locator": "balanced", **arguments}
        taken = any((virtual_host, binding.partition) in self.streams for binding in bindings)
        if taken or (virtual_host, name) in self.super_streams:
            raise Refused(Code.STREAM_ALREADY_EXISTS)
        for binding in bindings:
            try:
                self.create(virtual_host, binding.partition, arguments, node)
            except Refused:
                raise Refused(Code.INTERNAL_ERROR) from None
        super_stream = self.super_streams[virtual_host, name] = SuperStream(virtual_host, name, bindings)
        return super_stream

    def remove_super_stream(self, virtual_host: str, name: str) -> list[Stream]:
        """Delete a super stream and its partitions; their users are told by `announce`.

        Raises:
            Refused: There is none: code 2.
        """
        partitions = self.find_super_stream(virtual_host, name).partitions
        del self.super_streams[virtual_host, name]
        return [self.remove(virtual_host, partition) for partition in partitions]

    def find_super_stream(self, virtual_host: str, name: str) -> SuperStream:
        """The super stream of that name.

        Raises:
            Refused: There is none: code 2.
        """
        super_stream = self.super_streams.get((virtual_host, name))
        if super_stream is None:
            raise Refused(Code.STREAM_DOES_NOT_EXIST)
        return super_stream

    def find_exchange(self, virtual_host: str, name: str) -> SuperStream:
        """What Route and Partitions take for a super stream: any exchange.

        To the one without a name every stream is bound, with its own name as the key.

        Raises:
            Refused: There is none: code 2.
        """
        if name and name not in PREDECLARED:
            return self.find_super_stream(virtual_host, name)
        streams = [stream for host, stream in self.streams if host == virtual_host and not name]
        return SuperStream(virtual_host, name, [Binding(stream, stream, None) for stream in streams])

    def partition_index(self, virtual_host: str, super_stream: str, partition: str) -> int | None:
        """Place of a stream in a super stream; None: it has none there."""
        found = self.super_streams.get((virtual_host, super_stream))
        return None if found is None else found.index(partition)

    # --- the test's side ----------------------------------------------------------------------

    def stream(self, name: str, virtual_host: str = "/") -> Stream:
        """The stream of that name.

        Raises:
            UsageError: There is none.
        """
        try:
            return self.streams[virtual_host, name]
        except KeyError:
            there = ", ".join(sorted(other for host, other in self.streams if host == virtual_host)) or "none"
            raise UsageError(f"no stream {name!r} in {virtual_host!r}; there are: {there}") from None

    def publish(self, name: str, bodies: Sequence[bytes], now: float, virtual_host: str = "/") -> None:
        """Write messages as if a client had published them in one frame.

        Raises:
            UsageError: There is no such stream.
        """
        self.stream(name, virtual_host).publish(bodies, now)

    def delete(self, name: str, now: float, virtual_host: str = "/") -> None:
        """Delete a stream as an operator does.

        Raises:
            UsageError: There is no such stream.
        """
        self.announce([self.remove(virtual_host, self.stream(name, virtual_host).name)], now)

    def move_leader(self, name: str, node: Node | None, now: float, virtual_host: str = "/") -> None:
        """Elect another leader, or none: the epoch rises, and whoever uses the stream is told.

        Raises:
            UsageError: There is no such stream.
        """
        stream = self.stream(name, virtual_host)
        self.coordinator.forget_stream(virtual_host, name)
        stream.membership.lead(node)
        stream.lost(now)
        stream.elect(now)

    def restart_stream(self, name: str, now: float, virtual_host: str = "/") -> None:
        """Elect a leader again, the present one if it runs: as the death of its process makes a server do.

        Raises:
            UsageError: There is no such stream.
        """
        place = self.stream(name, virtual_host).membership
        running = [node for node in place.members if node.up]  # the leader comes first
        self.move_leader(name, next(iter(running), None), now, virtual_host)

    def stop_node(self, node: Node, now: float) -> None:
        """A node goes down: its connections end, the streams that it led get another leader, or none."""
        node.up = False
        self._kick(now, lambda client: client.node is node)
        for stream in list(self.streams.values()):
            if stream.membership.leader is node:
                candidates = [member for member in stream.membership.replicas if member.up]
                self.move_leader(stream.name, next(iter(candidates), None), now, stream.virtual_host)

    def start_node(self, node: Node, now: float) -> None:
        """A node comes back; streams without leader that have a member there get it as leader."""
        node.up = True
        for stream in list(self.streams.values()):
            if stream.membership.leader is None and node in stream.membership.members:
                self.move_leader(stream.name, node, now, stream.virtual_host)
