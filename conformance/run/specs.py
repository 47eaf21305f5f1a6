"""A run of the sweep as plain values: a base script, faults, changed arguments, concurrent actions."""

from __future__ import annotations

from typing import Any

import msgspec

from fakebrokers.output import cut

PLAIN, ORDER = "plain", "order"  #: in place of acts: no fault, and another argument of an op
LONGEST = 200  #: characters of a value that are shown
EVERY = "*"  #: in place of a connection: all of them, until the faults are cleared


class Injection(msgspec.Struct, frozen=True, array_like=True):
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
        more = "" if self.param is None else f" {cut(str(self.param), LONGEST)}"
        return f"{self.act}{more} at {self.connection} {self.direction} {self.nth}"


class ArgumentChange(msgspec.Struct, frozen=True, array_like=True):
    """Another argument for the n-th op of a base, from 1. `path` is dotted: ``options.credit``."""

    op: int
    path: str
    value: Any


class ConcurrentAction(msgspec.Struct, frozen=True, array_like=True):
    """What the application does besides, around the n-th op of a base, from 1.

    Attributes:
        what: See `concurrent_actions`.
        turns: How many turns of the loop after the beginning of the op it comes.
    """

    op: int
    what: str
    turns: int = 0

    def __str__(self) -> str:
        later = f" {self.turns} turns later" if self.turns else ""
        return f"{self.what} at op {self.op}{later}"


class Spec(
    msgspec.Struct, frozen=True, omit_defaults=True, rename={"injections": "bends", "concurrent": "asides"}
):
    """One run. Equal specs run alike, byte for byte.

    Attributes:
        ops: How many ops the base begins before it goes on to a plain end; None: all.
        concurrent: What the application does besides its base.
    """

    protocol: str
    base: str
    injections: tuple[Injection, ...] = ()
    changes: tuple[ArgumentChange, ...] = ()
    ops: int | None = None
    concurrent: tuple[ConcurrentAction, ...] = ()

    @property
    def acts(self) -> list[str]:
        """What is done, in words that expectations and reports use; ``plain`` where nothing is."""
        found = [injection.act for injection in self.injections]
        found += [ORDER for _ in self.changes] + [f"aside-{action.what}" for action in self.concurrent]
        return found or [PLAIN]

    def __str__(self) -> str:
        said = [str(injection) for injection in self.injections]
        said += [f"op {each.op} with {each.path} = {cut(repr(each.value), LONGEST)}" for each in self.changes]
        said += [str(action) for action in self.concurrent]
        if self.ops is not None:
            said.append(f"its first {self.ops} ops")
        return f"{self.base}: {', '.join(said) or 'no fault'}"


def to_json(spec: Spec) -> str:
    """The spec as one line."""
    return msgspec.json.encode(spec).decode()


def from_json(text: str | bytes) -> Spec:
    """Read it back. Raises `msgspec.ValidationError`."""
    return msgspec.json.decode(text, type=Spec)
