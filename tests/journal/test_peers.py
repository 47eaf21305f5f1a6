"""Who is at the other end of a connection, what a frame was inside of, and what states mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakebrokers.core.session import HangUp
from fakebrokers.journal import Journal, RunJournal, Tap
from fakebrokers.journal.peers import Peers
from fakebrokers.journal.reader import read_run
from fakebrokers.journal.record import Meaning, State, meaning_of, states_that
from tests.toy import FRAMES, Get, Hello, Put


def told(journal: Journal) -> None:
    """Two connections; the peer of the first changes, and its name is used again after its end."""
    journal.state(0.0, "c1", State.ACCEPTED, "127.0.0.1:1")
    journal.state(0.1, "c1", State.PEER, "n1")
    journal.add(0.2, "c1", Tap.IN, Get("a"), 6)
    journal.add(0.3, "c2", Tap.IN, Get("b"), 6)
    journal.state(0.4, "c1", State.PEER, "n2")
    journal.add(0.5, "c1", Tap.IN, Get("c"), 6)
    journal.state(0.6, "c1", State.CLOSED, "")
    journal.add(0.7, "c1", Tap.IN, Get("d"), 6)
    journal.state(0.8, "c2", State.PEER, "n2")


PEERS = ["", "n1", "n1", "", "n2", "n2", "n2", "", "n2"]


def test_a_record_names_its_peer_from_when_it_is_told_to_the_end_of_the_connection(tmp_path: Path) -> None:
    journal = Journal(FRAMES)
    run = RunJournal(tmp_path, "r")
    journal.sink = run
    seen: list[str] = []
    journal.watch(lambda record: seen.append(record.peer))
    told(journal)
    journal.sink = None
    run.close()
    assert seen == [record.peer for record in journal] == PEERS
    assert [record.peer for record in journal.records(since=5)] == PEERS[5:]
    assert [row.peer for row in read_run(tmp_path, run.run).frames] == PEERS


def test_peers_of_dropped_records_are_forgotten() -> None:
    journal = Journal(FRAMES, limit=10)
    journal.state(0.0, "steady", State.PEER, "n0")
    for number in range(5000):
        journal.state(0.0, f"c{number}", State.PEER, f"n{number}")
        journal.state(0.0, f"c{number}", State.CLOSED, "")
    assert len(journal._peers._told) < 2000
    journal.add(0.0, "steady", Tap.IN, Get("a"), 6)
    assert [record.peer for record in journal][-3:] == ["n4999", "n4999", "n0"]


def test_peers_by_record() -> None:
    peers = Peers()
    assert not peers
    peers.ended(1, "c1", 0)
    assert not peers
    peers.tell(3, "c1", "n1", 0)
    peers.tell(5, "c1", "n2", 0)
    assert [peers.at("c1", seq) for seq in (2, 3, 4, 5, 9)] == ["", "n1", "n1", "n2", "n2"]
    assert peers.at("c2", 9) == ""


def test_what_a_frame_was_inside_of(tmp_path: Path) -> None:
    journal = Journal(FRAMES, body_limit=10)
    run = RunJournal(tmp_path, "r", frames=True)
    journal.sink = run
    journal.add(0.0, "c1", Tap.IN, Get("a"), 6, envelope="MSG")
    journal.add(0.0, "c1", Tap.IN, Get("b"), 6)
    journal.add(0.0, "c1", Tap.IN, Put(("k",), "x" * 50), 60, envelope="MSG")  # too large to be kept
    journal.add(0.0, "c1", Tap.IN, Hello("secret"), 6, "fault", "PUB")
    journal.sink = None
    run.close()
    assert [(r.kind, r.envelope) for r in journal] == [
        ("Get", "MSG"),
        ("Get", ""),
        ("Put", "MSG"),
        ("Hello", "PUB"),
    ]
    rows = read_run(tmp_path, run.run).frames
    assert [row.envelope for row in rows] == ["MSG", "", "MSG", "PUB"]
    assert all(row.frame for row in rows)
    assert [record.keys for record in journal] == [("a",), ("b",), ("k",), ()]


@pytest.mark.parametrize(
    ("state", "means"),
    [
        ("closed", Meaning.END),
        ("fin", Meaning.END),
        ("rst", Meaning.END | Meaning.CUT),
        ("black hole", Meaning.CUT),
        ("clock", Meaning.LOSS),
        ("second fake", Meaning.ELSEWHERE),
        ("accepted", Meaning.NOTHING),
        ("a protocol's own", Meaning.NOTHING),
    ],
)
def test_what_states_mean(state: str, means: Meaning) -> None:
    assert meaning_of(state) == means


def test_every_way_to_hang_up_is_a_state() -> None:
    assert {how.value for how in HangUp} <= set(State)
    assert set(states_that(Meaning.END)) == {"closed", "fin", "rst"}
