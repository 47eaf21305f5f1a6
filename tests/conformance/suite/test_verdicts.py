"""From verdicts to exit codes."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.results import RowResult, RuleResult, Verdict
from conformance.suite.verdicts import executed_share, exit_code, judged
from fakebrokers.commands import ExitCode


def row(verdict: Verdict, level: Any = "MUST", *tags: str) -> RowResult:
    return RowResult("RMQS-1.01", "rabbitmq-stream", "", level, verdict, tags=tags)


@pytest.mark.parametrize(
    ("rows", "strict", "code"),
    [
        ([row(Verdict.PASS)], False, ExitCode.OK),
        ([row(Verdict.NON_STRICT)], True, ExitCode.OK),
        ([row(Verdict.FAIL)], False, ExitCode.FAILED),
        ([row(Verdict.FAIL, "SHOULD")], False, ExitCode.OK),
        ([row(Verdict.FAIL, "SHOULD")], True, ExitCode.FAILED),
        ([row(Verdict.FAIL, "MAY")], True, ExitCode.OK),
        ([row(Verdict.FAIL, "MUST", "expected")], False, ExitCode.OK),
        ([row(Verdict.HARNESS_ERROR), row(Verdict.FAIL)], False, ExitCode.HARNESS),
        ([row(Verdict.INCONCLUSIVE), row(Verdict.FAIL)], False, ExitCode.FAILED),
        ([row(Verdict.INCONCLUSIVE)], False, ExitCode.INCONCLUSIVE),
        ([row(Verdict.UNSUPPORTED)], False, ExitCode.INCONCLUSIVE),
        ([row(Verdict.PROFILE)], False, ExitCode.INCONCLUSIVE),
        ([row(Verdict.PASS, "SHOULD")], False, ExitCode.OK),
        ([row(Verdict.INCONCLUSIVE, "SHOULD")], False, ExitCode.INCONCLUSIVE),
        ([], False, ExitCode.INCONCLUSIVE),
        ([row(Verdict.PASS, "MUST", "unexpected pass")], False, ExitCode.OK),
        ([row(Verdict.PASS, "MUST", "unexpected pass")], True, ExitCode.REGRESSION),
    ],
)
def test_the_first_code_of_the_contract_wins(rows: list[RowResult], strict: bool, code: ExitCode) -> None:
    assert exit_code(rows, strict=strict) is code


def rule(level: Any = "MUST", verdict: Verdict = Verdict.FAIL, *tags: str) -> RuleResult:
    return RuleResult("beats", "pzq", "", level, verdict, ("PZQ-1.01", "PZQ-1.02"), "silent", tags=tags)


@pytest.mark.parametrize(
    ("found", "strict", "code"),
    [
        (rule(), False, ExitCode.FAILED),
        (rule("SHOULD"), False, ExitCode.OK),
        (rule("SHOULD"), True, ExitCode.FAILED),
        (rule("MUST", Verdict.FAIL, "expected"), True, ExitCode.OK),
        (rule("MUST", Verdict.INCONCLUSIVE), True, ExitCode.OK),
        (rule("MUST", Verdict.PASS, "unexpected pass"), False, ExitCode.OK),
        (rule("MUST", Verdict.PASS, "unexpected pass"), True, ExitCode.REGRESSION),
    ],
)
def test_a_rule_counts_once(found: RuleResult, strict: bool, code: ExitCode) -> None:
    rows = [row(Verdict.PASS)]
    assert exit_code(rows, [found], strict=strict) is code
    assert judged(rows, [rule(), rule()])[1] == ["beats was violated, which was not expected"]


def test_an_incomplete_adapter_is_inconclusive() -> None:
    assert exit_code([row(Verdict.PASS)], incomplete=True) is ExitCode.INCONCLUSIVE


def test_a_tenth_may_be_left_out() -> None:
    rows = [row(Verdict.PASS)] * 9 + [row(Verdict.UNSUPPORTED)]
    assert executed_share(rows) == 0.9
    assert exit_code(rows) is ExitCode.OK
    assert exit_code(rows[1:]) is ExitCode.INCONCLUSIVE


def test_what_is_not_for_this_client_does_not_count() -> None:
    assert executed_share([row(Verdict.PASS), *[row(Verdict.PROFILE)] * 9]) == 1.0
    assert executed_share([row(Verdict.PASS, "MAY")]) == 1.0
    assert executed_share([]) == executed_share([row(Verdict.UNSUPPORTED, "MAY")]) == 0.0
