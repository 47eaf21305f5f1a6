"""Time and chance of code under test follow the simulation, and those of everybody else stay as they are."""

from __future__ import annotations

import datetime
import os
import pickle
import random
import secrets
import time
import uuid
from datetime import date
from datetime import datetime as imported_datetime
from time import monotonic as imported_monotonic
from time import time as imported_time
from typing import Any

from fakebrokers.simulation import Simulation
from tests.simulation.code import pause

START = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)


def inside(look: Any, seed: int = 0, **options: Any) -> Any:
    """What code sees after ten virtual minutes."""

    async def code() -> Any:
        await pause(600)
        return look()

    with Simulation(seed, patch=True, **options) as simulation:
        return simulation.run(code())


def times() -> dict[str, Any]:
    return {
        "time": time.time(),
        "imported time": imported_time(),
        "time_ns": time.time_ns(),
        "monotonic": time.monotonic(),
        "imported monotonic": imported_monotonic(),
        "perf_counter_ns": time.perf_counter_ns(),
        "gmtime": time.gmtime()[:6],
        "gmtime of 0": time.gmtime(0)[:6],
        "now": datetime.datetime.now(datetime.UTC),
        "imported now": imported_datetime.now(datetime.UTC),
        "utcnow": datetime.datetime.utcnow(),
        "isinstance": (isinstance(START, datetime.datetime), isinstance(1, datetime.datetime)),
        "issubclass": issubclass(type(START), datetime.date),
        "fromisoformat": datetime.datetime.fromisoformat("2020-02-29T12:00:00").year,
    }


def test_time_is_that_of_the_simulation() -> None:
    at = START + datetime.timedelta(seconds=600)
    assert inside(times) == {
        "time": at.timestamp(),
        "imported time": at.timestamp(),
        "time_ns": int(at.timestamp()) * 10**9,
        "monotonic": 600,
        "imported monotonic": 600,
        "perf_counter_ns": 600 * 10**9,
        "gmtime": (2025, 1, 1, 0, 10, 0),
        "gmtime of 0": (1970, 1, 1, 0, 0, 0),
        "now": at,
        "imported now": at,
        "utcnow": at.replace(tzinfo=None),
        "isinstance": (True, False),
        "issubclass": True,
        "fromisoformat": 2020,
    }


def test_dates_in_a_simulation_are_real_objects() -> None:
    made = inside(lambda: [datetime.datetime(2020, 1, 1), datetime.datetime.now(), date.today()])
    assert [type(each) for each in made] == [datetime.datetime, datetime.datetime, date]
    assert pickle.loads(pickle.dumps(made)) == made


def draws() -> dict[str, Any]:
    return {
        "random": random.random(),
        "uuid4": uuid.uuid4(),
        "token_hex": secrets.token_hex(),
        "randbelow": secrets.randbelow(1 << 60),
        "urandom": os.urandom(16),
        "SystemRandom": random.SystemRandom().random(),
        "Random": random.Random().random(),
    }


def test_chance_follows_the_seed() -> None:
    one, again, other = inside(draws, 1), inside(draws, 1), inside(draws, 2)
    assert one == again
    assert not [name for name in one if one[name] == other[name]]


def test_the_order_of_tasks_and_what_code_draws_are_drawn_apart() -> None:
    assert inside(random.random, 1) == inside(random.random, 1, shuffle=True)


def test_everybody_else_has_the_real_ones() -> None:
    before, state, real = time.time, random.getstate(), time.time()
    inside(lambda: [random.random(), uuid.uuid4()])
    assert random.getstate() == state
    assert time.time is before is imported_time
    assert datetime.datetime is imported_datetime
    assert time.time() >= real > START.timestamp() + 86_400


def test_nothing_follows_unless_it_is_asked_for() -> None:
    async def code() -> tuple[float, float]:
        await pause(1)
        return random.random(), time.time()

    with Simulation() as simulation:
        drawn, seen = simulation.run(code())
    with Simulation() as simulation:
        assert simulation.run(code())[0] != drawn
    assert seen > START.timestamp() + 86_400
