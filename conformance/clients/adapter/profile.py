"""Which ops and capabilities there are, and which ops a role cannot do without.

The ops of the core are there for every protocol; what a protocol adds is in a module of
`conformance.clients.adapter.ops` that is named like its fixture, or, for a protocol of another project, in
the one that `register` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, get_args, get_origin

from msgspec import structs

from conformance.clients.adapter.messages import Hello
from conformance.clients.adapter.ops import core
from conformance.clients.adapter.ops.define import EVERY_ROLE, Arguments, Profile
from fakebrokers.errors import UsageError
from fakebrokers.protocol import folder_name, protocol_names

_OPS = "conformance.clients.adapter.ops"
_REGISTERED: dict[str, str] = {}


def register(protocol: str, module: str) -> None:
    """Make known the ops of a protocol, which `module` has in its ``PROFILE``.

    Raises:
        UsageError: The ops of that protocol are in another module.
    """
    if _REGISTERED.setdefault(protocol, module) != module:
        raise UsageError(f"the ops of {protocol} are known already, from {_REGISTERED[protocol]}")
    for known in (profile_of, profiles, ops_of, all_ops, optional_arguments, bounds):
        known.cache_clear()


def module_of(protocol: str) -> str:
    """The module with the ops of a protocol, whether it is there or not."""
    return _REGISTERED.get(protocol, f"{_OPS}.{folder_name(protocol)}")


@cache
def profile_of(protocol: str) -> Profile:
    """What a protocol adds to the core: nothing if nobody says so."""
    module = module_of(protocol)
    if protocol not in _REGISTERED and (protocol not in protocol_names() or find_spec(module) is None):
        return Profile(protocol=protocol, roles=(), ops={}, capabilities={})
    profile: Profile = import_module(module).PROFILE
    return profile


@cache
def profiles() -> Mapping[str, Profile]:
    """Of all protocols that clients are judged for, by name."""
    names = dict.fromkeys([*protocol_names(), *_REGISTERED])
    return {name: found for name in names if (found := profile_of(name)).roles}


@cache
def ops_of(protocol: str) -> Mapping[str, type[Arguments]]:
    """The ops that an adapter for a protocol may offer: their arguments, by name."""
    return {**core.OPS, **profile_of(protocol).ops}


@cache
def all_ops() -> Mapping[str, type[Arguments]]:
    """The ops of all protocols, by name; of those of the core the arguments that all know."""
    own = {name: each for found in profiles().values() for name, each in found.ops.items()}
    return {**core.OPS, **{name: each for name, each in own.items() if name not in core.OPS}}


def capabilities() -> Mapping[str, str]:
    """The words that an adapter may declare, and what each means."""
    words = dict(core.CAPABILITIES)
    for found in profiles().values():
        words |= found.capabilities
    return words


@cache
def optional_arguments(protocol: str) -> frozenset[str]:
    """The arguments that a library may lack, as an adapter says so in its ``caps``: ``op.argument``."""
    return frozenset(_optional(protocol))


@cache
def bounds(protocol: str) -> frozenset[str]:
    """The words of ``limits`` for arguments that are numbers: ``op.argument_min`` and ``op.argument_max``."""
    numbers = [word for word, kind in _optional(protocol).items() if _is_number(kind)]
    return frozenset(f"{word}_{end}" for word in numbers for end in ("min", "max"))


def _is_number(kind: Any) -> bool:
    """Whether values of the type may be numbers by themselves."""
    return kind in (int, float) or (
        get_origin(kind) not in (dict, list) and any(map(_is_number, get_args(kind)))
    )


def _optional(protocol: str) -> Mapping[str, Any]:
    """The types of arguments, and of options, that an op can do without."""
    found: dict[str, Any] = {}
    for name, each in ops_of(protocol).items():
        for member in structs.fields(each):
            options = [kind for kind in get_args(member.type) if hasattr(kind, "__struct_fields__")]
            if member.encode_name == "options" and options:
                found |= {f"{name}.{field.encode_name}": field.type for field in structs.fields(options[0])}
            elif not member.required and member.encode_name != "on_message":
                found[f"{name}.{member.encode_name}"] = member.type
    return found


def capability_ops() -> Mapping[str, str]:
    """The op without which a capability is worth nothing, by capability."""
    return {each.spec.capability: name for name, each in all_ops().items() if each.spec.capability}


@cache
def late_capability(op: str) -> str:
    """The capability without which an op comes before ``connect``; empty if it never does."""
    known = all_ops().get(op)
    return known.spec.late if known else ""


def core_ops() -> frozenset[str]:
    """What no adapter can do without."""
    return _needed_by(core.OPS, EVERY_ROLE)


def role_ops(protocol: str) -> Mapping[str, frozenset[str]]:
    """What each role of a protocol cannot do without, besides the core, whatever it settles."""
    return {role: _needed_by(ops_of(protocol), role) for role in profile_of(protocol).roles}


def missing_ops(hello: Hello, protocol: str) -> list[str]:
    """What a declared role needs and the adapter does not offer; such an adapter is incomplete."""
    known = ops_of(protocol)
    wanted = [EVERY_ROLE, *(role for role in hello.roles if role in profile_of(protocol).roles)]
    needed = set[str]().union(*(_needed_by(known, role, hello.settles) for role in wanted))
    return sorted(needed - set(hello.ops))


def _needed_by(ops: Mapping[str, type[Arguments]], role: str, settles: str = "none") -> frozenset[str]:
    return frozenset(
        name
        for name, each in ops.items()
        if role in each.spec.needed_by and each.spec.unless_settles != settles
    )
