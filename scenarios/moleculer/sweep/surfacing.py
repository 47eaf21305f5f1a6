"""Which events a listener of the client has to get (docs/protocols/moleculer.md, 4.8)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from conformance.run.case import Case
from conformance.run.facts import Record
from conformance.run.trace import Position
from fakebrokers.moleculer.packets import Event, Info
from fakebrokers.moleculer.services import matches
from scenarios.moleculer.sweep.tracking import version_of


def due(case: Case, args: Mapping[str, Any], begun: Position) -> list[tuple[Position, Record]]:
    """The events for a listener that was named at that moment."""
    own = _groups(case, args["event"])
    if args.get("group"):
        own.add(args["group"])  # it may be about to announce that
    found = []
    version = version_of(seen for conn in case.conns.values() for seen in conn.frames)
    for conn in case.conns.values():
        for seen in conn.of("out"):
            event = seen.frame
            if not isinstance(event, Event) or seen.at < begun or event.ver != version:
                continue
            if not isinstance(event.sender, str) or not event.sender:
                continue
            if not isinstance(event.event, str) or not matches(args["event"], event.event):
                continue
            groups = event.groups if isinstance(event.groups, list) else []
            if groups and not own & set(map(str, groups)):
                continue
            data = None if event.data is UNSET else event.data
            found.append((seen.at, Record(event.id, json.dumps(data).encode())))
    return sorted(found, key=lambda row: row[0])


def _groups(case: Case, pattern: str) -> set[str]:
    """The groups of the client's listeners with that pattern, as it has announced them."""
    found = set()
    for conn in case.conns.values():
        for seen in conn.of("in"):
            for service in seen.frame.services if isinstance(seen.frame, Info) else ():
                if pattern in (service.get("events") or {}):
                    found.add(service["events"][pattern].get("group") or service["name"])
    return found
