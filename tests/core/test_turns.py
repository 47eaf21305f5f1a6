"""Work per turn: one client that floods keeps no other from being served."""

from __future__ import annotations

from fakebrokers.core import virtual
from fakebrokers.core.receive_path import FRAMES_PER_TURN
from fakebrokers.core.session import HangUp
from fakebrokers.journal import Tap
from tests.core.talk import Talk
from tests.toy import Lines, Toy

MANY = 5 * FRAMES_PER_TURN


def handled(talk: Talk, connection: str) -> int:
    return len(talk.journal.select(kind="Put", tap=Tap.HEARD, connection=connection))


def test_a_flood_is_handled_in_turns_and_others_are_served_between_them() -> None:
    talk = Talk()
    talk.connect()
    talk.feed(b"put a\n" * MANY, to=0)
    assert handled(talk, "c1") == FRAMES_PER_TURN
    assert not talk.wires[0].reading
    assert talk.send(b"put b", to=1) == [b"stored b\n"]
    for turn in range(2, MANY // FRAMES_PER_TURN + 1):
        talk.engine.handle_timers(talk.now)
        talk.engine.flush(talk.now)
        assert handled(talk, "c1") == turn * FRAMES_PER_TURN
    talk.at(talk.now)
    assert talk.wires[0].reading


def test_what_came_during_a_flood_is_handled_behind_it() -> None:
    talk = Talk()
    talk.feed(b"put a\n" * (FRAMES_PER_TURN + 1))
    talk.feed(b"get a\n")
    while talk.engine.next_deadline() <= talk.now:
        talk.at(talk.now)
    kinds = [record.kind for record in talk.journal.select(tap=Tap.HEARD)]
    assert kinds == ["Hello", *["Put"] * (FRAMES_PER_TURN + 1), "Get"]


def test_a_client_that_leaves_has_all_it_sent_before_handled() -> None:
    talk = Talk()
    talk.feed(b"put a\n" * MANY)
    talk.connect()
    talk.engine.lost(talk.links[0], talk.now)
    assert handled(talk, "c1") == FRAMES_PER_TURN  # others have their turn even so
    assert talk.send(b"put b", to=1) == [b"stored b\n"]
    for turn in range(2, MANY // FRAMES_PER_TURN + 1):
        assert not talk.records("closed")
        talk.engine.handle_timers(talk.now)
        talk.engine.flush(talk.now)
        assert handled(talk, "c1") == turn * FRAMES_PER_TURN
    talk.at(talk.now)
    assert [record.connection for record in talk.records("closed")] == ["c1"]
    assert "c1" not in talk.engine.connections


def test_a_client_that_leaves_and_is_cut_off_is_forgotten() -> None:
    talk = Talk()
    talk.feed(b"put a\n" * MANY)
    talk.engine.lost(talk.link, talk.now)
    talk.engine.kill(talk.link, HangUp.RST, talk.now)
    talk.engine.flush(talk.now)
    assert talk.engine.connections == {}
    assert handled(talk, "c1") == FRAMES_PER_TURN


def test_in_memory_too() -> None:
    async def flood() -> int:
        async with Toy(memory=True) as toy:
            link = toy.connect_memory(Lines())
            link.write(b"hello me\n")
            for _ in range(3):
                link.write(b"put a\n" * MANY)
            link.close()
            await toy.wait_for_async(kind="closed")
            return len(toy.journal.select(kind="Put", tap=Tap.HEARD))

    assert virtual.run(flood()) == 3 * MANY
