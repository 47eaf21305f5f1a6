"""Expectations: counted where it goes over the wire, checked once, and told with their place."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from fakebrokers.errors import UnmetExpectation, UsageError
from fakebrokers.faults import drop, duplicate, latency
from fakebrokers.journal import Tap
from tests.eventually import PATIENCE_S
from tests.toy import Toy


class Client:
    """Says lines to a toy, and waits until it has heard them."""

    def __init__(self, toy: Toy) -> None:
        self.toy = toy
        self.socket = socket.create_connection((toy.host, toy.port), timeout=PATIENCE_S)
        self.said = 0
        self.say("hello me")

    def say(self, *lines: str) -> None:
        self.said += len(lines)
        self.socket.sendall("".join(f"{line}\n" for line in lines).encode())
        self.toy.wait_for(tap=Tap.HEARD, count=self.said)


@pytest.fixture
def toy() -> Iterator[Toy]:
    toy = Toy().start()
    yield toy
    toy.stop()


@pytest.fixture
def client(toy: Toy) -> Iterator[Client]:
    client = Client(toy)
    with client.socket:
        yield client


@pytest.mark.parametrize(
    ("expected", "problem"),
    [
        ({"role": "publish", "count": 3}, ""),
        ({"role": "publish", "count": 2}, "expected 2 x publish, got 3"),
        ({"role": "publish", "count": 4}, "expected 4 x publish, got 3"),
        ({"kind": "Put", "at_least": 3}, ""),
        ({"kind": "Put", "at_least": 4}, "expected at least 4 x Put, got 3"),
        ({"kind": "Put", "at_most": 2}, "expected 0 to 2 x Put, got 3"),
        ({"kind": "Put", "at_least": 1, "at_most": 3}, ""),
        ({"role": "publish", "count": 4, "unit": "item"}, ""),
        ({"role": "reject"}, "expected at least 1 x reject, got none"),
        ({"role": "reject", "count": 0}, ""),
        ({"role": "publish", "count": 0}, "expected no publish, got 3"),
        ({"role": "publish", "count": 3, "connection": "c2"}, "got none"),
        ({"kind": "accepted", "count": 1}, ""),
        ({"condition": lambda record: "b" in record.keys, "role": "publish", "count": 1}, ""),
    ],
)
def test_numbers(toy: Toy, client: Client, expected: dict[str, Any], problem: str) -> None:
    toy.expect(expected.pop("condition", None), **expected)
    client.say("put a", "put b", "put c,d")
    if not problem:
        toy.check(timeout=PATIENCE_S)
        return
    with pytest.raises(UnmetExpectation) as caught:
        toy.check()
    text = str(caught.value)
    assert problem in text
    assert text.startswith("test_expecting.py:")
    if "got 3" in problem:
        assert text.count("-> Put") == 3


def test_what_goes_over_the_wire_counts_behind_all_faults(toy: Toy, client: Client) -> None:
    lost, late = drop(role="confirm", nth=1), latency(0.02, role="confirm", nth=2)
    toy.faults.add(lost, late, duplicate(role="confirm", nth=3))
    client.say("put a", "put b", "put c")
    toy.wait_for(role="confirm", tap=Tap.SENT, count=3)
    toy.expect(role="confirm", count=3)  # none, one, two
    toy.expect(role="confirm", count=3, tap=Tap.SAID)
    toy.check(timeout=PATIENCE_S)


def test_check_waits_for_what_is_missing_and_no_longer(toy: Toy, client: Client) -> None:
    toy.expect(role="publish", count=2, unit="item")
    client.say("put a")
    timer = threading.Timer(0.05, client.socket.sendall, [b"put b\n"])
    timer.start()
    toy.check(timeout=PATIENCE_S)
    timer.join()
    toy.expect(role="publish", count=1)  # too many will not become fewer
    with pytest.raises(UnmetExpectation):
        toy.check(timeout=PATIENCE_S)


def test_several_are_told_together_and_once(toy: Toy) -> None:
    toy.expect(role="publish")
    toy.expect(role="ack")
    with pytest.raises(UnmetExpectation) as caught:
        toy.check()
    assert str(caught.value).count("expected at least 1 x") == 2
    toy.check()


def test_they_are_checked_at_the_end_of_a_with_block() -> None:
    with pytest.raises(UnmetExpectation, match="1 x publish"), Toy() as toy:
        toy.expect(role="publish", count=1)
    with pytest.raises(KeyError), Toy() as toy:
        toy.expect(role="publish", count=1)
        raise KeyError


def test_an_error_inside_the_fake_is_told_besides(toy: Toy, client: Client) -> None:
    toy.expect(role="confirm", count=1)
    client.socket.sendall(b"put a boom\n")
    toy.wait_for(kind="rst")
    with pytest.raises(BaseExceptionGroup) as caught:
        toy.check()
    assert [type(error) for error in caught.value.exceptions] == [RuntimeError, UnmetExpectation]


def test_reset_forgets_them(toy: Toy) -> None:
    toy.expect(role="publish")
    toy.reset()
    toy.check()


@pytest.mark.parametrize(
    ("expected", "problem"),
    [
        ({"role": "confrim"}, "expected a role of this protocol, got 'confrim'; did you mean 'confirm'?"),
        ({"kind": "Putt", "count": 0}, "expected a kind of this protocol, got 'Putt'; did you mean 'Put'?"),
        ({"count": 1, "at_least": 1}, "expected either count, or at_least and at_most, got both"),
        ({"at_least": 3, "at_most": 2}, "at_most from 3, got 2"),
        ({"count": -1}, "expected a count from 0"),
    ],
)
def test_what_makes_no_sense_is_refused(toy: Toy, expected: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        toy.expect(**expected)
    assert problem in str(caught.value)
    toy.expect(kind="a state of this protocol alone", count=0)
    toy.check()


# faults that never took place


def test_faults_that_never_took_place(toy: Toy, client: Client) -> None:
    toy.faults.add(
        drop(role="confirm", nth=1, name="lost"),
        drop(role="confirm", nth=9, name="later"),
        drop(kind="Value", name="never"),
        drop(role="confirm", probability=0.0, name="chance"),
    )
    client.say("put a", "put b")
    toy.faults.check("lost")
    with pytest.raises(UnmetExpectation) as caught:
        toy.faults.check()
    assert str(caught.value).splitlines() == [
        "the fault 'later' never took place: 2 matched (role = \"confirm\", nth = 9)",
        "the fault 'never' never took place: no frame matched (kind = \"Value\")",
    ]
    with pytest.raises(UnmetExpectation, match="'chance' never took place"):
        toy.faults.check("chance")
    toy.faults.remove("never")
    with pytest.raises(UnmetExpectation, match="'never' never took place"):
        toy.faults.check("never")


def test_counts_of_faults(toy: Toy, client: Client) -> None:
    toy.faults.add(drop(role="confirm", nth=2, name="lost"))
    client.say("put a", "put b", "put c")
    assert toy.faults.counts == ['lost: drop (role = "confirm", nth = 2); took place 1 x, 3 matched']
