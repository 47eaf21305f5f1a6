"""What all connections share: domains and queues. Knows no frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from fakebrokers.blazingmq.cluster import Node
from fakebrokers.blazingmq.codes import Category
from fakebrokers.blazingmq.domains import Domain, Domains
from fakebrokers.blazingmq.guid import GuidMaker
from fakebrokers.blazingmq.handle import Client, Handle
from fakebrokers.blazingmq.host import Usage
from fakebrokers.blazingmq.profile import Profile
from fakebrokers.blazingmq.queue import Queue
from fakebrokers.blazingmq.refusals import Refused
from fakebrokers.blazingmq.uri import Uri, parse_uri
from fakebrokers.core.session import Broker
from fakebrokers.errors import UsageError

_MAKER = b"FakeBr"
#: How often a broker that goes down looks for what is unconfirmed, seconds.
_LOOK_S = 1.0


class Session(Client, Protocol):
    """A connection, as the broker sees it."""

    node: Node

    def flush(self) -> None:
        """Say what was pushed."""

    @property
    def unconfirmed(self) -> int:
        """Messages that the client has."""

    def shut_down(self) -> None:
        """The broker goes down: no deliveries, no queues that open or close."""

    def kick(self) -> None:
        """End at once."""


class BlazingBroker(Broker):
    """One broker, or a cluster of them.

    Args:
        profile: Which broker it is.
        wall: Seconds since 1970 at a monotonic time.
        domains: None: those that need no configuration.
        nodes: At least one.

    Attributes:
        sessions: All connections.
        queues: By canonical name.
        guids: Makes the GUIDs of clients that make none.
        now: See `host.Host`.
    """

    def __init__(
        self,
        profile: Profile,
        *,
        wall: Callable[[float], float] = lambda now: now,
        domains: Domains | None = None,
        nodes: list[Node] | None = None,
    ) -> None:
        self.profile = profile
        self.wall = wall
        self.domains = domains or Domains()
        self.nodes = nodes or [Node("fake-1")]
        self.sessions: dict[Session, None] = {}
        self.queues: dict[str, Queue] = {}
        self.guids = GuidMaker(_MAKER)
        self.now = 0.0
        self._negotiated = 0
        self._usage: dict[str, Usage] = {}
        self._pushed: dict[Session, None] = {}
        self._touched: dict[Callable[[float], None], None] = {}

    def reset(self) -> None:
        self.queues.clear()
        self._usage.clear()
        self._pushed.clear()
        self._touched.clear()

    # queues

    def open(
        self, client: Client, uri: str, q_id: int, app_id: str, sub_id: int, reads: int, writes: int
    ) -> Handle:
        """A handle to a queue, with these readers and writers more.

        Raises:
            Refused: It may not be opened like that.
        """
        name = parse_uri(uri)
        queue = self._queue(name)
        queue.openings.check(queue.domain, app_id, sub_id, reads, writes)
        handle = client.handles.get(q_id)
        if handle is None or handle.queue is not queue:
            handle = Handle(queue, client, q_id)
            queue.handles[handle] = None
        handle.open(app_id, sub_id, reads, writes)
        return handle

    def _queue(self, name: Uri) -> Queue:
        queue = self.queues.get(name.canonical)
        if queue is None:
            domain = self.domains.find(name.domain)
            there = [each for each in self.queues if parse_uri(each).domain == name.domain]
            if domain.max_queues and len(there) >= domain.max_queues:
                raise Refused(Category.E_REFUSED, "maximum number of queues reached", -205)
            usage = self._usage.setdefault(name.domain, Usage())
            queue = self.queues[name.canonical] = Queue(name.canonical, domain, usage, self)
        return queue

    def queue(self, uri: str) -> Queue:
        """A queue that is there, by its name.

        Raises:
            UsageError: There is none; with those there are.
        """
        try:
            return self.queues[parse_uri(uri).canonical]
        except (KeyError, Refused):
            there = ", ".join(self.queues) or "none"
            raise UsageError(f"no queue {uri!r}; there are: {there}") from None

    def make_queue(self, uri: str) -> Queue:
        """A queue, made if it is not there yet.

        Raises:
            UsageError: The name or its domain cannot be.
        """
        try:
            return self._queue(parse_uri(uri))
        except Refused as refused:
            raise UsageError(f"queue {uri!r}: {refused.text}") from None

    def configure_domain(self, name: str, fields: Domain | Mapping[str, Any]) -> None:
        """Change a domain, for the queues that it has too; their apps stay."""
        domain = self.domains.configure(name, fields)
        for queue in self.queues.values():
            if parse_uri(queue.uri).domain == name:
                queue.reconfigure(domain)

    # connections

    def connected(self, session: Session) -> None:
        """A connection stands."""
        self.sessions[session] = None

    def disconnected(self, session: Session) -> None:
        """It is gone."""
        self.sessions.pop(session, None)
        self._pushed.pop(session, None)

    def negotiated(self) -> int:
        """A client has said who it is; how many have by now."""
        self._negotiated += 1
        return self._negotiated

    def pushed(self, session: Session) -> None:
        """A session has deliveries to say."""
        self._pushed[session] = None

    def touched(self, look: Callable[[float], None]) -> None:
        """See `host.Host`."""
        self._touched[look] = None

    def flush(self) -> None:
        """Say all deliveries, each session's in one event; then messages that are too old go."""
        while self._pushed:
            session, _ = self._pushed.popitem()
            session.flush()
        while self._touched:
            look, _ = self._touched.popitem()
            look(self.now)

    # nodes

    def stop_node(self, node: Node) -> None:
        """A broker goes down: its connections end, and it takes no new ones."""
        node.up = False
        for session in list(self.sessions):
            if session.node is node:
                session.kick()

    def shut_down(self, node: Node, timeout_s: float, now: float) -> None:
        """A broker goes down in order: its connections end together, once what was delivered is confirmed.

        It looks every second, until `timeout_s` have passed.
        """
        node.stopping = True
        for session in list(self.sessions):
            if session.node is node:
                session.shut_down()
        until = now + timeout_s

        def look(now: float) -> None:
            there = [each for each in self.sessions if each.node is node]
            if node.stopping and now < until and any(each.unconfirmed for each in there):
                timer.set(min(now + _LOOK_S, until))
            elif node.stopping:
                for each in there:
                    each.kick()

        timer = self.timers.new(look)
        look(now)

    def start_node(self, node: Node) -> None:
        """It comes back."""
        if node.stopping:
            self.stop_node(node)
        node.up = True
        node.stopping = False
