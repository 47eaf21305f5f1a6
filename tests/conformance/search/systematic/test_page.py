"""The page of a failure: the fault, the rule, the proof, and nothing unescaped."""

from __future__ import annotations

from html import escape
from pathlib import Path

from conformance.rules import judge
from conformance.rules.again import violated
from conformance.rules.sentences import rules
from conformance.run.document import document_of
from conformance.run.inprocess import runner
from conformance.run.specs import Injection, Spec
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
    assert '<a href="x.trace.html">' in text
    assert (tmp_path / "x.trace.html").exists()


def test_everything_stands_in_its_order_and_the_proof_is_marked() -> None:
    case = runner("rabbitmq-stream", "confirm-by-position")(SPEC)
    document = document_of(case, "x", {}, violated(case, judge(case)))
    names = [row.name for row in document.rows]
    assert names[:3] == ["connect", "connected", "PeerProperties"]
    assert [row.t for row in document.rows] == sorted(row.t for row in document.rows)
    assert [lane.name for lane in document.lanes] == ["s1", "client", "c1", "broker"]
    marks = {row.name: at for at, row in enumerate(document.rows) if row.what == "rule"}
    proof = document.rows[marks["ack-needs-confirm"] - 1]
    assert proof.what in ("end", "event", "rule")  # what was reported


def test_an_op_is_a_span_and_a_frame_has_its_fields_and_bytes() -> None:
    document = document_of(runner("rabbitmq-stream")(Spec("rabbitmq-stream", "publish")), "x", {})
    spans = [row.op for row in document.rows if row.what == "op"]
    assert sorted(spans) == sorted(row.op for row in document.rows if row.what == "end") and len(spans) > 3
    publish = next(row for row in document.rows if row.name == "Publish")
    details = dict(publish.details)
    assert "publisher_id" in details["fields"] and details["hex"].startswith("0000")
    confirm = next(row for row in document.rows if row.name == "PublishConfirm")
    assert set(confirm.links) & set(publish.links)


def test_no_credentials_are_on_the_page() -> None:
    """Neither in the fields of the login, nor in its bytes, nor in what the application gave to log in."""
    case = runner("rabbitmq-stream")(Spec("rabbitmq-stream", "publish"))
    connect = next(case.done("connect"))
    connect.args = {**connect.args, "options": {"user": "me", "password": "s3cret"}}
    rows = document_of(case, "x", {}).rows
    login = next(row for row in rows if row.name == "SaslAuthenticate")
    assert "hex" not in dict(login.details)
    assert "guest" not in dict(login.details)["fields"]
    assert '"me"' in dict(rows[0].details)["fields"]
    assert "s3cret" not in str(rows)


def test_what_others_say_is_escaped(tmp_path: Path) -> None:
    injection = Injection("c1", "out", 7, "field", [["brokers", 0, 1], "<script>"])
    case = runner("rabbitmq-stream")(Spec("rabbitmq-stream", "publish", (injection,)))
    assert "<script>" not in "".join(parts(case, judge(case), tmp_path / "x.replay.json"))
