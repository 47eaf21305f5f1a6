"""The same seed gives the same run, byte for byte; where it does not, the first difference is named."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from fakebrokers.errors import DoesNotRepeat, FakeBrokerError, UsageError
from fakebrokers.faults import drop
from fakebrokers.simulation import Simulation, check_repeats
from fakebrokers.simulation.hashes import FRESH
from tests.simulation.code import Stock

ASK = b"PUT /v2/shop/queues/%s HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"


async def shop(host: str, names: list[bytes]) -> None:
    """Asks for queues, with a minute between."""
    for name in names:
        reader, writer = await asyncio.open_connection(host, 3000)
        writer.write(ASK % name)
        try:
            async with asyncio.timeout(5):
                await reader.readuntil(b"\r\n\r\n")
        except TimeoutError:
            pass
        writer.close()
        await asyncio.sleep(60)


async def lossy(simulation: Simulation) -> object:
    broker = simulation.narconi(port=3000)
    broker.faults.add(drop(direction="out", probability=0.5))
    names = [b"a", b"b", b"c", b"d", b"e", b"f"]
    apps = [simulation.start(shop, broker.host, names) for _ in range(3)]
    for app in apps:
        await app.wait()
    return simulation.now


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_seed_repeats(shuffle: bool) -> None:
    lines = {seed: check_repeats(lossy, seed, shuffle=shuffle) for seed in range(3)}
    assert all(len(each) > 50 for each in lines.values())
    assert lines[0] != lines[1] != lines[2]


def test_bytes_that_differ_are_named() -> None:
    names = map(str.encode, map(str, itertools.count(100)))

    async def counts(simulation: Simulation) -> None:
        broker = simulation.narconi(port=3000)
        await simulation.start(shop, broker.host, [next(names)]).wait()

    with pytest.raises(DoesNotRepeat) as caught:
        check_repeats(counts, 7)
    text = str(caught.value)
    assert text.startswith("seed 7 does not repeat; line ")
    one, other = text.splitlines()[1:]
    assert one.startswith("  first run:  at 0.000000 s")
    assert (b"queues/100".hex() in one, b"queues/101".hex() in other) == (True, True)


def test_a_run_that_goes_on_is_named() -> None:
    runs = itertools.count()

    async def longer(simulation: Simulation) -> None:
        simulation.narconi(port=3000)
        await shop("narconi", [b"a"] * (1 + next(runs)))

    with pytest.raises(DoesNotRepeat, match=r"first run:  at 60\.0+ s, the end"):
        check_repeats(longer)


def test_what_is_drawn_differs_unless_it_follows_the_seed() -> None:
    async def draws(simulation: Simulation) -> object:
        return random.random(), uuid.uuid4()

    with pytest.raises(DoesNotRepeat, match="the end: "):
        check_repeats(draws)
    assert check_repeats(draws, patch=True)


async def orders_that_race(simulation: Simulation) -> object:
    """Two orders for the last piece; the second begins when the first has ended, or nearly."""
    stock = Stock(1)
    await asyncio.gather(stock.take(0), stock.take(2))
    return stock.pieces


def pieces_left(seed: int, **options: bool) -> object:
    with Simulation(seed, **options) as simulation:
        return simulation.run(orders_that_race(simulation))


def test_a_race_is_found_where_the_order_is_drawn_and_only_there() -> None:
    assert [seed for seed in range(50) if pieces_left(seed) != 0] == []
    found = [seed for seed in range(50) if pieces_left(seed, shuffle=True) == -1]
    assert found
    assert found == [seed for seed in range(50) if pieces_left(seed, shuffle=True) == -1]


# the order of sets of strings


async def walks_a_set(simulation: Simulation) -> object:
    """Asks for queues in the order of a set of strings."""
    broker = simulation.narconi(port=3000)
    await simulation.start(shop, broker.host, [name.encode() for name in set("abcdef")]).wait()
    return set("abcdef")


async def sorts_a_set(simulation: Simulation) -> object:
    """In an order of its own."""
    broker = simulation.narconi(port=3000)
    await simulation.start(shop, broker.host, [name.encode() for name in sorted(set("abcdef"))]).wait()
    return set("abcdef")


async def breaks_where_it_is_fresh(simulation: Simulation) -> object:
    """Only in a process that another one has started."""
    if FRESH in os.environ:
        raise ValueError("no tea in a fresh process")
    return None


def test_what_depends_on_the_order_of_sets_of_strings_is_named() -> None:
    assert check_repeats(walks_a_set, 7)  # in one process it always has the same order
    with pytest.raises(DoesNotRepeat) as caught:
        check_repeats(walks_a_set, 7, hash_seeds=(1, 2))
    text = str(caught.value)
    assert text.startswith(
        "seed 7 goes another way where sets of strings have another order (PYTHONHASHSEED=1, then 2); line "
    )
    one, other = text.splitlines()[1:]
    assert "first run:  at 0.000000 s" in one
    assert one[-100:] != other[-100:]


def test_what_does_not_depend_on_it_repeats_in_every_process() -> None:
    lines = check_repeats(sorts_a_set, 7, hash_seeds=(1, 2), shuffle=True)
    assert lines == check_repeats(sorts_a_set, 7, shuffle=True)


def test_what_a_fresh_process_cannot_run_is_refused() -> None:
    async def inner(simulation: Simulation) -> None:
        """Nobody else finds it."""

    with pytest.raises(UsageError, match="hash_seeds: expected a function of a module"):
        check_repeats(inner, hash_seeds=(1, 2))
    with pytest.raises(FakeBrokerError, match=r"(?s)=1 did not come to its end.*no tea in a fresh process"):
        check_repeats(breaks_where_it_is_fresh, hash_seeds=(1, 2))


SCRIPT = """
from fakebrokers.simulation import check_repeats

async def scenario(simulation):
    print("begins")
    return list(set("abcdef"))

{guard}check_repeats(scenario, hash_seeds=(1, 2))
"""


@pytest.mark.parametrize(
    ("guard", "said"),
    [
        ("if __name__ == '__main__':\n    ", "DoesNotRepeat: seed 0 goes another way"),
        ("", "put the call under if __name__"),
    ],
    ids=["guarded", "not guarded"],
)
def test_a_script_may_ask_for_it_where_it_is_not_imported(guard: str, said: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(guard=guard))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert said in done.stderr
