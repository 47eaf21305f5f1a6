"""The nodes of a cluster and who leads a stream.

Rules: docs/protocols/rabbitmq-stream.md, 9 "Advertised address".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random

from fakebrokers.errors import UsageError
from fakebrokers.rabbitmq_stream.arguments import StreamArguments


class Node:
    """One broker of the cluster.

    Attributes:
        name: Such as ``rabbit@localhost``.
        host: Advertised host name.
        port: Advertised TCP port.
        tls_port: The one that is advertised to clients which came over TLS.
        up: Whether it runs.
    """

    def __init__(self, name: str, host: str = "localhost", port: int = 5552) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.tls_port = port
        self.up = True

    def __repr__(self) -> str:
        return f"Node({self.name!r}, {self.host!r}, {self.port}, {'up' if self.up else 'down'})"


class Membership:
    """The nodes of a stream.

    Attributes:
        leader: None while none is elected.
        replicas: The members that do not lead.
        available: False: the stream exists but nobody can say where (code 6).
    """

    def __init__(self, leader: Node | None, replicas: Iterable[Node] = ()) -> None:
        self.leader = leader
        self.replicas = list(replicas)
        self.available = True

    @property
    def members(self) -> list[Node]:
        """The leader, if there is one, and the replicas."""
        return ([] if self.leader is None else [self.leader]) + self.replicas

    def has_member_on(self, node: Node) -> bool:
        """Whether consumers may read from `node`."""
        return self.available and node.up and node in self.members

    @property
    def can_write(self) -> bool:
        """Whether there is a leader that runs."""
        return self.available and self.leader is not None and self.leader.up

    def lead(self, node: Node | None) -> None:
        """Make `node` the leader; the former one stays as a replica."""
        if node is self.leader:
            return
        members = self.members
        if node is not None and node not in members:
            members.append(node)
        self.leader = node
        self.replicas = [member for member in members if member is not node]


class Cluster:
    """All nodes, in the order in which they were given.

    Attributes:
        nodes: At least one.
        load_balancer: Connections are spread over the nodes in turn, whatever address they used.
    """

    def __init__(self, nodes: Iterable[Node], *, load_balancer: bool = False, seed: int = 0) -> None:
        self.nodes = list(nodes)
        self.load_balancer = load_balancer
        self._random = Random(seed)
        self._turn = 0

    def node(self, name: str) -> Node:
        """The node of that name.

        Raises:
            UsageError: There is none.
        """
        for node in self.nodes:
            if node.name == name:
                return node
        raise UsageError(f"no node {name!r}; there are: {', '.join(node.name for node in self.nodes)}")

    def accept(self, listener: Node) -> Node:
        """The node that serves a connection which came in at the address of `listener`."""
        alive = [node for node in self.nodes if node.up]
        if not self.load_balancer or not alive:
            return listener
        self._turn += 1
        return alive[(self._turn - 1) % len(alive)]

    def place(self, arguments: StreamArguments, local: Node, led: Iterable[Node | None]) -> Membership:
        """Choose the members of a new stream.

        Args:
            arguments: Locator and number of members.
            local: The node of the connection that declares it.
            led: The leaders of all streams that exist.
        """
        alive = [node for node in self.nodes if node.up] or [local]
        if arguments.locator in {"balanced", "least-leaders"}:
            leaders = Counter(led)
            leader = min(alive, key=lambda node: leaders[node])
        elif arguments.locator == "random":
            leader = self._random.choice(alive)
        else:
            leader = local if local.up else alive[0]
        others = [node for node in self.nodes if node is not leader]
        size = len(self.nodes) if arguments.cluster_size is None else arguments.cluster_size
        return Membership(leader, others[: size - 1])
