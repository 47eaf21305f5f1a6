"""How many runs of a small publisher and consumer a processor does in a second, on a stock client."""

from __future__ import annotations

import asyncio
import time
from statistics import median
from typing import Any

import pytest

from fakebrokers.simulation import Simulation

pytestmark = pytest.mark.benchmark

SERIES = 8
RUNS = 30  #: of one series


async def publish(rstream: Any, host: str, port: int) -> None:
    async with rstream.Producer(host, port, username="guest", password="guest") as producer:
        for number in range(10):
            await producer.send_wait("orders", b"%d" % number)
            await asyncio.sleep(1)


async def consume(rstream: Any, host: str, port: int, got: list[bytes]) -> None:
    async def take(message: bytes, context: object) -> None:
        got.append(message)

    consumer = rstream.Consumer(host, port, username="guest", password="guest")
    await consumer.start()
    await consumer.subscribe("orders", take)
    await consumer.run()


async def both(simulation: Simulation, rstream: Any) -> None:
    broker: Any = simulation.rabbitmq_stream()
    broker.create_stream("orders")
    got: list[bytes] = []
    publisher = simulation.start(publish, rstream, broker.host, broker.port)
    simulation.start(consume, rstream, broker.host, broker.port, got)
    await publisher.wait()
    await asyncio.sleep(5)
    assert len(got) == 10


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"patch": True}], ids=str)
def test_a_hundred_runs_in_a_second_of_the_processor(options: dict[str, bool]) -> None:
    rstream = pytest.importorskip("rstream", reason="missing: rstream (pip install rstream)")

    def run(seed: int) -> None:
        with Simulation(seed, **options) as simulation:
            simulation.run(both(simulation, rstream))

    def series() -> float:
        begun = time.process_time()
        for seed in range(RUNS):
            run(seed)
        return RUNS / (time.process_time() - begun)

    run(0)  # what is made at the first use
    # The middle one: now and then something else on the machine makes a series slower.
    rates = [series() for _ in range(SERIES)]
    rate = median(rates)
    print(f"\n{rate:.0f} runs a CPU second, {options}: {sorted(map(round, rates))}")
    assert rate >= 100
