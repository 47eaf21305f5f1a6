"""One wire of a protocol: its frames, and whether the fake writes its bytes itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from fakebrokers.core.frames import Frame, FrameTable, KnownFrames, Role, frame_table, kind_of
from fakebrokers.errors import PlanError, UsageError
from fakebrokers.reading import field_value, one_of

if TYPE_CHECKING:
    from fakebrokers.core.dialect import Dialect


class Wire:
    """What connections of one kind speak.

    Args:
        name: Unique within the protocol, such as ``nats``.
        frames: Every frame; their kinds must differ.
        stream: Whether it is a stream of bytes that the fake writes itself. If not, a library owns the
            bytes (ZeroMQ), and effects on bytes need a proxy in front.
        port: TCP port of a real installation; 0 if there is no usual one.
        relay: Where the `Relay` is that reads both directions of a connection: ``module:Class``; "" if the
            protocol has none.
        brokered: Whether there is a broker of ours behind it, on which effects can act; not in a proxy.
        dialect: How it is compared with a real server: ``module:NAME`` of a `Dialect`; "" if it is not.
        write_after: Units for one client that a step collects before they are written, for servers that do
            not collect what they say: the client works while the rest of the step goes on. 0: no limit.

    Raises:
        ValueError: Two frames have the same kind.
    """

    def __init__(
        self,
        name: str,
        frames: Iterable[type[Frame]],
        *,
        stream: bool = True,
        port: int = 0,
        relay: str = "",
        brokered: bool = True,
        dialect: str = "",
        write_after: int = 0,
    ) -> None:
        self.name = name
        self.frames: FrameTable = frame_table(frames)
        self.stream = stream
        self.port = port
        self.relay = relay
        self.brokered = brokered
        self.write_after = write_after
        self._dialect = dialect
        self._kinds = {kind_of(each): each for each in self.frames}
        self._meant: dict[tuple[str | None, Role | None, str], list[type[Frame]]] = {}

    def __repr__(self) -> str:
        return f"Wire({self.name!r}, {len(self.frames)} frames)"

    def load_dialect(self) -> Dialect:
        """How this wire is compared with a real server.

        Raises:
            UsageError: It is not.
        """
        if not self._dialect:
            raise UsageError(f"the wire {self.name!r} cannot be compared with a real server yet")
        module, _, name = self._dialect.partition(":")
        found: Dialect = getattr(import_module(module), name)
        return found

    def fields_of(
        self, kind: str | None, role: Role | None, path: str, direction: str = ""
    ) -> frozenset[str]:
        """The fields of all frames of that kind and role that go in that direction ("": in any).

        Raises:
            PlanError: There is no such frame.
        """
        return frozenset(
            field
            for each in self.meant(kind, role, path, direction)
            for field in (*each.__struct_fields__, *_properties(each))
        )

    def meant(self, kind: str | None, role: Role | None, path: str, direction: str = "") -> list[type[Frame]]:
        """The frames of that kind and role that go in that direction ("": in any).

        Raises:
            PlanError: There is none.
        """
        if (kind, role, direction) in self._meant:
            return self._meant[kind, role, direction]
        if kind is not None and kind not in self._kinds:
            raise PlanError(f"{path}.kind", f"expected {one_of(sorted(self._kinds), kind)}")
        meant = [each for name, each in self._kinds.items() if kind in (None, name)]
        roles = frozenset[Role]().union(*(each.spec.roles_in("") for each in meant))
        if role is not None and role not in roles:
            there = sorted(roles)
            raise PlanError(f"{path}.role", f"expected {one_of(there, role)}: this is what there is here")
        ways = {each: each.roles_in(direction) for each in meant}
        found = [each for each in meant if (role in ways[each] if role else ways[each])]
        if not found:
            other, who = ("in", "clients send") if direction == "out" else ("out", "the broker sends")
            what = kind or role
            raise PlanError(f"{path}.direction", f'expected "{other}": only {who} {what}, got "{direction}"')
        self._meant[kind, role, direction] = found
        return found

    def build(self, kind: str, fields: Mapping[str, Any], path: str) -> Frame:
        """A frame of that kind from plain values.

        Raises:
            PlanError: There is no such kind, or the fields do not fit; with those it has.
        """
        if kind not in self._kinds:
            raise PlanError(f"{path}.kind", f"expected {one_of(sorted(self._kinds), kind)}")
        known = {field.name: field for field in msgspec.structs.fields(self._kinds[kind])}
        values = {}
        for name, value in fields.items():
            if name not in known:
                raise PlanError(f"{path}.fields.{name}", f"expected {one_of(list(known), name)}")
            try:
                values[name] = field_value(value, known[name].type)
            except msgspec.ValidationError as error:
                raise PlanError(f"{path}.fields.{name}", f"{error}: {value!r}") from None
        missing = [name for name, field in known.items() if field.required and name not in values]
        if missing:
            raise PlanError(f"{path}.fields.{missing[0]}", f"expected a value for {kind}, got nothing")
        return self._kinds[kind](**values)


def frames_of(wires: Iterable[Wire]) -> KnownFrames:
    """The frames of several wires together."""
    return _together(tuple(wires))


@cache
def _together(wires: tuple[Wire, ...]) -> KnownFrames:
    return KnownFrames({kind: spec for wire in wires for kind, spec in wire.frames.items()})


@cache
def _properties(kind: type[Frame]) -> list[str]:
    return [name for name in dir(kind) if isinstance(getattr(kind, name), property)]
