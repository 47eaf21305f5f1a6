"""Fault plans: values that can be written in Python, TOML or JSON, printed, and read back."""

from __future__ import annotations

import tomllib
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import msgspec

from fakebrokers.description import Description, find_description
from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Realism
from fakebrokers.faults.match import Match, Scope
from fakebrokers.faults.registry import effect_types, find_effect
from fakebrokers.faults.source import call, function_name, given, written
from fakebrokers.faults.toml import to_toml
from fakebrokers.reading import check_plain, convert, one_of, shown, struct_from

PLAN_VERSION = 2
#: Versions that can be read. In version 1 all faults without a scope counted in each connection.
READABLE = (1, PLAN_VERSION)
#: A file with one of these members is a replay file of the suite.
REPLAYS = frozenset({"spec", "schedule"})
REPLAY_READER = "fakebrokers.suite:plan_of"  #: makes a plan of it


class _Printer(typing.Protocol):
    """What Hypothesis and IPython print with."""

    def text(self, text: str) -> object: ...


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One disturbance: what has to fit, and what is done then.

    Attributes:
        match: See `Match`.
        effects: One, or several that act in one step, in this order.
        name: For `release`, `remove` and the journal; made up if empty.
        realism: Who could cause it; None takes the worst of its effects.
    """

    match: Match
    effects: tuple[Effect, ...]
    name: str = ""
    realism: Realism | None = None

    def __repr__(self) -> str:
        """The call that makes it: of the function for its effect, or of `fault`."""
        words = {"name": self.name, "realism": self.realism}
        words = {name: value for name, value in words.items() if value} | given(self.match)
        if len(self.effects) == 1:
            (effect,) = self.effects
            settings = given(effect)
            if not words.keys() & set(effect.__struct_fields__):  # one word, two meanings
                return written(function_name(type(effect)), (), settings | words)
        return written("fault", [call(function_name(type(each)), each) for each in self.effects], words)

    def _repr_pretty_(self, printer: _Printer, cycle: bool) -> None:
        """Hypothesis and IPython ask for this; without it Hypothesis shows the way in which it drew it."""
        printer.text(repr(self))

    @property
    def direction(self) -> str:
        """``in``, ``out``, or "" for both."""
        if self.match.direction is not None:
            return self.match.direction
        return next((e.direction for e in self.effects if e.direction), "")

    @property
    def scope(self) -> Scope:
        """Where it counts: as stated; else in each connection, or with ``nth`` or ``first`` in the whole run
        if one of its effects ends connections or acts on the fake as a whole (`Effect.per_run`)."""
        if self.match.scope is not None:
            return self.match.scope
        counts = self.match.nth is not None or self.match.first is not None
        return "run" if counts and any(effect.per_run for effect in self.effects) else "connection"

    @property
    def effective_realism(self) -> Realism:
        """The realism: as stated, or the worst of the effects."""
        order = list(Realism)
        return self.realism or max((e.realism for e in self.effects), key=order.index)

    def placed_effects(self, path: str) -> list[tuple[Effect, str]]:
        """The effects, each with its path in the plan."""
        if len(self.effects) == 1:
            return [(self.effects[0], f"{path}.effect")]
        return [(effect, f"{path}.effect[{number}]") for number, effect in enumerate(self.effects)]

    def check(self, path: str) -> None:
        """Raise `PlanError` where it makes no sense."""
        self.match.check(f"{path}.match")
        if not self.effects:
            raise PlanError(f"{path}.effect", "expected at least one effect, got none")
        for effect, where in self.placed_effects(path):
            _check_numbers(effect, where)
            effect.check(where)
            kind = effect.__struct_config__.tag
            if self.match.on is not None and effect.needs_frame:
                raise PlanError(where, f'"{kind}" needs a frame, but on = "{self.match.on}" is a moment')
            if effect.direction and self.match.direction not in (None, effect.direction):
                raise PlanError(
                    f"{path}.match.direction",
                    f'expected "{effect.direction}" with "{kind}", got "{self.match.direction}"',
                )


#: No setting is larger that can have a fraction: seconds of a century, further than clocks and timers go.
_LARGEST = 3.2e9


def _check_numbers(effect: Effect, path: str) -> None:
    """Raise `PlanError` for a time that no clock can hold."""
    for name in effect.__struct_fields__:
        value = getattr(effect, name)
        if isinstance(value, float) and not abs(value) <= _LARGEST:
            raise PlanError(f"{path}.{name}", f"expected a number up to {_LARGEST:.0f}, got {value:g}")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A seed and the faults that it governs. Same seed, same decisions."""

    seed: int = 0
    faults: tuple[Fault, ...] = ()

    def __repr__(self) -> str:
        return call("Plan", self)

    def _repr_pretty_(self, printer: _Printer, cycle: bool) -> None:
        """See `Fault`."""
        printer.text(repr(self))

    def named(self) -> Plan:
        """The plan with a name for every fault, so that leaving one out changes no other's random numbers."""
        return Plan(
            seed=self.seed,
            faults=tuple(
                fault if fault.name else msgspec.structs.replace(fault, name=made_up_name(number))
                for number, fault in enumerate(self.faults)
            ),
        )

    def to_toml(self) -> str:
        """The plan as a TOML file."""
        return to_toml(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values, as they stand in a TOML or JSON file."""
        return {
            "version": PLAN_VERSION,
            "seed": self.seed,
            "faults": [_fault_to_dict(fault) for fault in self.faults],
        }


def made_up_name(number: int) -> str:
    """What a fault without a name is called; `number` from 0."""
    return f"fault {number + 1}"


def _fault_to_dict(fault: Fault) -> dict[str, Any]:
    effects = [msgspec.to_builtins(effect) for effect in fault.effects]
    row: dict[str, Any] = {"name": fault.name} if fault.name else {}
    row["match"] = msgspec.to_builtins(fault.match)
    row["effect"] = effects[0] if len(effects) == 1 else effects
    if fault.realism is not None:
        row["realism"] = str(fault.realism)
    return row


#: What a plan can be read from: one, faults or their tables in a list, a whole table, or a file.
PlanSource = Plan | Mapping[str, Any] | Sequence[Fault | Mapping[str, Any]] | str | Path


def load_plan(source: PlanSource, protocol: Description | str | None = None) -> Plan:
    """Read a plan from a TOML or JSON file, or from plain values.

    Args:
        source: A plan, a list of faults (as `Fault` or as its table), a table, or the path of a file; of a
            replay file, too, which ``sweep`` or ``chaos`` has written.
        protocol: For which fake: then the effects that only its protocol has are known too.

    Raises:
        PlanError: with the path inside the plan, the value, and what was expected.
    """
    if isinstance(source, Plan):
        return source
    if isinstance(protocol, str):
        protocol = find_description(protocol)
    if isinstance(source, Mapping):
        return _plan_from(source, protocol)
    if isinstance(source, list | tuple):
        return _plan_from({"faults": source}, protocol)
    if not isinstance(source, str | Path):
        wanted = "a plan, a list of faults, a table, or the path of a file"
        raise PlanError("faults", f"expected {wanted}; got {shown(source)}")
    path = Path(source)
    try:
        text = path.read_text(encoding="utf-8")
        data = msgspec.json.decode(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise PlanError(str(path), f"cannot be read: {error.strerror}") from None
    except RecursionError:
        raise PlanError(str(path), "expected a TOML or JSON file, got one that is nested too deep") from None
    except ValueError as error:  # of either reader, of UTF-8, or of a number with thousands of digits
        raise PlanError(str(path), f"expected a TOML or JSON file, got: {error}") from None
    if isinstance(data, Mapping) and data.keys() & REPLAYS:
        made: Plan = resolve_name(REPLAY_READER)(path, "" if protocol is None else protocol.name)
        return made
    try:
        return _plan_from(data, protocol)
    except PlanError as error:
        raise PlanError(f"{path}: {error.path}", error.problem) from None


def _plan_from(data: Any, protocol: Description | None) -> Plan:
    if isinstance(data, Mapping):
        check_plain({name: value for name, value in data.items() if name != "faults"}, "")
    _only(data, ("version", "seed", "faults"), "plan")
    version = data.get("version", PLAN_VERSION)
    if version not in READABLE or isinstance(version, bool):
        raise PlanError("version", f"expected {' or '.join(map(str, READABLE))}, got {shown(version)}")
    seed = data.get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise PlanError("seed", f"expected a whole number, got {shown(seed)}")
    rows = data.get("faults", [])
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise PlanError("faults", f"expected a list of faults, got {shown(rows)}")
    faults = [fault_from(row, f"faults[{i}]", protocol) for i, row in enumerate(rows)]
    return Plan(seed=seed, faults=tuple(map(_of_version_1, faults) if version == 1 else faults))


def _of_version_1(fault: Fault) -> Fault:
    """What a fault of a plan of version 1 is today."""
    if fault.match.scope is not None or fault.scope == "connection":
        return fault
    return msgspec.structs.replace(fault, match=msgspec.structs.replace(fault.match, scope="connection"))


def fault_from(row: Any, path: str, protocol: Description | None = None) -> Fault:
    """A fault from its plain values; see `load_plan`."""
    if isinstance(row, Fault):
        return row
    if isinstance(row, Mapping):
        check_plain(row, path)
    _only(row, ("name", "match", "effect", "realism"), path)
    effects = row.get("effect", [])
    listed = isinstance(effects, Sequence) and not isinstance(effects, str)
    built = tuple(
        effect_from(each, f"{path}.effect[{i}]" if listed else f"{path}.effect", protocol)
        for i, each in enumerate(effects if listed else [effects])
    )
    match = row.get("match", {})
    fault = Fault(
        name=convert(row.get("name", ""), str, f"{path}.name"),
        match=match
        if isinstance(match := row.get("match", {}), Match)
        else struct_from(match, Match, f"{path}.match"),
        effects=built,
        realism=convert(row.get("realism"), Realism | None, f"{path}.realism"),
    )
    fault.check(path)
    return fault


def effect_from(value: Any, path: str, protocol: Description | None = None) -> Effect:
    """An effect from its plain values; see `load_plan`."""
    if isinstance(value, Effect):
        return value
    if not isinstance(value, Mapping) or "type" not in value:
        types = effect_types(protocol.own_effects if protocol is not None else ())
        raise PlanError(
            path, f'expected a table with a "type", one of {", ".join(types)}; got {shown(value)}'
        )
    kind = find_effect(value["type"], protocol, f"{path}.type")
    settings = {name: each for name, each in value.items() if name != "type"}
    effect: Effect = struct_from(settings, kind, path)
    return effect


def _only(value: Any, names: Sequence[str], path: str) -> None:
    if not isinstance(value, Mapping):
        raise PlanError(path, f"expected a table, got {shown(value)}")
    for name in value:
        if name not in names:
            raise PlanError(f"{path}.{name}", f"expected {one_of(names, name)}")
