"""Both ends of connections between nodes; each is used in one direction only."""

from __future__ import annotations

from collections.abc import Callable

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.session import HangUp, Link, Session
from fakebrokers.moleculer.bus import refusal_of
from fakebrokers.moleculer.packets import Packet, Request
from fakebrokers.moleculer.tcp.carrier import TcpCarrier
from fakebrokers.moleculer.tcp.frames import GossipHello, GossipRequest, GossipResponse


class IncomingSession(Session):
    """A connection that another node opened: it speaks, the fake listens.

    Args:
        find: The connections of the fake node that listens there; None as long as there is none.
    """

    state = "listening"

    def __init__(self, find: Callable[[], TcpCarrier | None]) -> None:
        self._find = find
        self.node = ""

    @property
    def carrier(self) -> TcpCarrier | None:
        """The connections of the fake node that listens here."""
        return self._find()

    def handle(self, frame: Frame, now: float) -> None:
        carrier = self.carrier
        if isinstance(frame, Malformed):
            if frame.code != "packet":  # a packet that cannot be read is no reason
                self.link.hang_up(HangUp.RST)
            elif carrier is not None:
                carrier.node.broken.append(frame.problem)
        elif carrier is not None and carrier.node.alive and isinstance(frame, Packet):
            self._hear(carrier, frame, now)

    def _hear(self, carrier: TcpCarrier, frame: Packet, now: float) -> None:
        if isinstance(frame, GossipHello):
            self._hello(carrier, frame)
        elif isinstance(frame, GossipRequest | GossipResponse):
            carrier.hear_gossip(frame, now)
        else:
            carrier.node.handle(frame, now)

    def _hello(self, carrier: TcpCarrier, frame: GossipHello) -> None:
        if isinstance(frame.sender, str) and isinstance(frame.port, int):
            host = self.link.address.rpartition(":")[0] or str(frame.host)
            carrier.gossip.address(frame.sender, host, frame.port)
            if isinstance(frame.ver, str):
                carrier.node.versions.setdefault(frame.ver)
            self.node = frame.sender
            self.link.identify(frame.sender)
            self.link.ready()

    def answers_on(self) -> Link:
        carrier = self.carrier
        link = carrier.links.get(self.node) if carrier is not None else None
        return link or self.link

    def refusal(self, frame: Frame, code: int, now: float) -> Frame | None:
        return refusal_of(frame, code) if isinstance(frame, Request) else None


class OutgoingSession(Session):
    """A connection that a fake node has opened to another: the fake speaks, HELLO first."""

    state = "speaking"

    def __init__(self, carrier: TcpCarrier, target: str) -> None:
        self.carrier = carrier
        self.target = target

    def opened(self, now: float) -> None:
        self.link.identify(self.target)
        self.carrier.dialled(self.target, self.link)
        self.link.ready()

    def handle(self, frame: Frame, now: float) -> None:
        """Nodes say nothing on connections that others have opened."""

    def closed(self, now: float) -> None:
        self.carrier.hung_up(self.target, self.link, now)
