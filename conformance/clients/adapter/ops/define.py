"""What an op is, besides its members; and what a protocol adds to the core."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

import msgspec

from conformance.clients.adapter.deadline import Deadline, deadline_kind
from conformance.clients.adapter.messages import Message

#: Instead of a role: no adapter can do without the op.
EVERY_ROLE = "every adapter"


class Outgoing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An object that the runner writes; a member that is not known is a slip of the script's."""


class Incoming(msgspec.Struct, frozen=True):
    """An object that the adapter writes; members that are not known are allowed."""


class Nothing(Incoming, frozen=True):
    """Nothing is to be said: that it worked is all."""


@dataclass(frozen=True)
class Op:
    """What there is to know of an op, besides the members of its arguments.

    Attributes:
        name: As on the line.
        result: The type of its result.
        needed_by: The roles that cannot do without it, or `EVERY_ROLE`.
        unless_settles: With this word as ``settles`` in the hello nobody needs it.
        capability: A capability that is worth nothing without it.
        late: The capability without which it comes before the ``connect`` of its session, and not after it.
        rule: What types alone do not say: takes arguments and result, says what is wrong, or nothing.
    """

    name: str
    result: type[msgspec.Struct] = Nothing
    needed_by: tuple[str, ...] = ()
    unless_settles: str = ""
    capability: str = ""
    late: str = ""
    rule: Callable[[Mapping[str, Any], Any], str] = lambda args, result: ""

    @property
    def deadline(self) -> Deadline:
        """Whose time-out counts."""
        return deadline_kind(self.name)


class Arguments(Outgoing, frozen=True):
    """The ``args`` of an op, which `spec` names; the docstring's first line says what the op does."""

    spec: ClassVar[Op]


def ops_in(module: ModuleType | Mapping[str, Any]) -> dict[str, type[Arguments]]:
    """The arguments that a module defines or imports, by the name of the op, in the order of the module."""
    names = vars(module) if isinstance(module, ModuleType) else module
    found = [each for each in names.values() if isinstance(each, type) and issubclass(each, Arguments)]
    return {each.spec.name: each for each in found if hasattr(each, "spec")}


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What clients of one protocol are asked for.

    Attributes:
        protocol: Name of the protocol.
        roles: What a client can be, in the order of the guide.
        ops: The arguments of its own ops, and of those of the core to which it adds members.
        capabilities: Words that exist here only, and what each means.
        formats: The ways from a body to a record; empty where there is one only.
        message_rule: What is wrong with a message of this protocol, one sentence, or nothing.
        settles: Whether consumers acknowledge messages one by one.
        parts: Whether messages have several parts.
        addresses: The names of the addresses of a broker, where it has several; publishers use the first.
    """

    protocol: str
    roles: Sequence[str]
    ops: Mapping[str, type[Arguments]]
    capabilities: Mapping[str, str]
    formats: Sequence[str] = ()
    message_rule: Callable[[Message], str] = lambda message: ""
    settles: bool = False
    parts: bool = False
    addresses: Sequence[str] = ()
