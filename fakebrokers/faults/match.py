"""Which frame, or which moment, a fault is for."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

import msgspec

from fakebrokers.core.frames import Frame, Role
from fakebrokers.errors import PlanError
from fakebrokers.faults.source import call
from fakebrokers.reading import shown

Direction = Literal["in", "out"]
Scope = Literal["connection", "peer", "run"]

#: Names in `Match.where` that mean something in every frame; a field of that name goes before (but ``key``).
OF_ITEMS = ("key", "status", "scope")


class Moment(StrEnum):
    """A moment of a connection that a fault can wait for instead of a frame."""

    ACCEPT = "accept"  #: the connection was accepted, nothing was read yet
    READY = "ready"  #: the client is set up: the handshake is done
    PARTIAL = "partial"  #: a frame of the client has begun, but its end has not come yet
    BEGIN = "begin"  #: the time of the fault has come: at each open connection, or at the fake itself
    IDLE = "idle"  #: nothing went over the wire for `after_s` (with a direction: in that one)


class Match(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What has to fit before an effect takes place. Everything that is given must fit.

    Attributes:
        direction: ``in`` (client to broker) or ``out`` (broker to client); None is both.
        role: A `Role`, such as ``confirm``.
        kind: The protocol's own name of the frame, such as ``PublishConfirm``.
        where: Fields and their values; or comparisons such as ``{"code": {"ge": 2}}`` with
            ``eq ne lt le gt ge in`` (all that are given must fit). ``key``, ``status`` and ``scope`` are
            the correlation key, the result code and what the key counts in, whatever the fields' names;
            with unit ``item`` those of the single message.
        on: A `Moment` instead of a frame.
        connection: Only on this connection: ``c1`` is the first that came.
        peer: Only on connections of this peer, where the protocol names them (a node id).
        nth: Only the n-th that fits, from 1.
        skip: Not the first `skip` that fit.
        first: Only the first `first` that fit; those that are skipped count.
        every: Only each n-th that fits.
        after_s: Only later than this; seconds since the connection (or, with scope ``peer`` or ``run``, since
            the fault was added). With ``on = "idle"``: for how long nothing happened.
        from_s: The fault is at work from then on; seconds since it was added, or since the fake started.
        until_s: And until then: it is taken out, and what it holds back is let go. A clock that it moved, a
            node that it stopped, and the like, are as before.
        byte: Only the frame that contains this byte of the connection's stream in its direction, from 0
            (outwards: of what the broker says).
        probability: Of those that fit, this share (0..1), drawn from the plan's seed.
        per: Whether `probability` is drawn for each frame, or once for each connection.
        unit: What is counted: whole frames, or the single messages of a batch.
        scope: Whether each ``connection`` counts for itself, all connections of one ``peer`` together, or all
            of the ``run``. None leaves it to the effects, see `Fault.scope`: for the n-th frame of a
            connection that is ``connection``, for what ends connections ``run``.
    """

    direction: Direction | None = None
    role: Role | None = None
    kind: str | None = None
    where: Mapping[str, Any] = {}
    on: Moment | None = None
    connection: str | None = None
    peer: str | None = None
    nth: int | None = None
    skip: int = 0
    first: int | None = None
    every: int | None = None
    after_s: float | None = None
    from_s: float = 0.0
    until_s: float | None = None
    byte: int | None = None
    probability: float | None = None
    per: Literal["frame", "connection"] = "frame"
    unit: Literal["frame", "item"] = "frame"
    scope: Scope | None = None

    def __repr__(self) -> str:
        return call("Match", self)

    def check(self, path: str) -> None:
        """Raise `PlanError` where values make no sense."""
        for name in ("nth", "first", "every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise PlanError(f"{path}.{name}", f"expected a count from 1, got {value}")
        self._check_positions(path)
        if self.probability is not None and not 0 <= self.probability <= 1:
            raise PlanError(f"{path}.probability", f"expected 0..1, got {self.probability}")
        if self.after_s is not None and self.after_s < 0:
            raise PlanError(f"{path}.after_s", f"expected seconds from 0, got {self.after_s}")
        if self.byte is not None and (self.byte < 0 or self.unit == "item"):
            raise PlanError(f"{path}.byte", f'expected an offset from 0, and unit = "frame", got {self.byte}')
        if self.on is not None:
            for name in ("role", "kind", "where", "byte", "unit"):
                if getattr(self, name) != getattr(_NO_MATCH, name):
                    raise PlanError(
                        f"{path}.{name}", f'expected none: on = "{self.on}" is a moment, not a frame'
                    )
        self._check_times(path)
        if self.on is Moment.IDLE and not self.after_s:
            raise PlanError(f"{path}.after_s", 'expected seconds above 0 with on = "idle", got none')
        for name, wanted in self.where.items():
            _check_predicate(wanted, f"{path}.where.{name}")

    def _check_times(self, path: str) -> None:
        """Raise `PlanError` for a time that never comes."""
        if self.from_s < 0:
            raise PlanError(f"{path}.from_s", f"expected seconds from 0, got {self.from_s}")
        if self.until_s is not None and self.until_s <= self.from_s:
            expected = f"expected seconds above {self.from_s:g}, as `from_s` says"
            raise PlanError(f"{path}.until_s", f"{expected}, got {self.until_s}")
        if self.on is Moment.BEGIN:
            for name in ("nth", "skip", "first", "every", "after_s"):
                if getattr(self, name) != getattr(_NO_MATCH, name):
                    raise PlanError(f"{path}.{name}", 'expected none: on = "begin" comes once, at `from_s`')

    @property
    def is_timed(self) -> bool:
        """Whether the fault has a time of its own."""
        return self.from_s > 0 or self.until_s is not None or self.on is Moment.BEGIN

    def _check_positions(self, path: str) -> None:
        """Raise `PlanError` where no position is left."""
        first = self.first
        if self.skip < 0:
            raise PlanError(f"{path}.skip", f"expected a count from 0, got {self.skip}")
        for name in ("nth", "first"):
            value = getattr(self, name)
            if value is not None and value <= self.skip:
                raise PlanError(
                    f"{path}.{name}", f"expected more than {self.skip}, as `skip` says, got {value}"
                )
        for name in ("nth", "every"):
            value = getattr(self, name)
            if value is not None and first is not None and value > first:
                raise PlanError(f"{path}.{name}", f"expected at most {first}, as `first` says, got {value}")
        if self.nth is not None and self.every is not None and self.nth % self.every:
            raise PlanError(
                f"{path}.nth", f"expected a multiple of {self.every}, as `every` says, got {self.nth}"
            )

    def position_fits(self, n: int) -> bool:
        """Whether the n-th that fits is meant (nth, skip, first, every)."""
        return (
            n > self.skip
            and (self.nth is None or n == self.nth)
            and (self.first is None or n <= self.first)
            and (self.every is None or n % self.every == 0)
        )


_NO_MATCH = Match()


_COMPARE: Mapping[str, Any] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "in": lambda a, b: a in b,
}

_MISSING = object()


def _check_predicate(wanted: Any, path: str) -> None:
    if isinstance(wanted, Mapping):
        for name, other in wanted.items():
            if name not in _COMPARE:
                raise PlanError(path, f"expected one of {', '.join(_COMPARE)}; got {name!r}")
            if name == "in" and not isinstance(other, list | tuple | str):
                raise PlanError(f"{path}.in", f"expected a list of values, got {shown(other)}")


def field_fits(value: Any, wanted: Any) -> bool:
    """Whether a field's value is what `where` asks for. Text also fits bytes that are its UTF-8."""
    if value is _MISSING:
        return False
    if isinstance(value, bytes):
        value = value.decode(errors="surrogateescape")
    elif isinstance(value, tuple):
        value = list(value)
    if not isinstance(wanted, Mapping):
        return bool(value == _plain(wanted))
    try:
        return all(_COMPARE[name](value, _plain(other)) for name, other in wanted.items())
    except TypeError:
        return False


def _plain(wanted: Any) -> Any:
    if isinstance(wanted, bytes):
        return wanted.decode(errors="surrogateescape")
    return list(wanted) if isinstance(wanted, tuple) else wanted


def fields_fit(frame: Frame, where: Mapping[str, Any], of_item: Mapping[str, Any]) -> bool:
    """Whether all fields of `frame` fit; `of_item` has what `OF_ITEMS` names.

    A dotted name looks inside: ``chunk.first_offset``, ``properties.name``, ``body.0``.
    """
    for name, wanted in where.items():
        value = _look_up(frame, name)
        if value is _MISSING or name == "key":
            value = of_item.get(name, _MISSING)
        if not field_fits(value, wanted):
            return False
    return True


def wrong_fields(frame: Frame, where: Mapping[str, Any], of_item: Mapping[str, Any]) -> list[str]:
    """What does not fit, a part of a sentence for each field; see `fields_fit`."""
    wrong = []
    for name, wanted in where.items():
        value = _look_up(frame, name)
        if value is _MISSING or name == "key":
            value = of_item.get(name, _MISSING)
        if value is _MISSING:
            wrong.append(f"it has no {name}")
        elif not field_fits(value, wanted):
            is_plain = not isinstance(wanted, Mapping)
            text = shown(wanted) if is_plain else " ".join(f"{how} {shown(v)}" for how, v in wanted.items())
            wrong.append(f"{name} is {shown(value)}, {'not' if is_plain else 'and has to be'} {text}")
    return wrong


def _look_up(value: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        if isinstance(value, Mapping):
            value = value.get(part, _MISSING)
        elif isinstance(value, tuple) and part.isdecimal():
            value = value[int(part)] if int(part) < len(value) else _MISSING
        else:
            value = getattr(value, part, _MISSING)
    return value
