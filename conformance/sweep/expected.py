"""What a client is known to violate, by root cause, so that a sweep tells what is new.

    version = 1
    client = "rstream"
    client_version = "1.1.1"

    [[known]]
    invariant = "one-loss-event"
    acts = ["rst", "second*"]
    detail = "*0 losses were told*"
    cause = "a connection that ends is told to nobody (client.py, _listener)"

Without ``acts`` a row is about all of them, without ``detail`` about whatever happened.
"""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from conformance.invariants import INVARIANTS, Finding
from conformance.sweep.acts import ACTS
from conformance.sweep.asides import ASIDES, HURRIED
from conformance.sweep.specs import ORDER, PLAIN, Spec
from fakebrokers.errors import UsageError

EXPECTED_VERSION = 1


class Known(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row; `acts` and `detail` are patterns."""

    invariant: str
    cause: str
    acts: tuple[str, ...] = ("*",)
    detail: str = "*"

    def fits(self, finding: Finding, spec: Spec) -> bool:
        """Whether a finding is of this root cause."""
        return (
            finding.name == self.invariant
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
        return [one for one in findings if not any(row.fits(one, spec) for row in self.known)]


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
        if row.invariant not in names:
            raise UsageError(f"{path}: there is no invariant {row.invariant!r}")
        for act in row.acts:
            if not any(fnmatchcase(name, act) for name in words):
                raise UsageError(f"{path}: there is no act {act!r}")
    return found
