"""What a fake node knows of the others (docs/protocols/moleculer.md, 3 "Life of a node")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fakebrokers.moleculer.packets import Heartbeat, Info
from fakebrokers.moleculer.services import matches


@dataclass
class Peer:
    """Another node.

    Attributes:
        seq: Of its last INFO that counted.
        available: Whether it is called.
        heard_at: When it gave the last sign of life, in monotonic seconds.
        version: The protocol that it speaks.
    """

    id: str
    instance: Any = ""
    seq: int = 0
    services: list[Any] = field(default_factory=list)
    available: bool = False
    heard_at: float = 0.0
    version: str = ""
    cpu: Any = None

    def actions(self) -> Iterator[str]:
        """The full names of the actions that it offers."""
        for service in self.services:
            yield from (service.get("actions") or {}) if isinstance(service, dict) else ()

    def groups_for(self, event: str) -> list[str]:
        """The groups of its listeners to an event."""
        found: dict[str, None] = {}
        for service in self.services:
            events = service.get("events") if isinstance(service, dict) else None
            for pattern, listener in (events or {}).items():
                if matches(pattern, event):
                    group = listener.get("group") if isinstance(listener, dict) else None
                    found[group or service.get("name", "")] = None
        return list(found)


class Peers:
    """All other nodes that one fake node has heard of."""

    def __init__(self) -> None:
        self._peers: dict[str, Peer] = {}
        self._turn = 0

    def __iter__(self) -> Iterator[Peer]:
        return iter(self._peers.values())

    def get(self, node: str) -> Peer | None:
        """The node of that id, if it has shown."""
        return self._peers.get(node)

    def info(self, packet: Info, now: float) -> None:
        """An INFO; services count only if it is newer, or the node was gone, or is another instance."""
        peer = self._peers.setdefault(str(packet.sender), Peer(str(packet.sender)))
        seq = packet.seq if isinstance(packet.seq, int) else 1
        if seq > peer.seq or not peer.available or packet.instanceID != peer.instance:
            peer.services = packet.services if isinstance(packet.services, list) else []
            peer.seq, peer.instance = seq, packet.instanceID
        if not peer.available:
            peer.heard_at = now
        peer.available = True
        peer.version = str(packet.ver)

    def heartbeat(self, packet: Heartbeat, now: float) -> bool:
        """A sign of life; False if the node's INFO is needed first."""
        peer = self._peers.get(str(packet.sender))
        if peer is None or not peer.available:
            return False
        seq, instance = packet.more.get("seq"), packet.more.get("instanceID")
        if seq not in (None, peer.seq):
            return False
        if instance is not None and not str(peer.instance).startswith(str(instance)):
            return False
        peer.heard_at, peer.cpu = now, packet.cpu
        return True

    def gone(self, node: str) -> None:
        """The node stops, or was silent for too long."""
        peer = self._peers.get(node)
        if peer is not None:
            peer.available = False
            peer.services = []

    def silent_since(self, limit: float) -> list[str]:
        """Available nodes without a sign of life since then."""
        return [peer.id for peer in self if peer.available and peer.heard_at < limit]

    def choose(self, action: str) -> str:
        """The next node that offers an action; "" if none does."""
        there = [peer.id for peer in self if peer.available and action in peer.actions()]
        self._turn += 1
        return there[self._turn % len(there)] if there else ""
