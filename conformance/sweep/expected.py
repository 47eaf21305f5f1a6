"""What a client is known to violate, by root cause, so that a sweep tells what is new.

    version = 1
    client = "rstream"
    client_version = "1.1.1"

    [[known]]
    invariant = "one-loss-event"
    acts = ["rst", "second*"]
    detail = "*0 losses were told*"
    cause = "a connection that ends is told to nobody (client.py, _listener)"

Without ``acts`` a row is about all of them, without ``detail`` about whatever happened; ``bases`` narrows it
to base scripts.
"""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import msgspec

from conformance.invariants import INVARIANTS, Finding
from conformance.sweep.acts import ACTS
from conformance.sweep.asides import ASIDES, HURRIED
from conformance.sweep.specs import ORDER, PLAIN, Spec
from fakebrokers.errors import UsageError

EXPECTED_VERSION = 1


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

    def fits(self, finding: Finding, spec: Spec) -> bool:
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

    def news(self, findings: list[Finding], spec: Spec) -> list[Finding]:
        """The findings that no row is about."""
        return [one for one in findings if not self.cause_of(one, spec)]

    def cause_of(self, finding: Finding, spec: Spec) -> str:
        """The root cause of a finding; "" if no row is about it."""
        return next((row.cause for row in self.known if row.fits(finding, spec)), "")


def load_expected(path: Path) -> Expected:
    """Read a file. Raises `UsageError` where something is wrong in it."""
    try:
        found = msgspec.convert(tomllib.loads(path.read_text()), Expected)
    except (OSError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"{path}: {error}") from None
    if found.version != EXPECTED_VERSION:
        raise UsageError(f"{path}: expected version {EXPECTED_VERSION}, got {found.version}")
    words = (*ACTS, PLAIN, ORDER, *(f"aside-{what}" for what in (*ASIDES, HURRIED)))
    names = {each.name for each in INVARIANTS.values()}
    for row in found.known:
        if not any(fnmatchcase(name, row.invariant) for name in names):
            raise UsageError(f"{path}: there is no invariant {row.invariant!r}")
        for act in row.acts:
            if not any(fnmatchcase(name, act) for name in words):
                raise UsageError(f"{path}: there is no act {act!r}")
    return found
