"""Which nodes a client knows, by what it was handed (docs/protocols/moleculer.md, 3)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from conformance.run.case import Case
from conformance.run.facts import Facts
from conformance.run.showing import shown
from conformance.run.trace import Position
from conformance.run.view import Conn
from fakebrokers.moleculer.packets import Disconnect, Discover, Heartbeat, Info, Packet
from scenarios.moleculer.sweep.tracking import version_of

DEFAULT_TIMEOUT_S = 30.0
UNDER_WAY_S = 0.5  #: in which a question may cross its answer
LATE_S = 1.5  #: what a client may take to miss a node, after the time-out


@dataclass(frozen=True, slots=True)
class Member:
    """A node, as a client may know it.

    Attributes:
        listed: The services that count, as they were announced.
        heard_s: When it was heard last, seconds. An INFO of a node that is there is no sign of life
            (docs/protocols/moleculer.md, 3).
    """

    available: bool = False
    listed: list[Any] = field(default_factory=list)
    seq: int = 0
    instance: Any = None
    heard_s: float = 0.0

    @property
    def services(self) -> list[str]:
        """The names of its services."""
        return [str(one.get("fullName") or one.get("name")) for one in self.listed]

    def reports(self, info: Info, now_s: float) -> Member:
        """An INFO counts if it is newer, of another instance, or of a node that was not there."""
        seq = info.seq if isinstance(info.seq, int) else 1
        heard_s = self.heard_s if self.available else now_s
        if self.available and seq <= self.seq and info.instanceID == self.instance:
            return self
        listed = info.services if isinstance(info.services, list) else []
        return Member(True, listed, seq, info.instanceID, heard_s)

    def gone(self) -> Member:
        """It has left, or was missed."""
        return replace(self, available=False, listed=[])


class Roster:
    """All other nodes. Where a client may have missed one or not yet, both are followed.

    Args:
        timeout_s: After how long without a sign of life a node is missed, and `LATE_S` later at the latest.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._known: dict[str, list[Member]] = {}

    def hear(self, packet: Any, now_s: float) -> None:
        """A packet about its sender."""
        states = self._states(packet.sender, now_s) or [Member()]
        if isinstance(packet, Info):
            states = [one.reports(packet, now_s) for one in states]
        elif isinstance(packet, Heartbeat):
            states = [replace(one, heard_s=now_s) if one.available else one for one in states]
        elif isinstance(packet, Disconnect):
            states = [one.gone() for one in states]
        self._known[packet.sender] = states

    def at(self, now_s: float) -> dict[str, Member | None]:
        """All nodes, by id; None where it cannot be said whether it is missed by then."""
        found: dict[str, Member | None] = {}
        for name in self._known:
            states = self._states(name, now_s)
            is_sure = len({one.available for one in states}) == 1
            found[name] = states[-1] if is_sure else None
        return found

    def _states(self, name: str, now_s: float) -> list[Member]:
        """What a client may know of a node by then, each once."""
        found: list[Member] = []
        for one in self._known.get(name, ()):
            silent_s = now_s - one.heard_s - self._timeout_s
            if not one.available or silent_s < LATE_S:
                found.append(one)
            if one.available and silent_s > 0:
                found.append(one.gone())
        return [one for number, one in enumerate(found) if one not in found[:number]]


def members(case: Case, until: Position, timeout_s: float) -> dict[str, Member | None]:
    """All other nodes at a moment, by id; None where it cannot be said whether it is missed by then."""
    roster = Roster(timeout_s)
    for at, packet in _heard(case, until):
        roster.hear(packet, at.t)
    return roster.at(until.t)


def _heard(case: Case, until: Position) -> Iterator[tuple[Position, Any]]:
    """The packets about nodes that the client was handed, in order; by connecting again it begins anew."""
    connects = [done for done in case.done("connect") if done.begun < until]
    is_one = len({done.args.get("session") for done in connects}) == 1
    since = connects[-1].begun if is_one else None
    version = version_of(seen for conn in case.conns.values() for seen in conn.frames)
    rows = [
        (seen.at, seen.frame)
        for conn in case.conns.values()
        for seen in conn.of("out")
        if isinstance(seen.frame, Info | Heartbeat | Disconnect) and seen.at < until
        if (conn.server_closing is None or seen.at < conn.server_closing)
        and (since is None or since < seen.at)
    ]
    for at, packet in sorted(rows, key=lambda row: row[0]):
        if packet.ver == version and isinstance(packet.sender, str):
            yield at, packet


def _options(case: Case) -> Mapping[str, Any]:
    return next((done.args.get("options") or {} for done in case.done("connect")), {})


def is_silent(case: Case, node: Hashable, at: Position) -> bool:
    """Whether a node that the client knew may be taken for gone by then."""
    there = members(case, at, _options(case).get("heartbeat_timeout_s", DEFAULT_TIMEOUT_S))
    return any(member is None or not member.available for name, member in there.items() if name == node)


def wrong_roster(case: Case, reported: Mapping[str, Any], begun: Position, ended: Position) -> str:
    """What is wrong with what the client says that it knows; "" if nothing is, or it cannot be said."""
    options = _options(case)
    timeout_s = options.get("heartbeat_timeout_s", DEFAULT_TIMEOUT_S)
    own = options.get("node_id")
    rows = {row["id"]: row for row in reported["nodes"]}
    since_s = begun.t - case.slack_s
    late = [at for at, _ in _heard(case, ended) if case.slack_s and since_s <= at.t]  # it need not know them
    problems = [_difference(case, rows, position, timeout_s, own) for position in (begun, ended, *late)]
    return problems[0] if all(problems) else ""


def _difference(case: Case, rows: Mapping[str, Any], at: Position, timeout_s: float, own: Any) -> str:
    for name, member in members(case, at, timeout_s).items():
        if member is None or name == own or not name:
            continue
        row = rows.get(name, {"available": False, "services": []})
        if bool(row["available"]) != member.available:
            return f"{name} is called {'there' if row['available'] else 'gone'}, and it is not so"
        if member.available and sorted(row["services"]) != sorted(member.services):
            return f"{name} offers {shown(member.services)}, the client reports {shown(row['services'])}"
    return ""


def needless(conns: Iterable[Conn], facts: Facts, timeout_s: float) -> Iterator[tuple[Position, str]]:
    """Nodes that are asked who they are, and have announced it on this connection.

    A heartbeat is a reason to ask where its node is not known or was missed, and where it has a seq or an
    instanceID (docs/protocols/moleculer.md, 3). A node that sends more than heartbeats is not judged.
    """
    for conn in conns:
        roster, reported = Roster(timeout_s), dict[str, float]()
        version = version_of(conn.frames)
        rows: list[tuple[Position, Any]] = [
            (one.at, one.to) for one in facts.sent if one.conn is conn and isinstance(one.frame, Discover)
        ]
        packets = [(seen.at, seen.frame) for seen in conn.of("out") if isinstance(seen.frame, Packet)]
        rows += [row for row in packets if row[1].ver == version and isinstance(row[1].sender, str)]
        for at, what in sorted(rows, key=lambda row: row[0]):
            if not isinstance(what, str):
                roster.hear(what, at.t)
                _report(reported, what, at.t)
                continue
            node = what.partition(".")[2]
            member = roster.at(at.t).get(node)
            if reported.get(node, at.t) + UNDER_WAY_S < at.t and member is not None and member.available:
                yield at, f"{conn.name}: DISCOVER asks {node} again, though nothing of it has changed"


def _report(reported: dict[str, float], packet: Packet, now_s: float) -> None:
    """Note since when a node has said who it is, and nothing but that it lives."""
    if isinstance(packet, Info):
        reported.setdefault(packet.sender, now_s)
    elif not isinstance(packet, Heartbeat) or packet.more:
        reported.pop(packet.sender, None)
