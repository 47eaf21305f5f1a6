"""To whom calls and events of the client go, by what it was sent (docs/protocols/moleculer.md, 4.5, 4.8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import UNSET

from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.facts import Sent
from conformance.run.showing import shown
from conformance.run.trace import Position
from fakebrokers.moleculer.packets import Event, Info, Request
from fakebrokers.moleculer.services import matches
from scenarios.moleculer.sweep.contents import OBJECTS, gives_stream, has_params, is_first
from scenarios.moleculer.sweep.roster import DEFAULT_TIMEOUT_S, members
from scenarios.moleculer.sweep.tracking import VERSION

SAME_S = 0.002
ENOUGH_CALLS = 8  #: for each node; chance leaves none of three out in as many, but once in five thousand
SETTLED_S = 1.0  #: after a change of the own services it is not known what the client knows of itself
Groups = dict[str, set[str]]


def options_of(case: Case, session: str) -> Mapping[str, Any]:
    """Those of the session's connect."""
    for done in case.done("connect"):
        if done.args["session"] == session:
            found: Mapping[str, Any] = done.args["options"]
            return found
    return {}


def wrong_sending(case: Case, done: RunOp) -> str:
    """What is wrong with what was sent for a call or an event; "" if nothing is, or it cannot be said."""
    problem = _wrong_at(case, done, done.begun)
    if problem and all(_wrong_at(case, done, position) for position in _about(case, done.begun)):
        return problem.replace("\r", "\\r").replace("\n", "\\n")  # an event may be called anything
    return ""


def _about(case: Case, begun: Position) -> Iterator[Position]:
    """Moments about then, one for each record that reached the client: in the same instant, it is not known
    which it has read first."""
    first = last = begun.row
    while first > 0 and case.rows[first - 1].t >= begun.t - case.slack_s and case.slack_s:
        first -= 1
    while last + 1 < len(case.rows) and case.rows[last + 1].t <= begun.t + SAME_S + case.slack_s:
        last += 1
    for row in range(first, last + 1):
        if case.rows[row].what == "out":
            yield Position(row, -1, case.rows[row].t)
            yield Position(row, 1_000, case.rows[row].t)
    yield Position(last, 1_000, case.rows[last].t)


def _wrong_at(case: Case, done: RunOp, at: Position) -> str:
    options = options_of(case, done.args.get("session", "s1"))
    if case.notes.has_several_sessions or not _is_steady(case, done):
        return ""
    there = members(case, at, options.get("heartbeat_timeout_s", DEFAULT_TIMEOUT_S))
    if any(member is None for member in there.values()):
        return ""
    own = str(options.get("node_id"))
    offers: dict[str, list[Any]] = {
        name: member.listed for name, member in there.items() if member and member.available and name != own
    }
    services = _own_services(case, done.begun)
    if done.op == "mol.call":
        return "" if _offers(services, done.args["action"]) else _wrong_call(case, done, options, offers)
    return _wrong_event(case, done, options, offers, {own: services})


def _is_steady(case: Case, done: RunOp) -> bool:
    """Whether a connection works from well before the op to its end, and nothing changes about then."""
    assert done.ended is not None
    changes = [one.begun.t for one in case.done("mol.serve", "mol.unserve", "mol.listen")]
    if any(done.begun.t - SETTLED_S < change <= done.begun.t for change in changes):
        return False
    serving = [conn for conn in case.conns.values() if conn.serves(done.begun)]
    return len(serving) == 1 and (serving[0].lost() is None or serving[0].lost().t > done.begun.t + 0.01)  # type: ignore[union-attr]


def _own_services(case: Case, at: Position) -> list[Any]:
    rows = [
        (seen.at, seen.frame)
        for conn in case.conns.values()
        for seen in conn.of("in")
        if isinstance(seen.frame, Info) and seen.at < at
    ]
    last = max(rows, key=lambda row: row[0], default=None)
    services: Any = [] if last is None else last[1].services
    return services if isinstance(services, list) else []


def _offers(services: Iterable[Any], action: str) -> bool:
    return any(isinstance(one, Mapping) and action in (one.get("actions") or {}) for one in services)


def neglected(case: Case) -> str:
    """A node that could have answered all calls, and was never asked; "" if there is none, or none is known.

    A node is chosen for each call, by turns or at random (docs/protocols/moleculer.md, 4.8).
    """
    if case.notes.has_several_sessions or case.hits:
        return ""
    calls: dict[str, list[RunOp]] = {}
    for done in case.done("mol.call"):
        if not done.args.get("node") and done.result is not None and done.result.ok:
            calls.setdefault(done.args["action"], []).append(done)
    for action, those in calls.items():
        options = options_of(case, those[0].args.get("session", "s1"))
        if len(those) < ENOUGH_CALLS or options.get("disable_balancer"):
            continue
        timeout_s = options.get("heartbeat_timeout_s", DEFAULT_TIMEOUT_S)
        able = [_able(members(case, done.begun, timeout_s), action) for done in those]
        asked = {str(one.to).partition(".")[2] for one in case.facts.sent if _asks(one.frame, action)}
        left = set.intersection(*able) - asked
        if len(those) >= ENOUGH_CALLS * len(set.union(*able)) and left:
            return f"{len(those)} calls of {action}, and none for {_nodes(left)}"
    return ""


def _asks(frame: Any, action: str) -> bool:
    return isinstance(frame, Request) and frame.action == action


def _able(there: Mapping[str, Any], action: str) -> set[str]:
    return {name for name, one in there.items() if one and one.available and _offers(one.listed, action)}


# calls


def _wrong_call(case: Case, done: RunOp, options: Mapping[str, Any], there: Mapping[str, list[Any]]) -> str:
    assert done.ended is not None and done.result is not None
    action, node = done.args["action"], done.args.get("node", "")
    if any(_is_alike(done, one) for one in case.done("mol.call")) or done.result.word == "invalid":
        return ""
    asked = [
        one for one in case.facts.sent
        if isinstance(one.frame, Request) and is_first(one.frame) and one.frame.action == action
        and (has_params(done.args, one.frame) or _is_in_its_place(done, one.frame))
        and done.begun < one.at < done.ended
    ]  # fmt: skip
    is_in_place = any(_is_in_its_place(done, one.frame) for one in asked)  # type: ignore[arg-type]
    if is_in_place and any(_is_alike_without_params(done, one) for one in case.done("mol.call")):
        return ""
    able = {name for name, services in there.items() if _offers(services, action)}
    if node:
        able &= {node}
    if able and not asked and (otherwise := _asked_otherwise(case, done)):
        given = shown(done.args.get("params"))
        return f"{action} was asked with {shown(otherwise.params)}, the application gave {given}"
    if len(asked) != (1 if able else 0):
        return f"{action} was asked {len(asked)} times, {_nodes(able)} can answer"
    return wrong_request(done.args, asked[0].frame, str(asked[0].to), able, options) if asked else ""


def _asked_otherwise(case: Case, done: RunOp) -> Request | None:
    """A request that was sent for the action of a call, with parameters that no call at the time has."""
    calls = [one for one in case.done("mol.call") if _is_meanwhile(done, one)]
    for one in case.facts.sent:
        frame = one.frame
        if not isinstance(frame, Request) or not is_first(frame) or frame.action != done.args["action"]:
            continue
        is_its = done.begun < one.at and (done.ended is None or one.at < done.ended)
        if is_its and not any(has_params(c.args, frame) or _is_in_its_place(c, frame) for c in calls):
            return frame
    return None


def _is_in_its_place(done: RunOp, frame: Request) -> bool:
    """Before version 5 a stream is in the place of the parameters."""
    return frame.params is None and frame.ver != VERSION and gives_stream(done.args)


def _is_alike(done: RunOp, other: RunOp) -> bool:
    """Whether the requests of another call could be those of this one."""
    if other is done:
        return False
    is_same = all(done.args.get(name) == other.args.get(name) for name in ("action", "params"))
    return other.args == done.args or (_is_meanwhile(done, other) and is_same)


def _is_alike_without_params(done: RunOp, other: RunOp) -> bool:
    """The same as `_is_alike`, where streams are in the place of the parameters."""
    is_same = gives_stream(other.args) and other.args.get("action") == done.args.get("action")
    return other is not done and is_same and _is_meanwhile(done, other)


def _is_meanwhile(done: RunOp, other: RunOp) -> bool:
    return other.begun < (done.ended or other.begun) and (not other.ended or done.begun < other.ended)


def wrong_request(
    args: Mapping[str, Any], frame: Any, to: str, able: set[str], options: Mapping[str, Any]
) -> str:
    """What is wrong with the only request of a call with these arguments; "" if nothing is."""
    command, _, rest = to.partition(".")
    balances = options.get("disable_balancer") and not args.get("node")
    if balances and (command, rest) != ("REQB", frame.action):
        return f"{frame.action} was asked on {to}; without the balancer it is asked on REQB.{frame.action}"
    if not balances and (command != "REQ" or rest not in able):
        return f"{frame.action} was asked on {to}, {_nodes(able)} can answer"
    marks = frame.headers
    meta = {} if frame.meta is UNSET else frame.meta  # that it is missing is reported by `legal`
    if not isinstance(marks, Mapping):  # version 4 has no headers: the mark is in meta
        marks, meta = meta, {name: value for name, value in meta.items() if name != OBJECTS}
    if meta != (args.get("meta") or {}):
        given = shown(args.get("meta") or {})
        return f"the REQ of {frame.action} has meta {shown(meta)}, the application gave {given}"
    wanted, said = gives_stream(args), False if frame.stream in (UNSET, None) else frame.stream
    if bool(marks.get(OBJECTS)) is not ("objects" in args):
        given = "objects" if "objects" in args else "no objects"
        mark = f"{OBJECTS} {shown(marks.get(OBJECTS))}"
        return f"the REQ of {frame.action} has {mark}, the application gave {given}"
    if wrong := _wrong_root(frame):
        return f"the REQ of {frame.action}, which the application itself calls: {wrong}"
    return "" if said is wanted else f"the REQ of {frame.action} has stream {shown(frame.stream)}"


def _wrong_root(frame: Any) -> str:
    """What is wrong with a request that none has caused: its level, and whom it names as its cause."""
    fields: dict[str, tuple[Any, Any]] = {
        "level": (frame.level, 1),
        "parentID": (None if frame.parentID is UNSET else frame.parentID, None),
        "requestID": (frame.requestID, frame.id),
        "caller": (frame.caller or None, None),  # an empty text names no caller
    }
    return ", ".join(
        f"expected {name} {shown(wanted)}, got {shown(got)}"
        for name, (got, wanted) in fields.items()
        if got != wanted
    )


def _nodes(able: Iterable[str]) -> str:
    return ", ".join(sorted(able)) or "no node"


# events


def _groups(there: Mapping[str, list[Any]], event: str) -> Groups:
    """The nodes that listen to an event, by group."""
    found: Groups = {}
    for node, services in there.items():
        for service in services:
            events = service.get("events") if isinstance(service, Mapping) else None
            for pattern, listener in (events if isinstance(events, Mapping) else {}).items():
                if matches(pattern, event):
                    own = listener.get("group") if isinstance(listener, Mapping) else None
                    found.setdefault(str(own or service.get("name")), set()).add(node)
    return found


def _wrong_event(
    case: Case,
    done: RunOp,
    options: Mapping[str, Any],
    there: Mapping[str, list[Any]],
    own: Mapping[str, list[Any]],
) -> str:
    assert done.ended is not None and done.result is not None
    event, only = done.args["event"], done.args.get("groups")
    sent = _events_of(case, done)
    if not done.result.ok:
        return ""
    for one in sent:
        if one.frame.data != done.args.get("data"):  # type: ignore[attr-defined]
            data, given = shown(one.frame.data), shown(done.args.get("data"))  # type: ignore[attr-defined]
            return f"{event} was sent with {data}, the application gave {given}"
    chosen = {g: nodes for g, nodes in _groups(there, event).items() if only is None or g in only}
    local = _groups(own, event)
    if done.op == "mol.broadcast":
        wrong = _wrong_broadcast(event, sent, set().union(*chosen.values()), set(own))
        return wrong or _wrong_groups(event, sent, only, balances=not options.get("disable_balancer"))
    if options.get("disable_balancer"):
        wanted = Counter(f"EVENTB.{group}.{event}" for group in chosen if group not in local)
        got = Counter(str(one.to) for one in sent)
        is_right = all(got[to] == wanted[to] for to in wanted)
        return "" if is_right else f"{event} was sent to {_listed(got)}, it is for {_listed(wanted)}"
    return _wrong_emit(event, sent, chosen, set(local))


def _events_of(case: Case, done: RunOp) -> list[Sent]:
    """What was sent for an emit or a broadcast: while it was open, and where time is real, a little later.

    Where another one of that name is so near that what was sent may be its, the data decide whose it is.
    """
    assert done.ended is not None
    event, until_s = done.args["event"], done.ended.t + case.slack_s
    near = [
        one for one in case.done("mol.emit", "mol.broadcast")
        if one is not done and one.args["event"] == event and one.begun.t <= until_s
        if one.ended is None or one.ended.t >= done.begun.t - case.slack_s
    ]  # fmt: skip
    return [
        one for one in case.facts.sent
        if isinstance(one.frame, Event) and one.frame.event == event
        and done.begun < one.at and case.may_precede(one.at, done.ended)
        and (not near or not case.slack_s or one.frame.data == done.args.get("data"))
    ]  # fmt: skip


def _listed(topics: Counter[str]) -> str:
    return ", ".join(sorted(topics.elements())) or "no topic"


def _wrong_broadcast(event: str, sent: list[Sent], nodes: set[str], own: set[str]) -> str:
    got = Counter(str(one.to) for one in sent)
    wanted = Counter(f"EVENT.{node}" for node in nodes)
    mine = {f"EVENT.{node}" for node in own}
    if any(got[to] != wanted[to] for to in {*got, *wanted} - mine):
        return f"{event} was broadcast to {_listed(got)}, it is for {_nodes(nodes)}"
    if any(one.frame.broadcast is not True for one in sent):  # type: ignore[attr-defined]
        return f"{event} was broadcast, and `broadcast` of its EVENT is not true"
    return ""


def _wrong_groups(event: str, sent: list[Sent], only: list[str] | None, *, balances: bool) -> str:
    """A broadcast names the groups that it is for, and none if it is for all; a node without a balancer of
    its own may name all then."""
    for one in sent:
        listed = one.frame.groups if isinstance(one.frame.groups, list) else []  # type: ignore[attr-defined]
        if set(listed) != set(only or ()) and (only is not None or balances):
            given = "no groups" if only is None else f"the groups {shown(only)}"
            return f"{event} was broadcast with the groups {shown(listed)}, the application gave {given}"
    return ""


def _wrong_emit(event: str, sent: list[Sent], chosen: Groups, local: set[str]) -> str:
    reported: Counter[str] = Counter()
    for one in sent:
        node, groups = str(one.to).removeprefix("EVENT."), one.frame.groups  # type: ignore[attr-defined]
        listed = groups if isinstance(groups, list) else []
        strangers = [g for g in listed if g not in local and node not in chosen.get(g, ())]
        if strangers or not listed:
            return f"{event} was sent to {node} for the groups {shown(groups)}"
        reported.update(listed)
    for group in {*chosen, *reported} - local:
        if reported[group] != (1 if group in chosen else 0):
            return f"{event} was sent {reported[group]} times for the group {group}; groups: {_nodes(chosen)}"
    return ""
