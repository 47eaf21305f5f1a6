"""What a broker holds, in the journal: only changes, each at the record that has made it."""

from __future__ import annotations

import msgspec
import pytest

from fakebrokers.journal import Journal, RunJournal, Tap
from fakebrokers.journal.holdings import Holdings
from fakebrokers.journal.record import State
from tests.toy import FRAMES, Get, Put, Stored, Value


class Room:
    """What is held; a journal that asks for it."""

    def __init__(self, limit: int = 100_000) -> None:
        self.now: dict[str, str] | None = {}
        self.journal = Journal(FRAMES, limit=limit)
        self.journal.record_holdings(lambda: None if self.now is None else dict(self.now))

    def noted(self) -> list[tuple[int, float, dict[str, str]]]:
        return [(each.seq, each.at, dict(each.changes)) for each in self.journal.holdings]


def test_what_a_frame_of_a_client_changes_belongs_to_it_and_not_to_its_answer() -> None:
    room = Room()
    room.journal.add(1.0, "c1", Tap.IN, Put(("a",), "x"), 9)
    room.now = {"key a": "x"}
    room.journal.add(1.0, "c1", Tap.OUT, Stored(("a",)), 9)
    room.journal.step_ended(1.0)
    assert room.noted() == [(1, 1.0, {"key a": "x"})]


def test_what_a_broker_does_by_itself_belongs_to_the_frame_that_it_says_then() -> None:
    room = Room()
    room.journal.add(1.0, "c1", Tap.IN, Get("a"), 9)
    room.now = {"reader": "1"}
    room.journal.add(1.0, "c1", Tap.OUT, Value("a", "x"), 9)
    room.now = {"reader": "2"}
    room.journal.add(1.0, "c1", Tap.OUT, Value("a", "x"), 9)  # because of the one before
    room.journal.step_ended(1.0)
    room.now = {"reader": "3"}
    room.journal.add(5.0, "c1", Tap.OUT, Value("a", "x"), 9)  # at a timer
    room.journal.step_ended(5.0)
    assert room.noted() == [
        (1, 1.0, {"reader": "1"}),
        (3, 1.0, {"reader": "2"}),
        (4, 5.0, {"reader": "3"}),
    ]


def test_what_no_record_has_changed_has_its_own_time() -> None:
    room = Room()
    room.journal.add(1.0, "c1", Tap.IN, Get("a"), 9)
    room.journal.step_ended(1.0)
    room.now = {"key b": "y"}  # by a call
    room.journal.step_ended(3.0)
    assert room.noted() == [(1, 3.0, {"key b": "y"})]


def test_only_changes_are_kept_and_what_is_gone_is_empty() -> None:
    room = Room()
    for step, held in enumerate([{"a": "1", "b": "1"}, {"a": "1", "b": "1"}, {"a": "2"}, {}]):
        room.now = held
        room.journal.step_ended(float(step))
    room.now = None  # it cannot say
    room.journal.step_ended(9.0)
    assert [changes for *_, changes in room.noted()] == [
        {"a": "1", "b": "1"},
        {"a": "2", "b": ""},
        {"a": ""},
    ]


def test_a_journal_that_forgets_gets_anew_what_is_held() -> None:
    room = Room()
    room.now = {"a": "1"}
    room.journal.step_ended(1.0)
    room.journal.forget()
    assert room.noted() == []
    room.journal.step_ended(2.0)
    assert room.noted() == [(0, 2.0, {"a": "1"})]


def test_the_oldest_changes_become_one() -> None:
    held = {"a": "0"}
    holdings = Holdings(lambda: dict(held), 2)
    for number in range(5):
        held["a"], held[f"b{number}"] = str(number), "x"
        holdings.look(number, float(number))
    first, last = holdings.kept
    assert (first.seq, dict(first.changes)) == (3, {"a": "3", "b0": "x", "b1": "x", "b2": "x", "b3": "x"})
    assert dict(last.changes) == {"a": "4", "b4": "x"}


def test_records_are_the_same_and_a_file_has_the_changes_after_theirs() -> None:
    room, run = Room(), RunJournal(None, "run", frames=True)
    room.journal.sink = run
    room.journal.add(1.0, "c1", Tap.IN, Put(("a",), "x"), 9)
    room.now = {"key a": 'x"\udce9'}  # half of a surrogate pair
    room.journal.add(1.0, "c1", Tap.OUT, Stored(("a",)), 9)
    room.journal.step_ended(1.0)
    assert [(record.seq, record.kind) for record in room.journal] == [(1, "Put"), (2, "Stored")]
    written = run.log().frames
    assert [(row.seq, row.kind) for row in written] == [(1, "Put"), (2, State.HOLDS), (3, "Stored")]
    assert msgspec.json.decode(written[1].note) == {"key a": 'x"\\udce9'}


def test_a_broker_that_cannot_be_asked_costs_no_connection_and_is_reported() -> None:
    journal = Journal(FRAMES)

    def ask() -> dict[str, str]:
        raise RuntimeError("no way")

    journal.record_holdings(ask)
    journal.add(1.0, "c1", Tap.IN, Get("a"), 9)
    journal.step_ended(1.0)
    failure = journal.pop_failure()
    with pytest.raises(RuntimeError, match="no way"):
        raise failure or AssertionError
    assert len(journal) == 1
