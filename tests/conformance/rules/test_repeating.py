"""What is written again; what is not the same without being a repetition."""

from __future__ import annotations

from conformance.rules import judge
from conformance.run.inprocess import runner
from conformance.run.specs import Injection, Spec


def test_a_repetition_that_lacks_a_part_is_called_by_what_it_repeats() -> None:
    spec = Spec("pzq", "bodies", (Injection("c1", "out", 1, "lost"),))
    found = {one.name: one.detail for one in judge(runner("pzq", "repeats-without-the-last-part")(spec))}
    text = 'message "a" was written again in the place of message "a" | "b", under id '
    assert found["repeats-the-same"].startswith(text)
    assert judge(runner("pzq")(spec)) == []


def test_an_id_that_the_application_gives_to_two_messages_is_no_repetition() -> None:
    case = runner("pzq")(Spec("pzq", "ids"))
    assert {one.body for one in case.facts.written if one.place[-1] == b"k1"} == {b"a0", b"a4"}
    assert judge(case) == []


def test_copies_that_are_written_later_on_the_same_connection_are_in_order() -> None:
    """Here a lost answer has the first message written again, after the second one."""
    case = runner("pzq")(Spec("pzq", "waited", (Injection("c1", "out", 2, "lost"),)))
    bodies = [one.body for one in case.facts.written]
    assert bodies.count(b"b0") > 1
    assert judge(case) == []
