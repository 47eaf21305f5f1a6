"""What a fake costs while nobody talks to it."""

from __future__ import annotations

import gc
import socket
import tracemalloc

import pytest

from fakebrokers.protocol import Protocol, protocols
from fakebrokers.server import FakeServer
from tests.toy import Toy

#: Bytes that a fake may take which has started and which nobody has connected to.
IDLE = 100_000


@pytest.mark.parametrize("info", protocols(), ids=lambda info: info.fixture)
def test_an_idle_fake_costs_less_than_100_kb(info: Protocol) -> None:
    kind: type[FakeServer] = info.load()
    with kind():  # what is loaded and compiled once is no cost of a fake
        pass
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        fakes = [kind().start() for _ in range(3)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    for fake in fakes:
        fake.stop()
    assert (after - before) / len(fakes) < IDLE


def test_the_sockets_of_all_fakes_are_read_into_the_same_memory() -> None:
    with Toy() as one, Toy() as other:
        for toy in (one, other):
            with socket.create_connection((toy.host, toy.port)) as sock:
                sock.sendall(b"hello me\n")
                toy.wait_for(kind="Hello")
        assert one._driver is not None and other._driver is not None
        assert one._driver.read_buffer is other._driver.read_buffer
