"""Which fakes live in a test, what they would have shown it, and what a hidden fault did."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import msgspec
import pytest

from fakebrokers.errors import PlanError
from fakebrokers.faults import drop, latency, reorder, rst
from fakebrokers.mutate.behaviours import GENERAL, Behaviour
from fakebrokers.mutate.lives import Lives
from tests.eventually import PATIENCE_S
from tests.toy import Toy


def behaviour(name: str) -> Behaviour:
    (found,) = [each for each in GENERAL if each.name == name]
    return found._replace(fault=msgspec.structs.replace(found.fault, name=name))


def talk(toy: Toy, *lines: str, answers: int | None = None) -> list[str]:
    """Say all lines at once; return the answers to them."""
    with socket.create_connection(("127.0.0.1", toy.port), timeout=PATIENCE_S) as connection:
        file = connection.makefile("rw")
        file.write("".join(f"{line}\n" for line in ["hello me", *lines]))
        file.flush()
        count = 1 + (len(lines) if answers is None else answers)
        return [file.readline().strip() for _ in range(count)][1:]


@pytest.fixture
def plain() -> Iterator[Lives]:
    lives = Lives()
    lives.begin()
    with lives.watching():
        yield lives


def lives_with(name: str, protocol: str = "toy") -> Lives:
    lives = Lives(protocol, behaviour(name))
    lives.begin()
    return lives


def test_a_test_meets_what_its_frames_can_have(plain: Lives) -> None:
    with Toy() as toy:
        talk(toy, "put a 1")
    met = {name for _, name in plain.meets()}
    assert {("toy", name) for name in met} == set(plain.meets())
    assert met >= {
        "lost-confirm",
        "reset-after-publish",
        "turned-away",
        "silent-broker",
        "reset-in-handshake",
    }
    assert not met & {"lost-delivery", "swapped-confirms", "lost-ack"}


def test_two_frames_on_one_connection_can_be_swapped(plain: Lives) -> None:
    with Toy() as toy:
        talk(toy, "put a 1")
        talk(toy, "put b 1")
        assert ("toy", "swapped-confirms") not in set(plain.meets())
        talk(toy, "put a 1", "put b 1")
    assert ("toy", "swapped-confirms") in set(plain.meets())


def test_what_happened_before_a_test_is_none_of_its(plain: Lives) -> None:
    with Toy() as toy:
        talk(toy, "put a 1")
        plain.begin()
        talk(toy, "get a")
    met = {name for _, name in plain.meets()}
    assert "lost-delivery" in met
    assert "lost-confirm" not in met


def test_all_fakes_are_exact_with_and_without_a_behaviour(plain: Lives) -> None:
    with Toy() as toy:
        assert toy.exact


def test_a_behaviour_takes_place_in_each_fake_and_shows_where() -> None:
    lives = lives_with("second-confirm")
    with lives.watching(), Toy() as one, Toy() as other:
        assert lives.took_place() is None
        for toy in (one, other):
            assert talk(toy, "put a 1", "put b 1", answers=3) == ["stored a", "stored a", "stored b"]
    lines = lives.took_place()
    assert lines
    assert all("[fault: second-confirm]" in line for line in lines)


def test_a_fake_that_runs_already_has_it_anew_in_the_next_test() -> None:
    with Toy() as toy:
        lives = lives_with("second-confirm")
        assert talk(toy, "put a 1", answers=2) == ["stored a", "stored a"]
        lives.begin()
        assert lives.took_place() is None
        assert talk(toy, "put a 1", "get a", answers=3) == ["stored a", "stored a", "value a 1"]
        assert lives.took_place()


def test_the_fakes_of_other_protocols_go_on() -> None:
    lives = lives_with("second-confirm", "pzq")
    with lives.watching(), Toy() as toy:
        assert talk(toy, "put a 1", "get a") == ["stored a", "value a 1"]
    assert lives.took_place() is None


def test_a_wire_that_cannot_have_it_goes_on() -> None:
    lives = lives_with("lost-ack")  # the toy has no acks
    with lives.watching(), Toy() as toy:
        assert talk(toy, "put a 1") == ["stored a"]
    assert lives.took_place() is None


def test_no_test_sees_or_removes_it() -> None:
    lives = lives_with("second-confirm")
    with lives.watching(), Toy() as toy:
        toy.faults.add(drop(role="deliver", name="own"))
        assert (toy.faults.names, len(toy.faults.plan.faults), len(toy.faults.rules)) == (("own",), 1, 1)
        with pytest.raises(PlanError):
            toy.faults.fired("second-confirm")
        toy.faults.clear()
        toy.reset()
        assert toy.faults.counts == []
        toy.faults.check()
        assert talk(toy, "put a 1", answers=2) == ["stored a", "stored a"]
    assert lives.took_place()


def test_frames_that_leave_as_they_came_were_not_swapped() -> None:
    lives = lives_with("swapped-confirms")
    with lives.watching(), Toy() as toy:
        assert talk(toy, "put a 1") == ["stored a"]  # waits for a second one, in vain
        assert lives.took_place() is None
    lives.begin()
    with lives.watching(), Toy() as toy:
        assert talk(toy, "put a 1", "put b 1") == ["stored b", "stored a"]
        assert lives.took_place()


def test_a_tests_own_fault_brings_a_behaviour_about(plain: Lives) -> None:
    faults = [drop(role="confirm", nth=2), latency(0.0), reorder(kind="Value"), rst(on="accept", nth=9)]
    with Toy(faults=faults) as toy:
        talk(toy, "put a 1")
        assert set(plain.brings_about()) == set()  # none of them has done anything yet
        talk(toy, "put a 1", "put b 1", "put c 1", answers=2)
    assert set(plain.brings_about()) == {("toy", "lost-confirm")}
