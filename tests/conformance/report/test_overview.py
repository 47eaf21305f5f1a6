"""The first screen says who was judged against what, what is news, and why the exit code is what it is."""

from __future__ import annotations

import html
import json
import re
import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("jinja2", reason="missing: jinja2 (pip install jinja2)")

from conformance.printing import console_for_all
from conformance.report.done import done_to
from conformance.report.overview import exit_of, judged_against, tally, timed
from conformance.report.write import write_report
from conformance.results import Results, RowResult, RuleResult, Verdict
from conformance.rules.sentences import rules
from conformance.suite import clients
from conformance.suite.conform import SuiteRequest, conform
from conformance.suite.verdicts import judged


def row(number: int, verdict: Verdict, level: Any = "MUST", *tags: str, **more: Any) -> RowResult:
    return RowResult(f"RMQS-1.{number:02}", "rabbitmq-stream", "", level, verdict, tags=tags, **more)


def run(*rows: RowResult, **more: Any) -> Results:
    code, reasons = judged(rows)
    base: dict[str, Any] = {"exit_code": int(code), "reasons": tuple(reasons)}
    return Results("alpha", "1.0", "0.1.0", 1, "2026-01-01T00:00:00Z", 0.0, rows, **{**base, **more})


def overview(folder: Path, *runs: Results) -> str:
    text = write_report(folder, runs).read_text(encoding="utf-8")
    return text[text.index('<section class="hero">') : text.index('id="matrix"')]


KNOWN = row(1, Verdict.FAIL, "MUST", "expected", cause="no time-out")
NEW = row(2, Verdict.FAIL)


def test_known_failures_are_told_from_new_ones(tmp_path: Path) -> None:
    found = tally([KNOWN, NEW, row(3, Verdict.FAIL, "MAY"), row(4, Verdict.PASS, "MUST", "unexpected pass")])
    assert (found.known, found.new, found.surprises) == (1, (("MUST", 1), ("MAY", 1)), 1)
    text = overview(tmp_path, run(KNOWN, NEW))
    assert '<b class="new">1 MUST new</b>, 1 known from 1 root cause.' in text
    assert "Exit code <b>1</b>: the client fails: MUST failed in 1 scenario, which was not expected." in text


def test_known_failures_alone_explain_an_exit_code_of_0(tmp_path: Path) -> None:
    text = overview(tmp_path, run(KNOWN, row(2, Verdict.PASS)))
    assert "<b>none new</b>, 1 known" in text
    assert "Exit code <b>0</b>: no MUST fails that is not known." in text


def test_a_violated_rule_counts_once_and_stands_with_the_rows_that_show_it(tmp_path: Path) -> None:
    rule = RuleResult(
        "wire-legal",
        "rabbitmq-stream",
        "",
        "MUST",
        Verdict.FAIL,
        ("RMQS-1.01", "RMQS-1.02"),
        "hostname of <b>INFO</b> is None",
        "Every frame is legal.",
    )
    known = msgspec.structs.replace(rule, rule="beats", tags=("expected",), cause="no timer")
    rows = row(1, Verdict.PASS), row(2, Verdict.PASS)
    text = write_report(tmp_path, [run(*rows, rules=(known, rule))]).read_text(encoding="utf-8")
    assert '<b class="new">1 rule for all runs new</b>, 1 known from 1 root cause.' in text
    assert '<p class="judgement fail">2 rules violated</p>' in text
    part = text[text.index("Rules for all runs") :]
    assert part.index("wire-legal") < part.index("beats")  # what nobody expected comes first
    assert "hostname of &lt;b&gt;INFO&lt;/b&gt; is None" in part
    assert 'href="#s-RMQS-1.01--rabbitmq-stream">RMQS-1.01</a>' in part
    assert "no timer" in part


def test_each_violated_rule_has_its_reasons_beside_it(tmp_path: Path) -> None:
    rule = RuleResult(
        "no-storm", "pzq", "", "SHOULD", Verdict.FAIL, ("PZQ-1.01",), "9 connections in 0.01 s", "Pauses."
    )
    later = msgspec.structs.replace(rule, rule="a-rule-of-a-later-version")
    text = write_report(tmp_path, [run(row(1, Verdict.PASS), rules=(rule, later))]).read_text("utf-8")
    part = html.unescape(text[text.index("Rules for all runs") :])
    explained = rules()["no-storm"]
    assert part.count("Why this is a rule") == 1
    for sentence in (explained.why, *explained.clauses("pzq"), explained.example, explained.reason):
        assert sentence in part
    assert "fakebrokers explain no-storm" in part


def test_no_failures_at_all(tmp_path: Path) -> None:
    assert "No failures." in overview(tmp_path, run(row(1, Verdict.PASS)))


def test_why_a_run_says_nothing() -> None:
    ended = exit_of(run(row(1, Verdict.UNSUPPORTED), row(2, Verdict.PASS)))
    assert ended.code == 2
    assert ended.why == (
        "too little was executed to judge: 50% of the MUST scenarios were executed, 90% are required"
    )
    assert exit_of(run(exit_code=130, complete=False, reasons=())).why == "the run was ended by a signal"


def test_every_reason_is_told_and_the_first_code_of_the_contract_wins() -> None:
    code, reasons = judged([row(1, Verdict.HARNESS_ERROR), NEW], incomplete=True)
    assert code == 3
    assert len(reasons) == 4 and "core ops" in reasons[2]


def test_who_was_judged_against_what() -> None:
    one = run(NEW)
    assert judged_against([one]) == (
        "alpha 1.0 was judged against the fake broker of fakebrokers 0.1.0 for rabbitmq-stream, "
        "by 1 scenario; no failure was expected."
    )
    real = run(NEW, target="rabbitmq-stream://127.0.0.1:5552", expected="alpha.toml")
    assert judged_against([real]) == (
        "alpha 1.0 was judged against a real broker at rabbitmq-stream://127.0.0.1:5552 (rabbitmq-stream), "
        "by 1 scenario; the failures listed in alpha.toml were expected."
    )
    assert judged_against([]) == judged_against([run()]) == ""


def test_the_sentence_stands_at_the_top_and_is_harmless(tmp_path: Path) -> None:
    text = overview(tmp_path, run(NEW, target="<script>1</script>"))
    assert text.index('class="against"') < text.index('class="meta"')
    assert "&lt;script&gt;1" in text and "<script>" not in text


# what was done to the client

FAULT = {"name": "lost", "match": {"role": "confirm"}, "effect": {"type": "drop"}}


def test_faults_and_frames_by_hand_are_told_in_words() -> None:
    plan = {"seed": 0, "faults": [FAULT], "proxy": {"faults": [{**FAULT, "effect": [{"type": "rst"}]}]}}
    result = row(1, Verdict.PASS, plan=plan, by_hand=("PublishError (1, code 999) on c1",))
    assert done_to(result) == [
        "fault 'lost': drop, where role='confirm'",
        "fault 'lost': rst, where role='confirm'",
        "by hand: PublishError (1, code 999) on c1",
    ]


@pytest.mark.parametrize(
    "plan", [{"faults": 7}, {"faults": ["x", {"match": {}, "effect": "x"}]}, {"proxy": "x"}, {"x": "y"}]
)
def test_a_plan_of_another_form_is_left_to_the_plan_itself(plan: dict[str, Any]) -> None:
    assert done_to(row(1, Verdict.PASS, plan=plan)) == []


def test_the_page_of_a_pass_tells_which_code_the_client_was_sent(tmp_path: Path) -> None:
    who = clients.bundled("reference-rabbitmq-stream", "rabbitmq-stream")
    order = SuiteRequest(
        client=who.name, who=who.options, protocol=who.protocol, make_adapter=who.make, ids=("RMQS-3.05",)
    )
    results = conform(order, console_for_all(stderr=True))
    assert [each.verdict for each in results.results] == [Verdict.PASS]
    text = write_report(tmp_path, [results]).read_text(encoding="utf-8")
    (packed,) = re.findall(r'data-packed="([^"]+)"', text)
    (page,) = json.loads(zlib.decompress(b64decode(packed)))
    done_to_it = page[page.index("Done to the client, in detail") :].partition("</section>")[0]
    assert "by hand: PublishError (1, code 999) on c1" in done_to_it
    assert "confirms are lost" in done_to_it and "drop" in done_to_it


def test_a_client_that_can_be_judged_on_virtual_time_says_which_rows_were(tmp_path: Path) -> None:
    rows = [
        row(1, Verdict.PASS, how="on virtual time"),
        row(2, Verdict.PASS, how="in a process, in real time: fail on virtual time: too late"),
        row(3, Verdict.PASS, how="in a process, in real time: it needs sockets"),
        row(4, Verdict.PASS, how="on virtual time"),
    ]
    assert timed(rows) == (
        "2 scenarios judged on virtual time, 2 in processes, in real time: 1 because on virtual time they "
        "showed what was not known, 1 because they need a process"
    )
    assert timed([row(1, Verdict.PASS)]) == ""
    assert "2 scenarios judged on virtual time" in overview(tmp_path, run(*rows))
