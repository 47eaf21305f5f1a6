"""Expectation files: failures that are known, with the criterion that fails and the cause behind it.

    version = 1
    client = "rstream"
    client_version = "1.1.1"

    [[known]]
    id = "RMQS-6.06"
    protocol = "rabbitmq-stream"
    criterion = "the-next-request-is-answered"
    cause = "the reader task dies silently on an unknown key (client.py, _listener)"

    [[known]]
    rule = "wire-legal"
    protocol = "moleculer"
    rows = ["MOL-1.02", "MOL-3.01"]
    cause = "hostname of INFO is None (node.py, info)"

One cause may stand in many rows: it is one defect, whatever it breaks. Any other criterion of the same
scenario that fails is news, and so is the rule in the run of another row; without `rows` it is known in all.
``python -m conformance.suite.expectations RESULTS FILE`` puts the criteria of a
run into a file, and shows what fails and is not in it.
"""

from __future__ import annotations

import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from conformance import results as result_files
from conformance.adapter.messages import Hello
from conformance.invariants import INVARIANTS, Finding
from conformance.results import Result, RuleResult, Verdict
from conformance.suite.declared import declared_by
from conformance.suite.judge import Judgement
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Key
from conformance.suite.verdicts import was_executed
from fakebrokers.errors import UsageError
from fakebrokers.files import toml_of

PASSED = (Verdict.PASS, Verdict.NON_STRICT)


class Known(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One known failure: of a scenario, or of a rule for all runs.

    Attributes:
        id: The scenario's; empty for a rule.
        rule: The rule's name; empty for a scenario.
        rows: Ids of the scenarios in whose runs the rule may be violated; none: all.
        criterion: Ids of the criteria that may be the one that fails; none: any.
        cause: The root cause, a sentence that a stranger understands. Rows with the same are one defect.
        reason: What more there is to say of this row; without a cause, that.
        reproducer: Path of a one-file reproducer, relative to the expectation file.
        report: Where it was reported, if it was.
        sometimes: It does not fail every time; a pass is no surprise.
    """

    protocol: str
    id: str = ""
    rule: str = ""
    rows: tuple[str, ...] = ()
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

    @property
    def is_about_verdict(self) -> bool:
        """Whether it says that a scenario fails: a criterion that is called like a rule may mean the rule,
        as in files before 0.3, and then the scenario passes."""
        return bool(self.id) and (not self.criteria or not RULES.issuperset(self.criteria))

    @property
    def is_steady(self) -> bool:
        """Whether a pass is a surprise."""
        return self.is_about_verdict and not self.sometimes and self.verdict is not Verdict.NON_STRICT

    def fits(self, verdict: Verdict, criterion: str) -> bool:
        """Whether this is the failure that is known."""
        return verdict is self.verdict and (not self.criteria or criterion in self.criteria)

    def covers(self, rule: str, key: Key) -> bool:
        """Whether this says that the rule is violated in the run of this row."""
        if self.id:
            return self.key == key and (not self.criteria or rule in self.criteria)
        is_there = self.protocol == key[1] and self.variant in ("", key[2])
        return self.rule == rule and is_there and (not self.rows or key[0] in self.rows)


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
        key = judgement.scenario.key
        entries = [known for known in self.known if known.key == key]
        if any(known.fits(judgement.verdict, judgement.criterion_id) for known in entries):
            return True
        steady = [each for each in entries if each.is_steady]
        return False if steady and judgement.verdict in PASSED else None

    def knows(self, rule: str, key: Key) -> Known | None:
        """What the file says of a rule that is violated in the run of a row."""
        return next((known for known in self.known if known.covers(rule, key)), None)

    def news(self, judgement: Judgement) -> list[Finding]:
        """The violated rules of which the file says nothing.

        A failure that is known explains what rules find in its run.
        """
        if judgement.verdict is Verdict.FAIL and self.foresee(judgement):
            return []
        return [each for each in judgement.broken if self.knows(each.name, judgement.scenario.key) is None]

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


def _on_stderr(problem: str) -> None:
    print(f"warning: {problem}", file=sys.stderr)


def load(path: Path, warn: Callable[[str], object] = _on_stderr) -> Expectations:
    """Read an expectation file.

    Args:
        warn: Hears of criteria that the suite does not declare: their rows fit no failure.

    Raises:
        UsageError: With place and problem, if it is none.
    """
    found = toml_of(path, "a file of known failures", Expectations)
    if found.version != 1:
        raise UsageError(f"{path}: expected version 1, got {found.version}")
    for known in found.known:
        for problem in _check(path, known):
            warn(problem)
    return found


#: What any scenario may fail for, besides its own criteria.
RULES = frozenset(each.name for each in INVARIANTS.values())


def _check(path: Path, known: Known) -> list[str]:
    """Raise `UsageError` for a row that can never be true; returns what is wrong with its criteria."""
    named = known.id or known.rule
    if bool(known.id) is bool(known.rule):
        both = f"{known.id!r} and {known.rule!r}" if named else "neither"
        raise UsageError(f"{path}: expected either an id or a rule in each row, got {both}")
    if not known.why.strip():
        raise UsageError(f"{path}: {named}: expected a cause, got none")
    rows = {item.key: item for item in all_scenarios()}
    if known.rule:
        _check_rule(path, known, rows)
        return []
    if known.key not in rows:
        ids = sorted({item.id for item in rows.values() if item.protocol == known.protocol})
        name = "/".join(part for part in known.key if part)
        raise UsageError(f"{path}: there is no scenario {name}{_meant(known.id, ids)}")
    declared = declared_by(rows[known.key])
    return [
        f"{path}: {known.id} has no criterion {wanted!r}{_meant(wanted, sorted(declared.ids))}"
        for wanted in known.criteria
        if wanted not in RULES and not declared.has(wanted)
    ]


def _check_rule(path: Path, known: Known, rows: Iterable[Key]) -> None:
    if known.rule not in RULES:
        raise UsageError(f"{path}: there is no rule {known.rule!r}{_meant(known.rule, sorted(RULES))}")
    if known.criteria:
        raise UsageError(f"{path}: {known.rule}: a rule has no criteria, got {', '.join(known.criteria)}")
    ids = sorted({key[0] for key in rows if key[1] == known.protocol})
    for wanted in known.rows:
        if wanted not in ids:
            raise UsageError(f"{path}: {known.rule}: there is no row {wanted}{_meant(wanted, ids)}")


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
        if any(entry.is_steady for entry in entries):
            return msgspec.structs.replace(row, tags=(*row.tags, "unexpected pass"))
    elif any(entry.verdict is row.verdict for entry in entries):
        known = ", ".join(sorted({name for entry in entries for name in entry.criteria}))
        return msgspec.structs.replace(row, reason=f"{row.reason} [{row.criterion}; known is only {known}]")
    return row


def apply_rules(
    rules: Iterable[RuleResult], expectations: Expectations, results: Iterable[Result]
) -> list[RuleResult]:
    """Tag what was expected, and split what was expected in some of its rows only.

    Args:
        results: The rows of the same run, with their tags. One that fails as expected explains what rules
            have found in it. What the file expects of a rule in rows that all were judged, and none of them
            shows, is an ``unexpected pass``.
    """
    rows = {row.key: row for row in results}
    marked: list[RuleResult] = []
    seen: set[Known] = set()
    for rule in rules:
        parts: dict[str, list[str]] = defaultdict(list)
        for name in rule.rows:
            key = name, rule.protocol, rule.variant
            known = expectations.knows(rule.rule, key)
            seen.update([known] if known is not None else [])
            row = rows.get(key)
            explained = row.cause if row is not None and "expected" in row.tags else ""
            parts[known.cause or known.reason if known is not None else explained].append(name)
        marked += [_marked_rule(rule, tuple(names), cause) for cause, names in parts.items()]
    judged = {key for key, row in rows.items() if was_executed(row)}
    missed = [known for known in expectations.known if known.rule and known not in seen]
    return marked + [_unseen(known) for known in missed if not known.sometimes and _is_judged(known, judged)]


def _marked_rule(rule: RuleResult, rows: tuple[str, ...], cause: str) -> RuleResult:
    tags = (*rule.tags, "expected") if cause else rule.tags
    return msgspec.structs.replace(rule, rows=rows, tags=tags, cause=cause)


def _is_judged(known: Known, judged: Collection[Key]) -> bool:
    """Whether all rows in which it is expected were judged; what names none is expected in no certain one."""
    found = {key[0] for key in judged if key[1] == known.protocol and known.variant in ("", key[2])}
    return bool(known.rows) and found.issuperset(known.rows)


def _unseen(known: Known) -> RuleResult:
    rule = INVARIANTS[known.rule]
    return RuleResult(
        rule=known.rule,
        protocol=known.protocol,
        variant=known.variant,
        level=rule.level,
        verdict=Verdict.PASS,
        rows=known.rows,
        reason="violated in none of its rows",
        about=rule.about,
        tags=("unexpected pass",),
    )


def causes(results: Iterable[Result | RuleResult]) -> list[str]:
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
