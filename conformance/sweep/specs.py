"""What a run of the sweep is, as plain values: a base script, the faults, and changed arguments of ops."""

from __future__ import annotations

from typing import Any

import msgspec

EVERY = "*"  #: in place of a connection: all of them, until the faults are cleared


class Bend(msgspec.Struct, frozen=True, array_like=True):
    """One fault of a spec.

    Attributes:
        connection: ``c1`` is the first that came; see `EVERY`.
        direction: ``in`` (client to broker) or ``out``.
        nth: Which frame of that direction, from 1.
        act: See `acts`.
        param: How exactly; plain values.
    """

    connection: str
    direction: str
    nth: int
    act: str
    param: Any = None

    def __str__(self) -> str:
        more = "" if self.param is None else f" {self.param}"
        return f"{self.act}{more} at {self.connection} {self.direction} {self.nth}"


class Change(msgspec.Struct, frozen=True, array_like=True):
    """Another argument for the n-th op of a base, from 1. `path` is dotted: ``options.credit``."""

    op: int
    path: str
    value: Any


class Spec(msgspec.Struct, frozen=True, omit_defaults=True):
    """One run. Equal specs run alike, byte for byte.

    Attributes:
        ops: How many ops the base begins before it goes on to a plain end; None: all.
    """

    protocol: str
    base: str
    bends: tuple[Bend, ...] = ()
    changes: tuple[Change, ...] = ()
    ops: int | None = None

    def __str__(self) -> str:
        said = [str(bend) for bend in self.bends]
        said += [f"op {change.op} with {change.path} = {change.value!r}" for change in self.changes]
        if self.ops is not None:
            said.append(f"its first {self.ops} ops")
        return f"{self.base}: {', '.join(said) or 'no fault'}"


def to_json(spec: Spec) -> str:
    """The spec as one line."""
    return msgspec.json.encode(spec).decode()


def from_json(text: str | bytes) -> Spec:
    """Read it back. Raises `msgspec.ValidationError`."""
    return msgspec.json.decode(text, type=Spec)
