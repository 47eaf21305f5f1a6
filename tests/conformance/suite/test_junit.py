"""junit.xml is what the tools that read it expect, whatever a client is called and says."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import msgspec
import pytest

from conformance.results import RuleResult, Verdict
from conformance.suite.junit import junit
from tests.conformance.suite.hostile import CHARACTERS, results, row, with_everywhere

#: The common schema (``junit-10.xsd`` of Jenkins) as far as we write it: attributes and children.
SCHEMA: dict[str, tuple[set[str], set[str]]] = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "time", "skipped", "timestamp"},
        {"testcase", "properties", "system-out", "system-err"},
    ),
    "testcase": ({"name", "time", "classname"}, {"skipped", "error", "failure"}),
    "failure": ({"type", "message"}, set()),
    "error": ({"type", "message"}, set()),
    "skipped": ({"type", "message"}, set()),
}
REQUIRED = {"testsuite": {"name", "tests", "failures", "errors"}, "testcase": {"name"}}


def parsed(*verdicts: Verdict, **more: object) -> ElementTree.Element:
    return ElementTree.fromstring(junit(results(*(row(verdict, **more) for verdict in verdicts))))


def test_every_verdict_in_a_valid_file_with_the_worst_of_names() -> None:
    root = parsed(*Verdict)
    for element in root.iter():
        attributes, children = SCHEMA[element.tag]
        assert set(element.attrib) <= attributes
        assert REQUIRED.get(element.tag, set()) <= set(element.attrib)
        assert {child.tag for child in element} <= children
        assert re.fullmatch(r"\d*(\.\d*)?", element.get("time", ""))
    (suite,) = root
    counted = {tag: len(suite.findall(f"testcase/{tag}")) for tag in ("failure", "error", "skipped")}
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("1", "1", "3")
    assert counted == {"failure": 1, "error": 1, "skipped": 3}
    assert suite.get("tests") == str(len(Verdict))
    assert "\\x1b]0;owned" in str(suite.get("name"))


def test_a_failure_tells_everything_and_the_adapters_trouble_first() -> None:
    (failure,) = parsed(Verdict.FAIL).iter("failure")
    lines = str(failure.text).splitlines()
    assert lines[0].startswith("Adapter: broke its protocol")
    assert "Done to it: Code 999" in lines
    assert any(line.startswith("Again: fakebrokers conform") for line in lines)


def test_a_known_failure_is_skipped_with_its_reason() -> None:
    root = parsed(Verdict.FAIL, tags=("expected",), reason="hangs [known: issue 12]")
    (skipped,) = root.iter("skipped")
    assert skipped.get("message") == "fail: hangs [known: issue 12]"
    assert not list(root.iter("failure"))


@pytest.mark.parametrize("character", CHARACTERS, ids=ascii)
def test_any_character_in_any_name_leaves_the_file_valid(character: str) -> None:
    text = junit(with_everywhere(f"a{character}b"))
    (suite,) = ElementTree.fromstring(text)
    shown = character.encode("unicode_escape").decode()
    assert suite.get("name") == f"a{shown}b a{shown}b"
    for case in suite:
        assert case.get("name") == f"a{shown}b a{shown}b"
        assert case.get("classname") == f"a{shown}b/a{shown}b"
    assert [child.tag for case in suite for child in case] == ["failure", "error", "skipped"]


def test_markup_in_names_is_text() -> None:
    name = """<b a='1' c="2">&amp;]]><![CDATA["""
    (suite,) = ElementTree.fromstring(junit(with_everywhere(name)))
    assert suite.get("name") == f"{name} {name}"
    assert [case.get("classname") for case in suite] == [f"{name}/{name}"] * 3


def test_a_violated_rule_is_a_case_of_its_own() -> None:
    rule = RuleResult(
        "beats", "pzq", "", "MUST", Verdict.FAIL, ("PZQ-1.01", "PZQ-1.02"), "silent for 9 s", "It beats."
    )
    known = msgspec.structs.replace(rule, tags=("expected",), cause="no timer")
    (suite,) = ElementTree.fromstring(junit(msgspec.structs.replace(results(), rules=(rule, known))))
    assert [suite.get(name) for name in ("tests", "failures", "skipped")] == ["2", "1", "1"]
    failure = suite[0][0]
    assert (suite[0].get("name"), failure.get("message")) == ("beats It beats.", "2 rows: silent for 9 s")
    assert "seen in the runs of PZQ-1.01, PZQ-1.02" in (failure.text or "")
