"""The docstring of a script is its requirement, to the letter."""

from __future__ import annotations

import pytest

from conformance.suite.load import requirement
from conformance.suite.sentences import Sentences, sentences
from fakebrokers.errors import UsageError

WHOLE = """Does it work?

    Fault: One frame says {"a": 1} and
    another one follows it
    Pass: It works; it goes on
    Profile: both
    Seen: one-client#1; another, with a comma
    """


def test_lines_are_joined_and_parts_told_apart() -> None:
    assert sentences(WHOLE) == Sentences(
        title="Does it work?",
        fault='One frame says {"a": 1} and another one follows it',
        passes="It works; it goes on",
        profile="both",
        seen=("one-client#1", "another, with a comma"),
    )


def test_what_need_not_be_said_may_be_left_out() -> None:
    assert sentences("It works.\n\nFault: None\nPass: It does") == Sentences(
        "It works", "None", "It does", "", ()
    )


@pytest.mark.parametrize(
    "text", [None, "", "It works.", "It works.\nFault: None\nPass: It does", "X.\n\nPass: It does"]
)
def test_another_form_is_refused_with_what_was_expected(text: str | None) -> None:
    with pytest.raises(UsageError, match=r"expected a docstring of a title.*got "):
        sentences(text)


def test_a_script_states_its_requirement() -> None:
    item = requirement("RMQS-1.03")
    assert (item.title, item.level, item.severity) == ("Whole handshake tail coalesced", "MUST", "high")
    assert item.basis == ("R1", "R15") and item.passes == "connect succeeds"
