"""Waiting for records of the journal."""

from __future__ import annotations

from fakebrokers.core.waiting import Wait, Wanted
from fakebrokers.journal import Journal, Tap
from tests.journal.test_keys import FRAMES, Answers


def test_a_wait_for_a_role_ends_with_a_frame_one_item_of_which_has_it() -> None:
    journal = Journal(FRAMES)
    journal.add(1.0, "c1", Tap.OUT, Answers(("a", "b"), (0, 5)), 60)
    for role, found in (("confirm", 1), ("reject", 1), ("publish", 0)):
        wait = Wait(journal, Wanted(role=role))
        assert wait.future.done() == bool(found)
    late = Wait(journal, Wanted(role="reject", since=1))
    journal.add(2.0, "c1", Tap.OUT, Answers(("a",), (0,)), 60)
    assert not late.future.done()
    journal.add(3.0, "c1", Tap.OUT, Answers(("a", "b"), (0, 5)), 60)
    assert [record.seq for record in late.future.result(0)] == [3]
