"""The page of a failure: the fault, the rule, the proof, and nothing unescaped."""

from __future__ import annotations

from html import escape
from pathlib import Path

from conformance.rules import judge
from conformance.rules.sentences import rules
from conformance.run.inprocess import runner
from conformance.run.specs import Injection, Spec
from conformance.search.page import lines_of
from conformance.search.systematic.page import parts, write_page

SPEC = Spec("rabbitmq-stream", "publish", (Injection("c1", "out", 9, "lost"),))


def test_it_says_what_was_done_what_was_violated_and_where(tmp_path: Path) -> None:
    case = runner("rabbitmq-stream", "confirm-by-position")(SPEC)
    findings = judge(case)
    text = write_page(case, findings, tmp_path / "x.replay.json").read_text()
    assert (tmp_path / "x.html").exists()
    assert "The frame gets lost, and nothing else." in text
    assert "A message is acknowledged to the application only after its confirm." in text
    assert "fakebrokers replay x.replay.json" in text
    rule = rules()["ack-needs-confirm"]
    assert f"<p>{escape(rule.why)}</p>" in text and escape(rule.clauses("rabbitmq-stream")[0]) in text
    assert '<tr class="proof">' in text


def test_everything_stands_in_its_order() -> None:
    lines = lines_of(runner("rabbitmq-stream")(SPEC))
    assert [line.at for line in lines] == sorted(line.at for line in lines)
    assert lines[0].text == "connect begins"
    assert {line.who for line in lines} == {"app", "c1"}


def test_what_others_say_is_escaped(tmp_path: Path) -> None:
    injection = Injection("c1", "out", 7, "field", [["brokers", 0, 1], "<script>"])
    case = runner("rabbitmq-stream")(Spec("rabbitmq-stream", "publish", (injection,)))
    assert "<script>" not in "".join(parts(case, judge(case), tmp_path / "x.replay.json"))
