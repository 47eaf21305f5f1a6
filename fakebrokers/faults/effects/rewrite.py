"""Fields of the frame change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Passage, Realism
from fakebrokers.faults.match import Match

if TYPE_CHECKING:
    from fakebrokers.core.wire import Wire
from fakebrokers.reading import field_value


class Rewrite(Effect, frozen=True, tag="rewrite"):
    """Fields get other values.

    Attributes:
        fields: Name to new value; a dotted name looks inside (``chunk.crc``). ``{"add": n}`` as a
            value adds to what is there.
    """

    realism = Realism.ILLEGAL
    fields: Mapping[str, Any]

    def apply(self, passage: Passage) -> None:
        frame = passage.frame
        for name, value in self.fields.items():
            frame = _replace(frame, name.split("."), value, f"rewrite of {type(frame).__name__}")
        assert frame is not None
        passage.pass_on(frame)

    def check(self, path: str) -> None:
        if not self.fields:
            raise PlanError(f"{path}.fields", "expected at least one field, got none")

    def check_wire(self, wire: Wire, match: Match, path: str) -> None:
        known = wire.fields_of(match.kind, match.role, path)
        for name in self.fields:
            if name.split(".")[0] not in known:
                raise PlanError(
                    f"{path}.fields.{name}", f"expected one of {', '.join(sorted(known))}; got {name!r}"
                )


def _replace(value: Any, names: list[str], new: Any, path: str) -> Any:
    if not names:
        return value + new["add"] if isinstance(new, Mapping) and set(new) == {"add"} else new
    name, *inner = names
    if isinstance(value, Mapping):
        return {**value, name: _replace(value.get(name), inner, new, f"{path}.{name}")}
    fields = getattr(value, "__struct_fields__", ())
    if name not in fields:
        raise PlanError(f"{path}.{name}", f"expected one of {', '.join(fields) or 'no fields'}")
    changed = _replace(getattr(value, name), inner, new, f"{path}.{name}")
    if not inner:
        changed = _like_field(value, name, changed)
    return msgspec.structs.replace(value, **{name: changed})


def _like_field(value: Any, name: str, new: Any) -> Any:
    """As the field has it if it fits; an illegal value stays as it is."""
    kind = next(field.type for field in msgspec.structs.fields(value) if field.name == name)
    try:
        return field_value(new, kind)
    except msgspec.ValidationError:
        return new
