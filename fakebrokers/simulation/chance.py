"""Time and chance of the code under test, where they are to follow the simulation.

Functions of `time`, `datetime.now`, `os.urandom` (so `uuid4` and `secrets`, too) and `random` are exchanged
while the loop runs, and only code on the loop sees others: all else, pytest among it, gets the real ones.
"""

from __future__ import annotations

import datetime
import os
import random
import time
from asyncio import _get_running_loop
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

from fakebrokers.server import WALL_ON_VIRTUAL_TIME
from fakebrokers.simulation.places import Places
from fakebrokers.simulation.turns import TurningLoop

#: Where nothing is exchanged: the fakes have clocks of their own, and others keep the real ones on purpose.
_NOT_IN = ("fakebrokers", "_pytest", "pytest", "asyncio", "freezegun", "time_machine")

_real_datetime = datetime.datetime
_real_date = datetime.date
_real_urandom = os.urandom


def _virtual() -> float | None:
    """Virtual seconds, for code that runs in a simulation."""
    loop = _get_running_loop()
    return float(loop.time()) if isinstance(loop, TurningLoop) else None


def _elapsed(real: Callable[[], Any], factor: int, start: float) -> Any:
    now = _virtual()
    if now is None:
        return real()
    return (start + now) * factor if factor == 1 else round((start + now) * factor)


def _moment(real: Callable[..., Any], seconds: float | None = None) -> Any:
    """`time.localtime` or `gmtime`."""
    if seconds is None and (now := _virtual()) is not None:
        seconds = WALL_ON_VIRTUAL_TIME + now
    return real(seconds)


class _Like(type):
    """Makes `isinstance` and `issubclass` go by the real class."""

    _real: type

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls._real)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls._real)


class SimulatedDatetime(_real_datetime, metaclass=_Like):
    """`datetime.datetime` for code in a simulation; all its objects are real ones."""

    _real = _real_datetime

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        return _real_datetime(*arguments, **options)

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        at = _virtual()
        return (
            _real_datetime.now(tz)
            if at is None
            else _real_datetime.fromtimestamp(WALL_ON_VIRTUAL_TIME + at, tz)
        )

    @classmethod
    def utcnow(cls) -> Any:
        return cls.now(datetime.UTC).replace(tzinfo=None)

    @classmethod
    def today(cls) -> Any:
        return cls.now()


class SimulatedDate(_real_date, metaclass=_Like):
    """`datetime.date` for code in a simulation; all its objects are real ones."""

    _real = _real_date

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        return _real_date(*arguments, **options)

    @classmethod
    def today(cls) -> Any:
        return SimulatedDatetime.now().date()


class SimulatedRandom(random.Random, metaclass=_Like):
    """`random.Random`, which code in a simulation may leave to seed itself."""

    _real = random.Random

    def seed(self, a: Any = None, version: int = 2) -> None:
        super().seed(os.urandom(32) if a is None and _virtual() is not None else a, version)


class Chance:
    """What is drawn in one simulation.

    Args:
        seed: Of everything.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._state: Any = None  #: of the module `random`, for the code; it is a long one to copy

    @contextmanager
    def follows(self) -> Iterator[None]:
        """Exchange time and chance, and give the real ones back."""
        before = random.getstate()
        if self._state is None:
            random.seed(f"{self._seed} code")
        else:
            random.setstate(self._state)
        try:
            with _PLACES.exchanged(_replacements(self._urandom)):
                yield
        finally:
            self._state = random.getstate()
            random.setstate(before)

    @cached_property
    def _bytes(self) -> random.Random:
        return random.Random(f"{self._seed} bytes")

    def _urandom(self, size: int) -> bytes:
        return _real_urandom(size) if _virtual() is None else self._bytes.randbytes(size)


#: What is exchanged, by where it is.
_REAL: dict[str, Any] = {
    "os.urandom": _real_urandom,
    "random.Random": random.Random,
    "datetime.datetime": _real_datetime,
    "datetime.date": _real_date,
    **{
        f"time.{name}": getattr(time, name)
        for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")
    },
    "time.gmtime": time.gmtime,
    "time.localtime": time.localtime,
}
_PLACES = Places(_REAL, _NOT_IN)


def _replacements(urandom: Callable[[int], bytes]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "os.urandom": urandom,
        "random.Random": SimulatedRandom,
        "datetime.datetime": SimulatedDatetime,
        "datetime.date": SimulatedDate,
    }
    for key, real in _REAL.items():
        if key in {"time.gmtime", "time.localtime"}:
            made[key] = partial(_moment, real)
        elif key not in made:
            factor = 10**9 if key.endswith("_ns") else 1
            start = WALL_ON_VIRTUAL_TIME if key.startswith("time.time") else 0.0
            made[key] = partial(_elapsed, real, factor, start)
    return made
