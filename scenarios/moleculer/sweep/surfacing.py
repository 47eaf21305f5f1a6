"""Which events a listener of the client has to get (docs/protocols/moleculer.md, 4.8)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET

from conformance.run.case import Case
from conformance.run.facts import Record
from conformance.run.showing import shown
from conformance.run.trace import Position
from fakebrokers.moleculer.packets import Event, Info
from fakebrokers.moleculer.services import matches
from scenarios.moleculer.sweep.tracking import version_of


def due(case: Case, args: Mapping[str, Any], begun: Position) -> list[tuple[Position, Record]]:
    """The events for a listener that was named at that moment."""
    own = _own(case, args)
    found = [
        (at, Record(event.id, _data(event)))
        for at, event in _events(case, args["event"])
        if at >= begun and (not _named(event) or own & _named(event))
    ]
    return sorted(found, key=lambda row: row[0])


def for_others(case: Case, args: Mapping[str, Any], body: bytes) -> str:
    """The groups that an event with these data was for, if the listener is in none of them."""
    own, data = _own(case, args), json.loads(body)
    for _, event in _events(case, args["event"]):
        if _named(event) and not own & _named(event) and json.loads(_data(event)) == data:
            kind = "broadcast to" if event.broadcast is True else "event for"
            return f"the groups {shown(sorted(_named(event)))} ({kind} them)"
    return ""


def _events(case: Case, pattern: str) -> Iterator[tuple[Position, Event]]:
    """The events that came with a name that a pattern fits."""
    version = version_of(seen for conn in case.conns.values() for seen in conn.frames)
    for conn in case.conns.values():
        for seen in conn.of("out"):
            event = seen.frame
            if not isinstance(event, Event) or event.ver != version:
                continue
            if not isinstance(event.sender, str) or not event.sender:
                continue
            if isinstance(event.event, str) and matches(pattern, event.event):
                yield seen.at, event


def _data(event: Event) -> bytes:
    return json.dumps(None if event.data is UNSET else event.data).encode()


def _named(event: Event) -> set[str]:
    """The groups that an event is for; none: it is for all."""
    return set(map(str, event.groups)) if isinstance(event.groups, list) else set()


def _own(case: Case, args: Mapping[str, Any]) -> set[str]:
    """The groups of a listener; it may not have announced yet what the application has named."""
    return {args["group"]} if args.get("group") else _groups(case, args["event"])


def _groups(case: Case, pattern: str) -> set[str]:
    """The groups that the client has given its listeners with that pattern, as it has announced them: all
    but those that the application has named."""
    named = {done.args.get("group") for done in case.done("mol.listen") if done.args["event"] == pattern}
    found = set()
    for conn in case.conns.values():
        for seen in conn.of("in"):
            for service in seen.frame.services if isinstance(seen.frame, Info) else ():
                if pattern in (service.get("events") or {}):
                    found.add(service["events"][pattern].get("group") or service["name"])
    return found - named
