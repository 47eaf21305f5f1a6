"""What a rule may look at and act on: a frame, its items, or the frame inside it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from fakebrokers.core.frames import Frame, Role, kind_of, parts_of
from fakebrokers.faults.parcel import Parcel
from fakebrokers.faults.rule import Rule


def may_match(rule: Rule, direction: str, kind: type[Frame]) -> bool:
    """Whether a rule may fit frames of this kind."""
    match = rule.fault.match
    return (
        match.on is None
        and rule.direction in ("", direction)
        and (match.kind is None or match.kind == kind_of(kind))
        and (match.role is None or match.role in kind.spec.roles_in(direction))
    )


def all_items(frame: Frame | None) -> tuple[int, ...] | None:
    items = None if frame is None else frame.spec.items
    return None if items is None else tuple(range(items.count(frame)))


def of_frame(frame: Frame) -> dict[str, Any]:
    """What `match.OF_ITEMS` means in a frame that is looked at as a whole."""
    spec = frame.spec
    named = {"key": spec.key, "status": spec.status, "scope": spec.scope}
    return {name: getattr(frame, field) for name, field in named.items() if field}


def names_of_items(kinds: Iterable[type[Frame]]) -> set[str]:
    """Which of the names in `match.OF_ITEMS` mean something in any of these frames, or in their items."""
    found: set[str] = set()
    for spec in (kind.spec for kind in kinds):
        mixed = spec.items is not None and spec.items.mixed
        told = {"key": spec.key or spec.items, "status": spec.status or mixed, "scope": spec.scope or mixed}
        found |= {name for name, there in told.items() if there}
    return found


def of_items(frame: Frame, direction: str, role: Role | None) -> Iterable[dict[str, Any] | None]:
    """The same for each item; None for items that have another role."""
    spec = frame.spec
    assert spec.items is not None
    keys = spec.items.keys(frame)
    if not spec.items.mixed:
        whole = of_frame(frame)
        return [{**whole, "key": key} for key in keys]
    found: list[dict[str, Any] | None] = [None] * len(keys)
    for part in parts_of(frame, spec, direction):
        if role in (None, part.role):
            for index in part.indices or range(len(keys)):
                found[index] = {"key": keys[index], "status": part.status, "scope": part.scope}
    return found


def opened(parcel: Parcel) -> Parcel:
    """The parcel with the frame that is inside its frame."""
    frame = parcel.frame
    if parcel.envelope is not None or frame is None or frame.spec.inside is None or parcel.raw is not None:
        return parcel
    inner = frame.spec.inside.open(frame)
    if inner is None:
        return parcel
    return msgspec.structs.replace(parcel, frame=inner, envelope=frame, unit=None, items=all_items(inner))


def closed(parcel: Parcel) -> Parcel:
    """The parcel with its frame back in the envelope."""
    envelope = parcel.envelope
    if envelope is None or parcel.frame is None or parcel.raw is not None:
        return parcel
    assert envelope.spec.inside is not None
    wrapped = envelope.spec.inside.wrap(envelope, parcel.frame)
    return msgspec.structs.replace(parcel, frame=wrapped, envelope=None, unit=None, items=all_items(wrapped))
