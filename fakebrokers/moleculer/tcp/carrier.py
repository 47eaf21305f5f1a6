"""How a fake node's packets travel without a server: over connections that it opens itself."""

from __future__ import annotations

from collections.abc import Callable

from fakebrokers.core.session import Link
from fakebrokers.core.timers import Timers
from fakebrokers.moleculer.nodes import FakeNode
from fakebrokers.moleculer.packets import Packet
from fakebrokers.moleculer.serializers import Serializer
from fakebrokers.moleculer.speaker import Speaker
from fakebrokers.moleculer.tcp.frames import NUMBERS, GossipHello, GossipRequest, GossipResponse
from fakebrokers.moleculer.tcp.gossip import Gossip

#: Packets that wait for a connection.
MAX_WAITING = 1000

#: Opens a connection to a node: its id, host, port, and what is called if nobody accepts.
Dial = Callable[["TcpCarrier", str, str, int, Callable[[], None]], None]


class TcpCarrier:
    """The connections of one fake node (`nodes.Carrier`).

    Args:
        dial: Opens connections.
        serializer: Of the node's packets.
        period_s: Seconds between two rounds of gossip.

    Attributes:
        links: The connections that it has opened, by the nodes at their other ends.
    """

    gossips = True
    node: FakeNode
    gossip: Gossip

    def __init__(self, dial: Dial, serializer: Serializer, timers: Timers, period_s: float) -> None:
        self.links: dict[str, Link] = {}
        self.port = 0
        self.host = "127.0.0.1"
        self._dial = dial
        self.serializer = serializer
        self._period_s = period_s
        self._waiting: dict[str, list[Packet]] = {}
        self._timers = timers

    @property
    def is_used(self) -> bool:
        """Whether its node is there."""
        node = getattr(self, "node", None)
        return node is not None and node.alive

    def join(self, node: FakeNode) -> None:
        """Begin to gossip."""
        self.node = node
        self.gossip = Gossip(node)
        self.gossip.port = self.port
        self._rounds = self._timers.new(self._round)
        self._rounds.set(self._period_s)

    def started(self, now: float) -> None:
        """The clock of the gossip starts."""
        self._rounds.set(now + self._period_s)

    def balance(self, node: FakeNode, actions: list[str], events: list[tuple[str, str]]) -> None:
        """There is nobody who could choose."""

    def leave(self, node: FakeNode) -> None:
        """Close all connections."""
        self._rounds.drop()
        for link in tuple(self.links.values()):
            link.hang_up()

    # packets

    def send(self, node: Speaker, packet: Packet, target: str, now: float) -> None:
        """To one node; what is for all nodes is gossip's business."""
        if not target or type(packet) not in NUMBERS:
            return
        link = self.links.get(target)
        if link is not None:
            link.say(packet)
            return
        waiting = self._waiting.get(target)
        if waiting is not None:
            if len(waiting) < MAX_WAITING:
                waiting.append(packet)
            return
        known = self.gossip.known.get(target)
        if known is not None and known.port:
            self._waiting[target] = [packet]
            self._dial(self, target, known.host, known.port, lambda: self._refused(target))

    def send_balanced(self, node: Speaker, packet: Packet, rest: str, now: float) -> None:
        """There is nobody who could choose."""

    def send_raw(self, node: FakeNode, command: str, payload: bytes, target: str, now: float) -> None:
        """Bytes in place of a packet cannot be said as a frame here: `say_raw` of the fake does that."""

    def dialled(self, target: str, link: Link) -> None:
        """A connection stands: HELLO, then what has waited for it."""
        self.links[target] = link
        hello = GossipHello(host=self.host, port=self.port)
        link.say(self.node.signed(hello, self.node.version_for(target)))
        for packet in self._waiting.pop(target, []):
            link.say(packet)

    def _refused(self, target: str) -> None:
        self._waiting.pop(target, None)
        self.gossip.lost(target, self.node.now)

    def hung_up(self, target: str, link: Link, now: float) -> None:
        """A connection to a node is gone: so is the node, until it shows again."""
        if self.links.get(target) is link:
            del self.links[target]
            self.gossip.lost(target, now)

    # gossip

    def found(self, id: str, host: str, port: int, now: float) -> None:
        """Another node has called out where it listens: ask it, if it is not known yet."""
        known = self.gossip.known.get(id)
        if known is None or not known.online:
            self.gossip.address(id, host, port)
            self.send(self.node, self.gossip.signed(self.gossip.request()), id, now)

    def hear_gossip(self, packet: GossipRequest | GossipResponse, now: float) -> None:
        """Another node asks, or answers."""
        self.node.received.append(packet)
        if isinstance(packet, GossipResponse):
            self.gossip.learn(packet, now)
            return
        answer = self.gossip.answer(packet, now)
        sender = str(packet.sender)
        known = self.gossip.known.get(sender)
        if answer is not None:
            self.send(self.node, self.gossip.signed(answer), sender, now)
        if known is not None and not known.online:  # its INFO is wanted: ask at once, not in the next round
            self.send(self.node, self.gossip.signed(self.gossip.request()), sender, now)

    def _round(self, now: float) -> None:
        """Ask one node that is online, and perhaps one that is not."""
        self._rounds.set(now + self._period_s)
        self.gossip.cpu_seq += 1
        random = self.node.random
        online = [id for id, known in self.gossip.known.items() if known.online]
        offline = [id for id, known in self.gossip.known.items() if not known.online and known.port]
        chosen = [online[random.randrange(len(online))]] if online else []
        if offline and random.random() < len(offline) / (len(online) + 1):
            chosen.append(offline[random.randrange(len(offline))])
        for target in chosen:
            self.send(self.node, self.gossip.signed(self.gossip.request()), target, now)
