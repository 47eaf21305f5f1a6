"""Small worlds for searches."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable
from typing import Any

#: What a run leaves behind.
SEEN: list[str] = []

PUT = "PUT /v2/shop/queues/{name} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"


async def put(host: str, name: str) -> bool:
    """Make a queue; whether the broker has said so."""
    writer = None
    try:
        async with asyncio.timeout(5):
            reader, writer = await asyncio.open_connection(host, 3000)
            writer.write(PUT.format(name=name).encode())
            return (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 2")
    except (OSError, EOFError, TimeoutError):
        return False
    finally:
        if writer is not None:
            writer.close()


async def patient(host: str, names: Iterable[str]) -> None:
    """Makes queues, each as soon as that works, and a minute later the next."""
    for name in names:
        while not await put(host, name):
            await asyncio.sleep(1)
        await asyncio.sleep(60)


async def impatient(host: str, names: Iterable[str]) -> None:
    """Tries each once."""
    for name in names:
        await put(host, name)
        await asyncio.sleep(60)


def there(broker: Any) -> set[str]:
    """The queues of the shop."""
    return {name.removeprefix("shop_") for name in broker.queues}


async def fine(simulation: Any) -> None:
    """Nothing is wrong with it."""
    broker = simulation.narconi(port=3000)
    app = simulation.start(patient, broker.host, ["a", "b", "c"])
    await app.wait()
    await simulation.healed()
    assert there(broker) == {"a", "b", "c"}


async def careless(simulation: Any) -> None:
    """What fails once is forgotten."""
    broker = simulation.narconi(port=3000)
    app = simulation.start(impatient, broker.host, ["a", "b", "c"])
    await app.wait()
    assert there(broker) == {"a", "b", "c"}


async def builds(simulation: Any) -> None:
    """Only builds; `has_all` checks."""
    broker = simulation.narconi(port=3000)
    simulation.start(impatient, broker.host, ["a", "b", "c"])


async def has_all(simulation: Any) -> None:
    assert there(simulation.brokers["narconi"]) == {"a", "b", "c"}


async def fails_always(simulation: Any) -> None:
    simulation.narconi()
    raise ValueError("no shop")


async def own_process(simulation: Any) -> None:
    """Depends on what no seed governs."""
    broker = simulation.narconi(port=3000)
    await put(broker.host, f"of-{os.getpid()}")


async def remembers(simulation: Any) -> None:
    """A module's state says how often it has run."""
    broker = simulation.narconi(port=3000)
    SEEN.append("run")
    await put(broker.host, f"run-{len(SEEN)}")
    assert len(SEEN) == 1


async def a_set(simulation: Any) -> None:
    """The order of a set of strings reaches the wire."""
    broker = simulation.narconi(port=3000)
    await simulation.start(patient, broker.host, {"a", "b", "c", "d", "e", "f"}).wait()


async def busy(simulation: Any) -> None:
    """Never awaits, once a connection was lost."""
    broker = simulation.narconi(port=3000)
    while await put(broker.host, "a"):
        await asyncio.sleep(60)
        if simulation.now > 300:
            return
    while True:
        pass


async def waits_for_ever(simulation: Any) -> None:
    """Has no time limit."""
    broker = simulation.narconi(port=3000)
    with contextlib.suppress(OSError, EOFError):
        reader, writer = await asyncio.open_connection(broker.host, 3000)
        writer.write(PUT.format(name="a").encode())
        await reader.readuntil(b"\r\n")
        writer.close()


async def nothing(simulation: Any) -> None:
    """Nobody takes part."""


def not_async(simulation: Any) -> None:
    """Is no world."""


async def falling_back(first: str, second: str, names: Iterable[str]) -> list[str]:
    """Makes queues at the first place, and for good at the second once that has failed; what was lost."""
    lost = []
    place = first
    for name in names:
        done = await put(place, name)
        if not done and place == first:
            place = second
            done = await put(place, name)
        if not done:
            await asyncio.sleep(30)
            done = await put(place, name)
        if not done:
            lost.append(name)
        await asyncio.sleep(60)
    return lost


async def two_faults(simulation: Any) -> None:
    """Goes wrong where the first broker fails, and then the second one twice in a row."""
    first, second = (simulation.narconi(port=3000, host=host).host for host in ("first", "second"))
    lost = await simulation.start(falling_back, first, second, "abcdefgh").wait()
    assert not lost
