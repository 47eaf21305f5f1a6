"""Expectation files: failures that are known, with the reason and where to read more.

[[known]]
id = "RMQS-6.06"
protocol = "rabbitmq-stream"
variant = ""
verdict = "fail"
reason = "the reader task dies silently on an unknown key (rstream 1.1.1)"
reproducer = "reproducers/rmqs_6_06.py"
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from conformance.results import Result, Verdict
from conformance.suite.scenario import Key
from fakebrokers.errors import UsageError


class Known(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One known failure.

    Attributes:
        reason: A sentence that a stranger understands.
        reproducer: Path of a one-file reproducer, relative to the expectation file.
        report: Where it was reported, if it was.
        sometimes: It does not fail every time; a pass is no surprise.
    """

    id: str
    protocol: str
    reason: str
    variant: str = ""
    verdict: Verdict = Verdict.FAIL
    reproducer: str = ""
    report: str = ""
    sometimes: bool = False


class Expectations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole file."""

    version: int = 1
    client: str = ""
    client_version: str = ""
    known: tuple[Known, ...] = ()

    def failures(self) -> set[Key]:
        """What is expected to fail, every time or sometimes."""
        return {(k.id, k.protocol, k.variant) for k in self.known if k.verdict is Verdict.FAIL}


def load(path: Path) -> Expectations:
    """Read an expectation file. `UsageError` with place and problem if it is none."""
    try:
        found = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Expectations)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"{path}: expected a file of known failures: {error}") from None
    if found.version != 1:
        raise UsageError(f"{path}: expected version 1, got {found.version}")
    for known in found.known:
        if not known.reason.strip():
            raise UsageError(f"{path}: {known.id}: expected a reason, got none")
    return found


def apply(results: Iterable[Result], expectations: Expectations) -> list[Result]:
    """Tag what was expected (``expected``) and what was expected to fail and passed (``unexpected pass``)."""
    known = {(k.id, k.protocol, k.variant): k for k in expectations.known}
    marked = []
    for row in results:
        entry = known.get(row.key)
        if entry is not None and row.verdict is entry.verdict:
            tags = (*row.tags, "expected")
            row = msgspec.structs.replace(row, tags=tags, reason=f"{row.reason} [known: {entry.reason}]")
        elif entry is not None and not entry.sometimes and row.verdict in (Verdict.PASS, Verdict.NON_STRICT):
            row = msgspec.structs.replace(row, tags=(*row.tags, "unexpected pass"))
        marked.append(row)
    return marked
