"""Several clients connect at once: what repeats then, and how to make more of it repeat."""

from __future__ import annotations

import socket
import threading
from typing import Any

from fakebrokers.core.frames import Frame
from fakebrokers.faults import Plan, crash, drop, rst
from fakebrokers.journal import Tap
from tests.eventually import PATIENCE_S, eventually
from tests.toy import Toy

CLIENTS = 8


def connected(toy: Toy) -> socket.socket:
    """A connection, once the toy listens (again)."""

    def attempt() -> socket.socket | None:
        try:
            return socket.create_connection((toy.host, toy.port), timeout=PATIENCE_S)
        except ConnectionRefusedError:
            return None

    sock = eventually(attempt, "it listens again")
    assert sock is not None
    return sock


def by_name(frame: Frame) -> str | None:
    return getattr(frame, "name", None)


def fates(plan: Plan, order: list[int], **options: Any) -> dict[str, bool]:
    """Which client hears that its message is stored, by name; they come in this order, or all at once."""
    heard: dict[str, bool] = {}

    def client(name: str) -> None:
        with connected(toy) as sock, sock.makefile("rwb") as file:
            try:
                file.write(f"hello {name}\nput a\nbye\n".encode())
                file.flush()
                heard[name] = b"stored a\n" in file.readlines()
            except ConnectionError:
                heard[name] = False

    with Toy(faults=plan, **options) as toy:
        if order:
            for number in order:
                client(f"client-{number}")
        else:
            threads = [threading.Thread(target=client, args=(f"client-{n}",)) for n in range(CLIENTS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE_S)
    return dict(sorted(heard.items()))


FORWARDS, BACKWARDS = list(range(CLIENTS)), list(reversed(range(CLIENTS)))


def test_a_fate_goes_with_the_order_of_connections_unless_clients_have_names() -> None:
    """The documented limit: ``c1`` is who comes first."""
    by_order = Plan(seed=5, faults=(drop(role="confirm", probability=0.5),))
    assert fates(by_order, FORWARDS) == fates(by_order, FORWARDS) != fates(by_order, BACKWARDS)


def test_clients_with_names_meet_the_same_fate_in_any_order() -> None:
    plan = Plan(
        seed=5,
        faults=(
            drop(role="confirm", probability=0.5, scope="peer", name="lost"),
            rst(kind="Put", peer="client-3", name="one of them"),
        ),
    )
    expected = fates(plan, FORWARDS, peers=by_name)
    assert set(expected.values()) == {True, False}
    assert not expected["client-3"]
    assert fates(plan, BACKWARDS, peers=by_name) == expected
    for _ in range(10):
        assert fates(plan, [], peers=by_name) == expected


def test_a_name_counts_from_the_frame_that_tells_it() -> None:
    plan = Plan(faults=(drop(kind="Hello", peer="client-1"), drop(kind="Put", nth=2, scope="peer")))
    with Toy(faults=plan, peers=by_name) as toy:
        for _ in range(2):
            with socket.create_connection((toy.host, toy.port)) as sock:
                sock.sendall(b"hello client-1\nput a\n")
                toy.wait_for(tap=Tap.RECEIVED, kind="Put")
        toy.wait_for(tap=Tap.RECEIVED, kind="Put", count=2)
        lost = [record for record in toy.journal if record.fault]
    assert [(record.kind, record.connection) for record in lost] == [
        ("Hello", "c1"),
        ("Hello", "c2"),
        ("Put", "c2"),  # the second of this client, on its second connection
    ]
    assert {record.peer for record in lost} == {"client-1"}


def test_a_crash_at_the_nth_of_all_ends_all_in_any_order() -> None:
    assert fates(Plan(faults=(crash(kind="Put", nth=1, restart_s=0.0),)), FORWARDS) == {
        "client-0": False,
        **{f"client-{n}": True for n in range(1, CLIENTS)},
    }
