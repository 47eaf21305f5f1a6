"""What a client is known to violate, by root cause, so that a sweep tells what is new.

    version = 1
    client = "rstream"
    client_version = "1.1.1"

    [[known]]
    invariant = "one-loss-event"
    acts = ["rst", "second*"]
    detail = "*0 losses were reported*"
    cause = "a connection that ends is told to nobody (client.py, _listener)"

Without ``acts`` a row is about all of them, without ``detail`` about whatever happened; ``bases`` narrows it
to base scripts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import msgspec

from conformance.invariants import INVARIANTS, Finding
from conformance.sweep.acts import ACTS
from conformance.sweep.asides import ASIDES, HURRIED
from conformance.sweep.specs import ORDER, PLAIN
from fakebrokers.errors import UsageError
from fakebrokers.files import toml_of

EXPECTED_VERSION = 1


class Disturbed(Protocol):
    """A run that was disturbed, in the words of these files: a spec of the sweep, a schedule of chaos."""

    @property
    def base(self) -> str:
        """What the application does."""

    @property
    def acts(self) -> Sequence[str]:
        """What is done to it."""


class Known(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row; `invariant`, `acts`, `bases` and `detail` are patterns.

    Attributes:
        severity: ``high``: messages are lost, or told to be what they are not, or the process ends.
            ``medium``: ops hang, or nothing comes back without the user. ``low``: the rest.
    """

    invariant: str
    cause: str
    severity: Literal["high", "medium", "low"] = "medium"
    acts: tuple[str, ...] = ("*",)
    bases: tuple[str, ...] = ("*",)
    detail: str = "*"

    @property
    def is_general(self) -> bool:
        """Whether it holds whatever is done."""
        return self.acts == self.bases == ("*",)

    def fits(self, finding: Finding, spec: Disturbed) -> bool:
        """Whether a finding is of this root cause."""
        return (
            fnmatchcase(finding.name, self.invariant)
            and any(fnmatchcase(spec.base, pattern) for pattern in self.bases)
            and any(fnmatchcase(act, pattern) for act in spec.acts for pattern in self.acts)
            and fnmatchcase(finding.detail, self.detail)
        )


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file."""

    version: int
    client: str
    client_version: str = ""
    known: tuple[Known, ...] = ()

    def news(self, findings: list[Finding], spec: Disturbed) -> list[Finding]:
        """The findings that no row is about."""
        return [one for one in findings if not self.cause_of(one, spec)]

    def cause_of(self, finding: Finding, spec: Disturbed) -> str:
        """The root cause of a finding; "" if no row is about it."""
        return next((row.cause for row in self.known if row.fits(finding, spec)), "")


E = TypeVar("E", bound=Expected)


def load_expected(path: Path) -> Expected:
    """Read a file. Raises `UsageError` where something is wrong in it."""
    words = (*ACTS, PLAIN, ORDER, *(f"aside-{what}" for what in (*ASIDES, HURRIED)))
    return read_expected(path, Expected, {each.name for each in INVARIANTS.values()}, words)


def read_expected(path: Path, kind: type[E], names: Collection[str], words: Collection[str]) -> E:
    """Read a file of any kind.

    Args:
        names: Of what can be found.
        words: Of what can be done.

    Raises:
        UsageError: Something is wrong in it.
    """
    found = toml_of(path, "a file of what is known", kind)
    if found.version != EXPECTED_VERSION:
        raise UsageError(f"{path}: expected version {EXPECTED_VERSION}, got {found.version}")
    for row in found.known:
        if not any(fnmatchcase(name, row.invariant) for name in names):
            raise UsageError(f"{path}: there is no invariant {row.invariant!r}")
        for act in row.acts:
            if not any(fnmatchcase(name, act) for name in words):
                raise UsageError(f"{path}: there is no act {act!r}")
    return found
