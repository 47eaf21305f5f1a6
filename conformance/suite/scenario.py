"""The `scenario` decorator: a coroutine that tries one requirement on one client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from conformance.suite.catalogue import families, known, numbers, state
from conformance.suite.catalogue import forget as forget_stated
from conformance.suite.outside_catalogue import problems
from conformance.suite.requirement import Family, Level, Requirement
from conformance.suite.sentences import sentences
from conformance.suite.subjects import Subject, elsewhere, find
from fakebrokers.errors import UsageError, instead_of

if TYPE_CHECKING:
    from conformance.suite.client import Client
    from conformance.suite.expect import Expect

Script = Callable[[Any, "Client", "Expect"], Awaitable[None]]

Key = tuple[str, str, str]


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One requirement, and the script that tries it.

    Attributes:
        protocol: The protocol of this row.
        variant: Transporter, profile or server version; "" if there is none. Its settings are in `server`.
        subject: What the script gets in place of the fake; None in families of one protocol.
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
        allows: Rules for all runs of which the requirement itself allows a violation here.
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
    allows: tuple[str, ...] = ()
    revision: int = 1
    subject: type[Any] | None = None

    def play(self, broker: Any, client: Client, expect: Expect) -> Awaitable[None]:
        """The script, at its beginning."""
        stage = broker if self.subject is None else self.subject(broker, client, expect)
        return self.script(stage, client, expect)

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
        """The key as one word: ``NET-1.01[echo]``."""
        inside = "/".join(part for part in (self.protocol, self.variant) if part)
        return f"{self.id}[{inside}]" if families()[self.requirement.family].protocol == "" else self.id


class _Declared(msgspec.Struct, frozen=True, kw_only=True):
    """A script, and what its decorator says of its rows; of all variants, or of one."""

    id: str
    script: Script
    variant: str | None
    liveness_s: float | None
    fields: Mapping[str, Any]

    @property
    def requirement(self) -> Requirement:
        """What it tries. `UsageError` if no catalogue has it and no script states it."""
        found = known(self.id)
        if found is None:
            code = self.script.__code__
            raise UsageError(
                f"{code.co_filename}:{code.co_firstlineno}: no catalogue has {self.id}, no script states it"
            )
        return found

    @property
    def family(self) -> Family:
        return families()[self.id.partition("-")[0]]


#: By id, protocol ("": all of its family) and variant (None: all there are).
_declared: dict[tuple[str, str, str | None], _Declared] = {}


def scenario(
    scenario_id: str,
    level: Level | None = None,
    severity: str = "",
    *,
    basis: Sequence[str] = (),
    protocol: str = "",
    variants: Sequence[str] | None = None,
    roles: Sequence[str] = (),
    needs: Sequence[str] = (),
    ops: Sequence[str] = (),
    server: Mapping[str, Any] | None = None,
    liveness_s: float | None = None,
    timeout_s: float = 30.0,
    alone: bool = False,
    soak: bool = False,
    process: bool = False,
    sockets: bool | None = None,
    target: bool = False,
    unfired: str = "",
    unconnected: str = "",
    allows: Sequence[str] = (),
    revision: int = 1,
) -> Callable[[Script], Script]:
    """Declare the script for a requirement; see `Requirement` and `Scenario` for the other arguments.

    With a level the script states the requirement: its docstring has the form of `sentences`. Without one a
    catalogue has it, or another script states it.

    In a family for several protocols there is a row for each protocol that the catalogue names, with the
    settings of its subject (`scenarios.subjects`), with which the script is called in place of the fake.

    Args:
        protocol: This script is for one of the protocols only, and comes before the one for all.
        variants: One row for each; default: those of the subject, or one without a variant.
        liveness_s: The fake's clients give a silent server up after so long.

    Raises:
        UsageError: There is no such family; a word or an id is not one of the catalogue's.
    """
    family = families().get(scenario_id.partition("-")[0])
    own = family.protocol if family else ""
    if own and protocol:
        raise UsageError(f"{scenario_id} is for {own} only: leave protocol= away")
    if own and liveness_s is not None:
        raise UsageError(f"{scenario_id} is for {own} only: say with server= how long its clients wait")
    fields = {
        "roles": tuple(roles),
        "needs": tuple(needs),
        "ops": tuple(ops),
        "server": dict(server or {}),
        "timeout_s": timeout_s,
        "alone": alone,
        "soak": soak,
        "process": process,
        "sockets": sockets,
        "target": target,
        "unfired": unfired,
        "unconnected": unconnected,
        "allows": tuple(allows),
        "revision": revision,
    }

    def register(script: Script) -> Script:
        if level is not None:
            demand(
                scenario_id,
                level,
                severity,
                script.__doc__,
                basis=basis,
                needs=needs,
                module=script.__module__,
            )
        for variant in (None,) if variants is None else variants:
            key = (scenario_id, own or protocol, variant)
            there = _declared.get(key)
            if there is not None and there.script.__code__ is not script.__code__:
                code = there.script.__code__
                place = f"{code.co_filename}:{code.co_firstlineno}"
                raise UsageError(f"two scripts for {scenario_id}: the other one is in {place}")
            _declared[key] = _Declared(
                id=scenario_id, script=script, variant=variant, liveness_s=liveness_s, fields=fields
            )
        return script

    return register


def demand(
    scenario_id: str,
    level: Level,
    severity: str,
    text: str | None,
    *,
    module: str,
    basis: Sequence[str] = (),
    needs: Sequence[str] = (),
) -> None:
    """State a requirement whose scripts are with several protocols; else `scenario` takes the docstring.

    Raises:
        UsageError: The text has not the form of `sentences`, or another argument is none of the catalogue's.
    """
    said = sentences(text)
    item = Requirement(
        id=scenario_id,
        title=said.title,
        level=level,
        severity=severity,
        basis=tuple(basis),
        needs=tuple(needs),
        profile=said.profile,
        fault=said.fault,
        passes=said.passes,
        seen=said.seen,
    )
    if item.family not in families():
        raise UsageError(
            f"{item.id}: there is no family {item.family!r}{instead_of(item.family, families())}"
        )
    for _, problem in problems(item, families()[item.family], families()):
        raise UsageError(f"{scenario_id}: {problem}")
    state(item, module)


def declared() -> list[tuple[Script, str, str]]:
    """All scripts that have been loaded, with the id and the one protocol of each ("": for all)."""
    return [(each.script, each.id, protocol) for (_, protocol, _), each in _declared.items()]


def registered() -> list[Scenario]:
    """All scenarios whose modules have been loaded, in the order of the catalogue.

    Raises:
        UsageError: A script is for a protocol for which the requirement does not hold.
    """
    rows: list[Scenario] = []
    for (scenario_id, protocol, _), each in _declared.items():
        if each.family.protocol:
            rows.append(_own_row(each, protocol))
            continue
        judged = _judged_by(each.family, scenario_id)
        if protocol and protocol not in judged:
            raise UsageError(
                f"there is a script of {scenario_id} for {protocol}, for which the catalogue does not have it"
            )
        for name in judged:
            if protocol == name or (not protocol and not _has_its_own(scenario_id, name)):
                rows += _shared_rows(each, name)
    return sorted(rows, key=lambda s: (s.requirement.family, numbers(s.id), s.protocol, s.variant))


def _judged_by(family: Family, scenario_id: str) -> list[str]:
    """The protocols for which a requirement holds, those of other projects too."""
    ours = {protocol: covered.holds for protocol, covered in family.protocols.items()}
    return [protocol for protocol, holds in {**ours, **elsewhere()}.items() if scenario_id in holds]


def _subject_if_any(protocol: str) -> type[Subject] | None:
    with suppress(UsageError):
        return find(protocol)
    return None


def _has_its_own(scenario_id: str, protocol: str) -> bool:
    return any(key[:2] == (scenario_id, protocol) for key in _declared)


def _own_row(said: _Declared, protocol: str) -> Scenario:
    """The row of a family of one protocol; the settings of a variant are those of the protocol's subject."""
    variant = said.variant or ""
    subject = _subject_if_any(protocol) if variant else None
    server = {**(subject.variants.get(variant, {}) if subject else {}), **said.fields["server"]}
    return _row(said, protocol, variant, {**said.fields, "needs": _needs(said, ())}, server)


def _shared_rows(said: _Declared, protocol: str) -> list[Scenario]:
    """The rows of a family for several protocols: one protocol's, as its subject wants them."""
    subject, item = find(protocol), said.requirement
    changes: dict[str, Any] = {}
    for name in ("", item.section, item.id):
        changes |= subject.rows.get(name, {})
    mine = said.fields
    server = {
        **changes.pop("server", {}),
        **(subject.liveness(said.liveness_s) if said.liveness_s is not None else {}),
        **mine["server"],
    }
    variants = changes.pop("variants", tuple(subject.variants))
    if said.variant is not None:
        variants = (said.variant,)
    fields = {
        **mine,
        "roles": tuple(subject.roles.get(role, role) for role in mine["roles"]),
        **changes,
        "needs": _needs(said, changes.get("needs", ())),
    }
    return [
        _row(said, protocol, each, fields, {**server, **subject.variants[each]}, subject) for each in variants
    ]


def _needs(said: _Declared, more: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*said.requirement.needs, *said.fields["needs"], *more]))


def _row(
    said: _Declared,
    protocol: str,
    variant: str,
    fields: Mapping[str, Any],
    server: Mapping[str, Any],
    subject: type[Subject] | None = None,
) -> Scenario:
    return Scenario(
        requirement=said.requirement,
        protocol=protocol,
        script=said.script,
        variant=variant,
        subject=subject,
        **{**fields, "server": server},
    )


def forget(is_gone: Callable[[str], bool]) -> None:
    """Take those out whose scripts are in such a module, by its name, with what they state."""
    forget_stated(is_gone)
    for key in [key for key, each in _declared.items() if is_gone(each.script.__module__)]:
        del _declared[key]
