"""A scenario as an ordinary test of pytest: what its verdict means there, and what a failure says."""

from __future__ import annotations

import io
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from conformance.known.defects import KnownDefects
from conformance.printing import SafeConsole, plain
from conformance.results import RowResult, RuleResult, Verdict
from conformance.suite import expectations
from conformance.suite.clients import ClientUnderTest
from conformance.suite.console import print_failure
from conformance.suite.harness import ClientHarness
from conformance.suite.judgement import Judgement
from conformance.suite.present import replay_command, to_result
from conformance.suite.scenario import Scenario
from conformance.suite.verdicts import SKIPPED
from fakebrokers.pytest_settings import has_allure

WIDTH = 160  #: of the lines that are cut


class KnownFailure(pytest.fail.Exception):  # type: ignore[misc, name-defined] # a class in a variable
    """A failure that the expectation file lists."""


class ScenarioItem:
    """One test: a scenario, on a client that others share.

    Args:
        folder: Where the commands in a failure's text begin: that of the test file.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        station: ClientHarness,
        client: ClientUnderTest,
        known: KnownDefects,
        seed: int,
        folder: Path,
    ) -> None:
        self.scenario = scenario
        self._station = station
        self._client = client
        self._known = known
        self._seed = seed
        self._folder = folder
        self._row: RowResult | None = None
        self._judgement: Judgement | None = None  #: for Allure's report, where one is written
        self._rules: list[RuleResult] = []
        self._commands: list[str] = []

    def __repr__(self) -> str:
        return self.scenario.label

    @property
    def parameter(self) -> object:
        """What `pytest.mark.parametrize` takes, with id and marks."""
        item = self.scenario
        words = "-".join(part for part in (item.id, item.variant) if part)
        return pytest.param(self, id=words, marks=list(self._marks()))

    def _marks(self) -> Iterator[pytest.MarkDecorator]:
        item = self.scenario
        yield pytest.mark.conformance(
            id=item.id, section=item.requirement.section, level=item.level, protocol=item.protocol
        )
        yield getattr(pytest.mark, item.level)
        listed = [entry for entry in self._known.rows if entry.key == item.key]
        entries = [entry for entry in listed if entry.verdict is not Verdict.NON_STRICT]
        if entries:
            reason = "; ".join(dict.fromkeys(entry.why for entry in entries))
            yield pytest.mark.xfail(
                raises=KnownFailure, reason=reason, strict=any(entry.is_steady for entry in entries)
            )

    def judged(self, request: pytest.FixtureRequest) -> ScenarioItem:
        """Judge the client; in the set-up of a test, where errors of the harness belong."""
        node: pytest.Item = request.node
        if not self._station.is_open:
            (node.getparent(pytest.Module) or node.session).addfinalizer(self._station.close)
        judgement, row = self._judge()
        self._row, self._judgement = row, judgement if has_allure(node.config) else None
        self._commands = self._again(node)
        reported = [("level", row.level), ("verdict", row.verdict.value), ("criterion", row.criterion)]
        reported += [("tag", tag) for tag in row.tags]
        node.user_properties += [(name, value) for name, value in reported if value]
        if row.verdict in SKIPPED:
            pytest.skip(row.reason)
        if row.verdict is Verdict.HARNESS_ERROR:
            self._show()
            pytest.fail(account(row, self._commands), pytrace=False)
        return self

    def report(self) -> None:
        """Pass, or fail with the evidence; in the call of a test, where failures of the client belong.

        A violated rule fails the first test that shows it, whatever the scenario itself says: no test is
        about rules alone, since the tests of one client may run in several processes.
        """
        row = self._row
        self._show()
        if self._rules:
            texts = [rule_account(rule, self._commands) for rule in self._rules]
            if row is not None and row.verdict is Verdict.FAIL:
                texts.insert(0, account(row, self._commands))
            raise pytest.fail.Exception("\n\n".join(texts), pytrace=False)
        if row is not None and row.verdict not in (Verdict.PASS, Verdict.NON_STRICT):
            kind = KnownFailure if "expected" in row.tags else pytest.fail.Exception
            raise kind(account(row, self._commands), pytrace=False)

    def _show(self) -> None:
        """Put steps and attachments into Allure's report of the test that runs now."""
        if self._judgement is not None and self._row is not None:
            from conformance.suite.allure_steps import show

            show(self._judgement, self._row, [rule.reason for rule in self._rules])
        self._judgement = None

    def _judge(self) -> tuple[Judgement, RowResult]:
        judgement = self._station.judge(self.scenario)
        self._rules = [rule for rule in self._station.new_rules if rule.is_new and rule.level == "MUST"]
        hello = self._station.hello
        name = self._client.name or (hello.library if hello else "") or "client"
        who = self._client.options or ("--adapter", "")
        row = to_result(judgement, client=name, seed=self._seed, who=who)
        row = msgspec.structs.replace(row, criterion=judgement.criterion_id)
        return judgement, expectations.apply([row], self._known)[0]

    def _again(self, node: pytest.Item) -> list[str]:
        """The commands that run exactly this again."""
        here = Path.cwd()
        test = f"{_from(node.path, here)}::{node.nodeid.partition('::')[2]}"
        commands = [shlex.join(["pytest", test])]
        if self._client.options:
            command = replay_command(
                self.scenario, who=self._client.options, seed=self._seed, folder=self._folder
            )
            begin = "" if self._folder == here else f"cd {shlex.quote(_from(self._folder, here))} && "
            commands.append(begin + command)
        return commands


def rule_account(rule: RuleResult, commands: Sequence[str]) -> str:
    """What a failure by a rule says."""
    lines = [
        f"the rule {rule.rule} was violated: {plain(rule.reason)}",
        f"  {'required':<11} {rule.about}",
        "  Later tests that show the same do not fail by it.",
        *(f"  {word:<11} {command}" for word, command in zip(("again", "or"), commands, strict=False)),
        f"  {'rule':<11} {rule.rule} (for a file of known failures)",
    ]
    return "\n".join(lines)


def _from(path: Path, here: Path) -> str:
    return os.path.relpath(path, here)


def account(row: RowResult, commands: Sequence[str]) -> str:
    """What a failure says: why, in the first line, then everything.

    Args:
        commands: Those that run it again, the best first.
    """
    first = plain(row.reason.partition("\n")[0])
    kind = "" if row.verdict is Verdict.FAIL else f"{row.verdict.value}: "
    written = io.StringIO()
    console = SafeConsole(file=written, width=WIDTH, color_system=None, highlight=False)
    print_failure(console, msgspec.structs.replace(row, replay=commands[0]))
    lines = [f"{kind}{first}", written.getvalue().rstrip()]
    lines += [f"  {'or':<11} {command}" for command in commands[1:]]
    if row.criterion:
        lines.append(f"  {'criterion':<11} {row.criterion} (for a file of known failures)")
    return "\n".join(lines)
