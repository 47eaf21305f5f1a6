"""Expectation files: failures that are known, with the criterion that fails and the cause behind it.

    version = 1
    client = "rstream"
    client_version = "1.1.1"

    [[known]]
    id = "RMQS-6.06"
    protocol = "rabbitmq-stream"
    criterion = "the-next-request-is-answered"
    cause = "the reader task dies silently on an unknown key (client.py, _listener)"

One cause may stand in many rows: it is one defect, whatever it breaks. Any other criterion of the same
scenario that fails is news. ``python -m conformance.suite.expectations RESULTS FILE`` puts the criteria of a
run into a file, and shows what fails and is not in it.
"""

from __future__ import annotations

import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from conformance import results as result_files
from conformance.adapter.messages import Hello
from conformance.invariants import INVARIANTS
from conformance.results import Result, Verdict
from conformance.suite.criteria import criteria_of
from conformance.suite.judge import Judgement
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Key
from fakebrokers.errors import UsageError

PASSED = (Verdict.PASS, Verdict.NON_STRICT)


class Known(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One known failure.

    Attributes:
        criterion: Ids of the criteria that may be the one that fails; none: any.
        cause: The root cause, a sentence that a stranger understands. Rows with the same are one defect.
        reason: What more there is to say of this row; without a cause, that.
        reproducer: Path of a one-file reproducer, relative to the expectation file.
        report: Where it was reported, if it was.
        sometimes: It does not fail every time; a pass is no surprise.
    """

    id: str
    protocol: str
    criterion: str | tuple[str, ...] = ()
    cause: str = ""
    reason: str = ""
    variant: str = ""
    verdict: Verdict = Verdict.FAIL
    reproducer: str = ""
    report: str = ""
    sometimes: bool = False

    @property
    def key(self) -> Key:
        """What names the row."""
        return self.id, self.protocol, self.variant

    @property
    def criteria(self) -> tuple[str, ...]:
        """The criteria, however they were given."""
        return (self.criterion,) if isinstance(self.criterion, str) else self.criterion

    @property
    def why(self) -> str:
        """The cause, and what more there is to say."""
        return "; ".join(part for part in (self.cause, self.reason) if part)

    def fits(self, verdict: Verdict, criterion: str) -> bool:
        """Whether this is the failure that is known."""
        return verdict is self.verdict and (not self.criteria or criterion in self.criteria)


class Expectations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole file.

    Attributes:
        client: As the bundled client, the adapter or the library is called; empty for whoever it is.
        client_version: Of the library; may be a pattern such as ``1.1.*``.
    """

    version: int = 1
    client: str = ""
    client_version: str = ""
    known: tuple[Known, ...] = ()

    def foresee(self, judgement: Judgement) -> bool | None:
        """Whether the file says so (True), or this is a pass of what always fails (False); else None."""
        entries = [known for known in self.known if known.key == judgement.scenario.key]
        if any(known.fits(judgement.verdict, judgement.criterion_id) for known in entries):
            return True
        steady = [each for each in entries if not each.sometimes and each.verdict is not Verdict.NON_STRICT]
        return False if steady and judgement.verdict in PASSED else None

    def check_client(self, path: Path | None, name: str, hello: Hello) -> None:
        """Raise `UsageError` unless the file is about this client in this version."""
        self.check_names(path, {name, hello.adapter, hello.library}, hello.library_version)

    def check_names(self, path: Path | None, names: Iterable[str], version: str) -> None:
        """Raise `UsageError` unless the file is about a client of one of these names, in this version."""
        known = sorted({*names} - {""})
        if self.client and self.client not in known:
            called = " or ".join(known)
            raise UsageError(f"{path}: is about {self.client!r}, and this client is called {called}")
        if self.client_version and not fnmatchcase(version, self.client_version):
            raise UsageError(
                f"{path}: is about {self.client} {self.client_version}, and this is {version}: "
                "judge it without --expect, and put what has changed and its version into the file"
            )


def load(path: Path) -> Expectations:
    """Read an expectation file. `UsageError` with place and problem if it is none."""
    try:
        found = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Expectations)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"{path}: expected a file of known failures: {error}") from None
    if found.version != 1:
        raise UsageError(f"{path}: expected version 1, got {found.version}")
    for known in found.known:
        _check(path, known)
    return found


#: What any scenario may fail for, besides its own criteria.
RULES = frozenset(each.name for each in INVARIANTS.values())


def _check(path: Path, known: Known) -> None:
    """Raise `UsageError` for a row that can never be true."""
    if not known.why.strip():
        raise UsageError(f"{path}: {known.id}: expected a cause, got none")
    rows = {item.key: item for item in all_scenarios()}
    if known.key not in rows:
        ids = sorted({item.id for item in rows.values() if item.protocol == known.protocol})
        name = "/".join(part for part in known.key if part)
        raise UsageError(f"{path}: there is no scenario {name}{_meant(known.id, ids)}")
    criteria = criteria_of(rows[known.key])
    for wanted in known.criteria:
        if wanted not in RULES and not criteria.has(wanted):
            problem = f"{known.id} has no criterion {wanted!r}"
            raise UsageError(f"{path}: {problem}{_meant(wanted, sorted(criteria.ids))}")


def _meant(word: str, names: list[str]) -> str:
    close = get_close_matches(word, names, n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def apply(results: Iterable[Result], expectations: Expectations) -> list[Result]:
    """Tag what was expected (``expected``) and what was expected to fail and passed (``unexpected pass``)."""
    entries: dict[Key, list[Known]] = defaultdict(list)
    for known in expectations.known:
        entries[known.key].append(known)
    return [_marked(row, entries[row.key]) if row.key in entries else row for row in results]


def _marked(row: Result, entries: list[Known]) -> Result:
    for entry in entries:
        if entry.fits(row.verdict, row.criterion):
            reason = f"{row.reason} [known: {entry.why}]"
            cause = entry.cause or entry.reason
            return msgspec.structs.replace(row, tags=(*row.tags, "expected"), reason=reason, cause=cause)
    if row.verdict in PASSED:
        if any(not entry.sometimes and entry.verdict is not Verdict.NON_STRICT for entry in entries):
            return msgspec.structs.replace(row, tags=(*row.tags, "unexpected pass"))
    elif any(entry.verdict is row.verdict for entry in entries):
        known = ", ".join(sorted({name for entry in entries for name in entry.criteria}))
        return msgspec.structs.replace(row, reason=f"{row.reason} [{row.criterion}; known is only {known}]")
    return row


def causes(results: Iterable[Result]) -> list[str]:
    """The root causes behind the known failures: how many defects there are."""
    return list(dict.fromkeys(row.cause for row in results if row.cause))


def refreshed(text: str, results: Iterable[Result]) -> str:
    """An expectation file with the criteria that failed in a run put into the rows that are there."""
    found = {row.key: row for row in results}
    head, *blocks = text.split("[[known]]\n")
    return "[[known]]\n".join([head, *(_refreshed(block, found) for block in blocks)])


def _refreshed(block: str, found: dict[Key, Result]) -> str:
    known = msgspec.convert(tomllib.loads(block), Known)
    row = found.get(known.key)
    if row is None or row.verdict is not known.verdict or row.criterion in ("", *known.criteria):
        return block
    wanted = dict.fromkeys([*(known.criteria if known.sometimes else ()), row.criterion])
    names = ", ".join(f'"{name}"' for name in wanted)
    lines = [line for line in block.splitlines() if not line.startswith("criterion =")]
    place = next(number for number, line in enumerate(lines) if line.startswith("protocol =")) + 1
    lines.insert(place, f"criterion = {names if len(wanted) == 1 else f'[{names}]'}")
    return "\n".join(lines) + "\n"


def main(results: Path, path: Path) -> None:
    """Put the criteria of a run into a file; print what fails and is not in it, as rows to fill in."""
    rows = result_files.load(results).results
    path.write_text(refreshed(path.read_text(encoding="utf-8"), rows), encoding="utf-8")
    known = {entry.key for entry in load(path).known}
    for row in rows:
        if row.verdict is Verdict.FAIL and row.key not in known:
            print(f'[[known]]\nid = "{row.id}"\nprotocol = "{row.protocol}"')
            print(f'criterion = "{row.criterion}"\ncause = "" # {row.reason.splitlines()[0]}\n')


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
