"""What comes closest to a fault that never took place, and to what was expected and did not come."""

from __future__ import annotations

import pytest

from fakebrokers.core.frames import Role
from fakebrokers.core.waiting import Wanted
from fakebrokers.faults import drop
from fakebrokers.faults.near import near_miss
from fakebrokers.faults.plan import Fault
from fakebrokers.faults.rule import Rule
from fakebrokers.journal import Journal, Tap
from fakebrokers.rabbitmq_stream.frames import FRAMES, PublishConfirm
from fakebrokers.rabbitmq_stream.publishing import publish


@pytest.fixture
def journal() -> Journal:
    """Publishes 1 and 2 of publisher 1 on c1, a confirm of the first; that of the second is dropped."""
    journal = Journal(FRAMES)
    journal.add(10.0, "c1", Tap.IN, publish(1, [(1, b"tea")]), 30)
    journal.add(11.0, "c1", Tap.IN, publish(1, [(2, b"milk")]), 30)
    for number, tap, fault in ((1, Tap.OUT, ""), (2, Tap.SAID, "lose it")):
        confirm = PublishConfirm(publisher_id=1, publishing_ids=number.to_bytes(8))
        journal.add(12.0, "c1", tap, confirm, 21, fault)
    return journal


def near(fault: Fault, journal: Journal, added: float = 0.0) -> str:
    return near_miss(Rule(fault, 0, 0, added), journal.records(), journal.started_at)


@pytest.mark.parametrize(
    ("fault", "what"),
    [
        (drop(kind="Publish", where={"publisher_id": 0}), "key 2 30 B: publisher_id is 1, not 0"),
        (drop(kind="Publish", where={"publisher_id": {"ge": 2}}), "publisher_id is 1, and has to be ge 2"),
        (drop(role="publish", where={"colour": 1}), "it has no colour"),
        (drop(role="publish", connection="c2"), "it is on c1, not c2"),
        (drop(role="publish", where={"key": 7}, unit="item"), "key is 2, not 7"),
        (drop(kind="Publish", direction="out"), "its direction is in, not out"),
    ],
)
def test_a_fault_that_fits_nothing_says_what_came_closest(fault: Fault, what: str, journal: Journal) -> None:
    assert near(fault, journal).endswith(what)
    assert near(fault, journal).startswith("closest: record 2, c1 -> Publish")


def test_the_frame_that_misses_least_is_named(journal: Journal) -> None:
    fault = drop(role="publish", connection="c1", where={"publisher_id": 0, "key": 1}, unit="item")
    assert near(fault, journal).startswith("closest: record 1, ")


def test_a_fault_that_came_too_late_is_told_so(journal: Journal) -> None:
    assert near(drop(role="publish"), journal, added=50.0).endswith("it passed before the fault was at work")


def test_nothing_is_close_to_what_never_came_nor_to_a_fault_that_fitted(journal: Journal) -> None:
    assert near(drop(role="deliver"), journal) == ""
    rule = Rule(drop(role="publish", nth=9), 0, 0, 0.0)
    rule.seen = 2
    assert near_miss(rule, journal.records(), journal.started_at) == ""


def test_what_was_expected_says_what_came_closest(journal: Journal) -> None:
    records = journal.records()
    assert Wanted(role="confirm", connection="c2").near_miss(records).endswith("it is on c1, not c2")
    lost = Wanted(kind="PublishConfirm", tap=Tap.SENT, since=3).near_miss(records)
    assert lost == (
        "closest: record 4, c1 <- PublishConfirm said key 2 21 B [fault: lose it]: "
        "the broker meant it, and it never left (fault 'lose it')"
    )
    held = Wanted(lambda record: record.size > 100, role=Role.PUBLISH).near_miss(records)
    assert held.endswith("the condition does not hold for it")
    assert Wanted(kind="Deliver").near_miss(records) == ""
