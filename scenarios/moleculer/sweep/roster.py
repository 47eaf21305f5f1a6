"""Which nodes a client knows, by what it was handed (docs/protocols/moleculer.md, 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance.sweep.case import Case
from conformance.sweep.tape import Moment
from fakebrokers.moleculer.packets import Disconnect, Heartbeat, Info
from scenarios.moleculer.sweep.tracking import version_of

DEFAULT_TIMEOUT_S = 30.0
LATE_S = 1.5  #: what a client may take to miss a node, behind the time-out


class Member:
    """A node, as the packets tell it."""

    def __init__(self) -> None:
        self.available = False
        self.services: list[str] = []
        self.listed: list[Any] = []
        self.seq = 0
        self.instance: Any = None
        self.heard_s = 0.0

    def tells(self, info: Info) -> None:
        """An INFO counts if it is newer, of another instance, or of a node that was not there."""
        seq = info.seq if isinstance(info.seq, int) else 1
        if not self.available or seq > self.seq or info.instanceID != self.instance:
            listed = info.services if isinstance(info.services, list) else []
            self.listed = listed
            self.services = [str(one.get("fullName") or one.get("name")) for one in listed]
            self.seq, self.instance = seq, info.instanceID


def members(case: Case, until: Moment, timeout_s: float) -> dict[str, Member | None]:
    """All other nodes at a moment, by id; None where it cannot be said whether it is missed by then."""
    found: dict[str, Member] = {}
    unsure: dict[str, float] = {}  #: until when clients may find out that a node was silent
    for at, packet in _heard(case, until):
        member = found.setdefault(packet.sender, Member())
        silent_s = at.t - member.heard_s
        if member.available and silent_s > timeout_s:
            member.available, member.services, member.listed = False, [], []
            if silent_s < timeout_s + LATE_S:
                unsure[packet.sender] = member.heard_s + timeout_s + LATE_S
        if isinstance(packet, Info):
            member.tells(packet)
            if not member.available:
                member.available, member.heard_s = True, at.t
            if unsure.get(packet.sender, at.t) <= at.t:  # an INFO alone is no sign of life (chapter 3)
                unsure.pop(packet.sender, None)
        elif isinstance(packet, Heartbeat) and member.available:
            member.heard_s = at.t
        elif isinstance(packet, Disconnect):
            member.available, member.services, member.listed = False, [], []
            unsure.pop(packet.sender, None)
    for name, member in found.items():
        silent_s = until.t - member.heard_s
        if member.available and silent_s > timeout_s:
            member.available, member.services, member.listed = False, [], []
            if silent_s < timeout_s + LATE_S:
                unsure[name] = until.t
    return {name: None if name in unsure else member for name, member in found.items()}


def _heard(case: Case, until: Moment) -> Iterator[tuple[Moment, Any]]:
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
        if (conn.goodbye is None or seen.at < conn.goodbye) and (since is None or since < seen.at)
    ]
    for at, packet in sorted(rows, key=lambda row: row[0]):
        if packet.ver == version and isinstance(packet.sender, str):
            yield at, packet


def _options(case: Case) -> Mapping[str, Any]:
    return next((done.args.get("options") or {} for done in case.done("connect")), {})


def is_silent(case: Case, at: Moment) -> bool:
    """Whether a node that the client knew may be taken for gone by then."""
    there = members(case, at, _options(case).get("heartbeat_timeout_s", DEFAULT_TIMEOUT_S))
    return any(member is None or not member.available for member in there.values())


def wrong_roster(case: Case, told: Mapping[str, Any], begun: Moment, ended: Moment) -> str:
    """What is wrong with what the client says that it knows; "" if nothing is, or it cannot be said."""
    options = _options(case)
    timeout_s = options.get("heartbeat_timeout_s", DEFAULT_TIMEOUT_S)
    own = options.get("node_id")
    rows = {row["id"]: row for row in told["nodes"]}
    since_s = begun.t - case.slack_s
    late = [at for at, _ in _heard(case, ended) if case.slack_s and since_s <= at.t]  # it need not know them
    problems = [_difference(case, rows, moment, timeout_s, own) for moment in (begun, ended, *late)]
    return problems[0] if all(problems) else ""


def _difference(case: Case, rows: Mapping[str, Any], at: Moment, timeout_s: float, own: Any) -> str:
    for name, member in members(case, at, timeout_s).items():
        if member is None or name == own or not name:
            continue
        row = rows.get(name, {"available": False, "services": []})
        if bool(row["available"]) != member.available:
            return f"{name} is called {'there' if row['available'] else 'gone'}, and it is not so"
        if member.available and sorted(row["services"]) != sorted(member.services):
            return f"{name} offers {member.services}, told was {row['services']}"
    return ""
