"""What rules found stands once for a client, with the rows that show it."""

from __future__ import annotations

import msgspec
import pytest

from conformance.results import Verdict
from conformance.rules import HARNESS, Finding
from conformance.suite.judgement import Judgement
from conformance.suite.load import all_scenarios
from conformance.suite.rule_results import joined, rule_results

ITEMS = [item for item in all_scenarios() if item.protocol == "pzq"]


def judgement(number: int, *findings: Finding, doubted: frozenset[str] = frozenset()) -> Judgement:
    return Judgement(ITEMS[number], Verdict.PASS, findings=findings, doubted=doubted)


def test_many_rows_of_one_violation_are_one() -> None:
    runs = [
        judgement(0, Finding("wire-legal", "part 3 of c1 is b'x', 7 bytes")),
        judgement(1, Finding("wire-legal", "the id is missing")),
        judgement(2, Finding("wire-legal", "part 12 of c2 is b'yy', 8.5 bytes")),
        judgement(3, Finding("wire-legal", "part 3 of c1 is b'x', 7 bytes")),
    ]
    found = joined(each for run in runs for each in rule_results(run))
    assert [(one.rule, one.level, one.verdict, one.rows, one.reason) for one in found] == [
        (
            "wire-legal",
            "MUST",
            Verdict.FAIL,
            (ITEMS[0].id, ITEMS[2].id, ITEMS[3].id),
            runs[0].findings[0].detail,
        ),
        ("wire-legal", "MUST", Verdict.FAIL, (ITEMS[1].id,), "the id is missing"),
    ]
    assert found[0].about == "Every frame of the client can be read by the letter of the protocol."


def test_what_the_contract_allows_and_what_the_harness_did_is_none() -> None:
    findings = Finding("beats", "silent", allowed="heartbeats"), Finding(HARNESS, "no model")
    assert rule_results(judgement(0, *findings)) == []


def test_what_the_machine_may_have_done_is_apart_and_inconclusive() -> None:
    late = Finding("op-ends", "publish gave no answer within 5 s")
    runs = [judgement(0, late, doubted=frozenset({"op-ends"})), judgement(1, late)]
    found = joined(each for run in runs for each in rule_results(run))
    assert [(one.verdict, one.is_new) for one in found] == [
        (Verdict.INCONCLUSIVE, False),
        (Verdict.FAIL, True),
    ]
    assert found[0].reason == f"{late.detail}; but the machine kept client and harness waiting"
    starved = msgspec.structs.replace(runs[0], is_starved=True, waited_s=1.5, seconds=4.0)
    assert "waited 1.50 s of 4.00 s for a processor" in rule_results(starved)[0].reason


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("message 'a' of 127.0.0.1:5672 is lost", 'message "b c" of 10.0.0.7:61 is lost', True),
        ("node-7 of seed-12-sub was given up", "node-s1 of walk-2 was given up", True),
        ("publish gave no answer within 5 s", "subscribe gave no answer within 0.5 s", True),
        ("bmq.post ended late", "settle ended late", True),
        ("1 request pending, and no op is open", "12 requests pending, and no op is open", True),
        ("c1: 0xff after 7f3a-99b0", "c22: 0x0a after 12", True),
        ("hostname of INFO is None", "instanceID of INFO is None", False),
        ("part 3 is missing", "part 3 is doubled", False),
        ("the session was ended by the client.", "the session was ended by the server.", False),
    ],
)
def test_names_and_numbers_make_no_other_violation(one: str, other: str, same: bool) -> None:
    runs = [judgement(number, Finding("wire-legal", text)) for number, text in enumerate((one, other))]
    found = joined(each for run in runs for each in rule_results(run))
    assert len(found) == (1 if same else 2)


def test_the_level_is_that_of_the_finding() -> None:
    [harmless] = rule_results(judgement(0, Finding("wire-legal", "hostname of INFO is None", level="SHOULD")))
    [harmful] = rule_results(judgement(0, Finding("wire-legal", "instanceID of INFO is None")))
    assert (harmless.level, harmful.level) == ("SHOULD", "MUST")


def test_a_violation_is_as_grave_as_the_gravest_row_that_shows_it() -> None:
    late = Finding("op-ends", "publish gave no answer within 5 s")
    must, should = (next(item for item in ITEMS if item.level == level) for level in ("MUST", "SHOULD"))
    runs = [Judgement(item, Verdict.PASS, findings=(late,)) for item in (should, must)]
    assert [one.level for one in rule_results(runs[0])] == ["SHOULD"]
    assert [one.level for one in joined(each for run in runs for each in rule_results(run))] == ["MUST"]
    polite = late._replace(level="SHOULD")
    assert [one.level for one in rule_results(Judgement(must, Verdict.PASS, findings=(polite,)))] == [
        "SHOULD"
    ]
