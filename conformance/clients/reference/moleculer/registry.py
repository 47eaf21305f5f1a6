"""What the node knows of the others, and whom it chooses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

Json = dict[str, Any]


@dataclass
class Peer:
    """A node; the own one too.

    Attributes:
        heard_at: The last sign of life, monotonic seconds.
    """

    id: str
    seq: int = 0
    instance: Any = None
    services: list[Json] = field(default_factory=list)
    available: bool = False
    heard_at: float = 0.0

    @property
    def names(self) -> list[str]:
        """The names of its services."""
        return [str(each.get("fullName") or each.get("name")) for each in self.services]

    def offers(self, action: str) -> bool:
        """Whether it has the action."""
        listed = [each.get("actions") for each in self.services]
        return any(isinstance(actions, Mapping) and action in actions for actions in listed)

    def groups_for(self, event: str) -> list[str]:
        """The groups of its listeners to an event, each once."""
        found: dict[str, None] = {}
        for service in self.services:
            events = service.get("events")
            for pattern, listener in (events if isinstance(events, Mapping) else {}).items():
                if fits(pattern, event):
                    own = listener.get("group") if isinstance(listener, Mapping) else None
                    found[str(own or service.get("name"))] = None
        return list(found)


class Registry:
    """All nodes that have shown themselves."""

    def __init__(self, own: str) -> None:
        self.own = own
        self.peers: dict[str, Peer] = {own: Peer(own, available=True)}
        self._turns: dict[str, int] = {}

    def __iter__(self) -> Iterator[Peer]:
        return iter(list(self.peers.values()))

    # what others tell

    def info(self, packet: Json, now: float) -> None:
        """An INFO: services count only if it is newer, of another instance, or of a node that was gone."""
        peer = self.peers.setdefault(packet["sender"], Peer(packet["sender"]))
        seq = packet.get("seq")
        seq = seq if isinstance(seq, int) else 1
        if self.counts(peer, seq, packet.get("instanceID")):
            listed = packet.get("services")
            services = listed if isinstance(listed, list) else []
            peer.services = [each for each in services if isinstance(each, dict)]
            peer.seq, peer.instance = seq, packet.get("instanceID")
        if not peer.available:
            peer.available, peer.heard_at = True, now

    def counts(self, peer: Peer, seq: int, instance: Any) -> bool:
        """Whether an INFO tells something new."""
        return not peer.available or seq > peer.seq or instance != peer.instance

    def heartbeat(self, packet: Json, now: float) -> bool:
        """A sign of life. False if the node's INFO is needed."""
        peer = self.peers.get(packet["sender"])
        if peer is None or not peer.available or self.is_outdated(peer, packet):
            return False
        peer.heard_at = now
        return True

    def is_outdated(self, peer: Peer, packet: Json) -> bool:
        """Whether a HEARTBEAT reports a newer INFO."""
        return bool(packet.get("seq", peer.seq) != peer.seq)

    def gone(self, id: str) -> bool:
        """A node is no more; whether it was there."""
        peer = self.peers.get(id)
        if peer is None or not peer.available or id == self.own:
            return False
        peer.available, peer.services = False, []
        return True

    def silent(self, since: float) -> list[str]:
        """Nodes without a sign of life since then."""
        return [p.id for p in self if p.available and p.id != self.own and p.heard_at < since]

    def heard_since(self, now: float) -> float:
        """When the node that is silent for the longest time was heard; now, if there is none."""
        return min((p.heard_at for p in self if p.available and p.id != self.own), default=now)

    # whom to ask

    def choose(self, action: str) -> str | None:
        """The next node that offers an action."""
        return self.next_of(action, [p.id for p in self if p.available and p.offers(action)])

    def reaches(self, node: str, action: str) -> bool:
        """Whether that node is there and offers the action."""
        peer = self.peers.get(node)
        return peer is not None and peer.available and peer.offers(action)

    def next_of(self, what: str, ids: list[str]) -> str | None:
        """One after the other."""
        if not ids:
            return None
        turn = self._turns.get(what, 0)
        self._turns[what] = turn + 1
        return ids[turn % len(ids)]

    def listeners(self, event: str) -> dict[str, list[str]]:
        """By group, the nodes that listen to an event."""
        found: dict[str, list[str]] = {}
        for peer in self:
            for group in peer.groups_for(event) if peer.available else ():
                found.setdefault(group, []).append(peer.id)
        return found


def fits(pattern: str, event: str) -> bool:
    """Whether an event fits: ``*`` one segment, ``**`` any number, ``?`` one character."""
    return _expression(pattern).fullmatch(event) is not None


@lru_cache(maxsize=256)
def _expression(pattern: str) -> re.Pattern[str]:
    words = {"**": ".*", "*": r"[^.]*", "?": "."}
    return re.compile(
        "".join([words.get(part) or re.escape(part) for part in re.split(r"(\*\*|\*|\?)", pattern)])
    )
