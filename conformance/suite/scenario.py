"""The `scenario` decorator: a coroutine that tries one requirement on one client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from conformance.suite.catalogue import Requirement, families, requirement
from fakebrokers.errors import UsageError

if TYPE_CHECKING:
    from conformance.suite.client import Client
    from conformance.suite.expect import Expect

Script = Callable[[Any, "Client", "Expect"], Awaitable[None]]

Key = tuple[str, str, str]


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One requirement, and the script that tries it.

    Attributes:
        protocol: The protocol of this row; a NET scenario has one row for each.
        variant: Transporter, profile or server version; "" if there is none.
        roles: Roles that the client must have declared, all of them.
        needs: Capabilities it must have declared: the catalogue's and those of the script.
        ops: Optional ops that the script uses; they must be declared too.
        server: Settings of the fake (its keyword arguments).
        timeout_s: The script's own limit, far beyond what a good client needs.
        alone: Loads the machine so much that nothing else may run beside it.
        soak: Only in the ``soak`` set.
        process: Needs a child process (signals, memory figures).
        sockets: Needs real sockets, so it never runs in memory: it has a peer of its own. None: if the
            fake's settings do, which False denies.
        target: Can run against a real broker: no fault on the broker's side, no look at the fake.
        unfired: Why the faults need not take place; empty if each of them has to. See `Expect.may_not_fire`.
        unconnected: Why a pass needs no connection to the fake; empty if it needs one.
        revision: Raised when the criteria change.
    """

    requirement: Requirement
    protocol: str
    script: Script
    variant: str = ""
    roles: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    server: Mapping[str, Any] = {}
    timeout_s: float = 30.0
    alone: bool = False
    soak: bool = False
    process: bool = False
    sockets: bool | None = None
    target: bool = False
    unfired: str = ""
    unconnected: str = ""
    revision: int = 1

    @property
    def id(self) -> str:
        """The catalogue's id."""
        return self.requirement.id

    @property
    def level(self) -> str:
        """MUST, SHOULD or MAY."""
        return self.requirement.level

    @property
    def key(self) -> Key:
        """(id, protocol, variant): what names a result."""
        return (self.id, self.protocol, self.variant)

    @property
    def label(self) -> str:
        """The key as one word: ``NET-1.01[rabbitmq-stream]``."""
        inside = "/".join(part for part in (self.protocol, self.variant) if part)
        return f"{self.id}[{inside}]" if families()[self.requirement.family].protocol == "" else self.id


_registry: dict[Key, Scenario] = {}


def scenario(
    scenario_id: str,
    *,
    protocols: Sequence[str] = (),
    variants: Sequence[str] = ("",),
    roles: Sequence[str] = (),
    needs: Sequence[str] = (),
    ops: Sequence[str] = (),
    server: Mapping[str, Any] | None = None,
    timeout_s: float = 30.0,
    alone: bool = False,
    soak: bool = False,
    process: bool = False,
    sockets: bool | None = None,
    target: bool = False,
    unfired: str = "",
    unconnected: str = "",
    revision: int = 1,
) -> Callable[[Script], Script]:
    """Declare the script for a requirement of the catalogue; see `Scenario` for the arguments."""
    wanted = requirement(scenario_id)
    own = families()[wanted.family].protocol
    if not own and not protocols:
        raise UsageError(f"{scenario_id} covers several protocols: say which with protocols=[...]")

    def register(script: Script) -> Script:
        for protocol in protocols or [own]:
            for variant in variants:
                item = Scenario(
                    requirement=wanted,
                    protocol=protocol,
                    script=script,
                    variant=variant,
                    roles=tuple(roles),
                    needs=tuple(dict.fromkeys([*wanted.needs, *needs])),
                    ops=tuple(ops),
                    server=dict(server or {}),
                    timeout_s=timeout_s,
                    alone=alone,
                    soak=soak,
                    process=process,
                    sockets=sockets,
                    target=target,
                    unfired=unfired,
                    unconnected=unconnected,
                    revision=revision,
                )
                there = _registry.get(item.key)
                if there is not None and there.script.__code__ is not script.__code__:
                    code = there.script.__code__
                    place = f"{code.co_filename}:{code.co_firstlineno}"
                    raise UsageError(f"two scripts for {item.label}: the other one is in {place}")
                _registry[item.key] = item
        return script

    return register


def registered() -> list[Scenario]:
    """All scenarios whose modules have been loaded, in the order of the catalogue."""
    return sorted(
        _registry.values(), key=lambda s: (s.requirement.family, _numbers(s.id), s.protocol, s.variant)
    )


def forget(is_gone: Callable[[str], bool]) -> None:
    """Take those out whose scripts stand in such a module, by its name."""
    for key in [key for key, item in _registry.items() if is_gone(item.script.__module__)]:
        del _registry[key]


def _numbers(scenario_id: str) -> tuple[float, ...]:
    section, _, number = scenario_id.partition("-")[2].partition(".")
    return (int(section), int(number))
