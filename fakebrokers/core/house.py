"""Where a fake lives: on the loop thread, or on the caller's own loop."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from fakebrokers.core.driver import Driver
from fakebrokers.core.engine import Engine
from fakebrokers.core.loop import Home
from fakebrokers.journal import Journal

T = TypeVar("T")


class Housed(ABC):
    """What every part of a server does its work through; `server.FakeServer` sets it up."""

    protocol: ClassVar[str]
    engine: Engine
    journal: Journal
    _home: Home | None
    _driver: Driver | None

    @property
    def now(self) -> float:
        """Monotonic seconds, on the clock of the journal's producer."""
        return self._driver.loop.time() if self._driver is not None else 0.0

    def call(self, act: Callable[..., T], *arguments: Any) -> T:
        """Run `act` where the fake lives, then write what it made the fake say."""
        if self._home is None or self._driver is None:
            result = act(*arguments)
            self.engine.flush(self.engine.now)
            return result
        driver = self._driver

        def step() -> T:
            self.engine.now = driver.loop.time()
            try:
                return act(*arguments)
            finally:
                driver.settle()

        return self._home.call(step)

    def _post(self, act: Callable[[], None]) -> None:
        if self._home is not None:
            self._home.post(act)
