"""What a step costs does not depend on how many streams or connections there are.

Counted in function calls of the fake, not in seconds.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from fakebrokers.rabbitmq_stream.frames import DeclarePublisher
from fakebrokers.rabbitmq_stream.publishing import publish
from tests.rabbitmq_stream.bench import Bench


def calls(act: Callable[[], object]) -> int:
    """How many Python functions `act` calls; what a garbage collection would call is left out."""
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    gc.collect()
    gc.disable()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def prepared(streams: int, connections: int) -> tuple[Bench, Any]:
    bench = Bench()
    for number in range(streams):
        bench.broker.create("/", f"s{number}", {}, bench.broker.cluster.nodes[0])
    for _ in range(connections):
        bench.open()
    client = bench.open()
    client.send(DeclarePublisher(1, 1, "", "s0"), publish(1, [(0, b"warm")]))
    bench.advance(15.0)  # past the limits of the handshakes, whose timers are gone from the heap then
    return bench, client


def publishes(bench: Bench, client: Any) -> list[int]:
    """What five publishes with their confirms cost."""
    costs = []
    for number in range(1, 6):
        frame = publish(1, [(number, b"x")])
        costs.append(calls(lambda f=frame: (client.send(f), bench.advance(0.001))))  # type: ignore[misc]
    return costs


@pytest.mark.parametrize(("streams", "connections"), [(200, 0), (1, 50)])
def test_a_publish_costs_the_same(streams: int, connections: int) -> None:
    alone, among_many = publishes(*prepared(1, 0)), publishes(*prepared(streams, connections))
    assert min(alone) == min(among_many)


def test_so_does_a_new_stream() -> None:
    costs = []
    for streams in (1, 200):
        bench, _ = prepared(streams, 0)
        node = bench.broker.cluster.nodes[0]
        costs.append(calls(lambda b=bench, n=node: b.broker.create("/", "new", {}, n)))  # type: ignore[misc]
    assert costs[0] == costs[1]


def test_so_does_the_end_of_a_connection() -> None:
    costs = []
    for streams in (1, 200):
        _, client = prepared(streams, 0)
        costs.append(calls(client.leave))
    assert costs[0] == costs[1]
