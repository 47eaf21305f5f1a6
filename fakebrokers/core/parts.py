"""What a fake is made of, for the classes that `FakeServer` is put together from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fakebrokers.core.driver import Driver
from fakebrokers.core.engine import Clock, Engine
from fakebrokers.core.expecting import Expectations
from fakebrokers.core.host import Host
from fakebrokers.core.listeners import Listeners
from fakebrokers.core.loop import InsideLoop, LoopHandle, refuse_to_block
from fakebrokers.core.waiting import Waiter
from fakebrokers.description import Description
from fakebrokers.errors import UsageError
from fakebrokers.faults.control import FaultControl
from fakebrokers.journal import Journal

T = TypeVar("T")


class Parts:
    """Its parts, which `FakeServer` describes, the way to its own thread, and its address."""

    protocol: Description
    host: str
    in_memory: bool
    journal: Journal
    clock: Clock
    engine: Engine
    listeners: Listeners
    faults: FaultControl
    expectations: Expectations
    _host: Host
    _waiter: Waiter
    _is_foreign: bool
    _loop: LoopHandle | None
    _driver: Driver | None

    @property
    def now(self) -> float:
        """Monotonic seconds, on the clock of the journal's records."""
        return self._driver.loop.time() if self._driver is not None else 0.0

    def call(self, act: Callable[..., T], *arguments: Any) -> T:
        """Run `act` on the fake's own thread, then write what it made the fake say."""
        if self._is_foreign:
            raise UsageError(f"this {self.protocol.name} fake runs in the parent of this process")
        if self._loop is None or self._driver is None:
            result = act(*arguments)
            self.engine.flush(self.engine.now)
            return result
        driver = self._driver

        def step() -> T:
            self.engine.now = driver.loop.time()
            try:
                return act(*arguments)
            finally:
                driver.finish_step()

        return self._loop.call(step)

    def _post(self, act: Callable[[], None]) -> None:
        """Run `act` there some time soon."""
        if self._loop is not None:
            self._loop.post(act)

    def _refuse_to_block(self, method: str) -> None:
        """Raise `UsageError` where waiting would block the loop that this fake runs on."""
        refuse_to_block(method, inside=isinstance(self._loop, InsideLoop))

    @property
    def runs(self) -> bool:
        """Whether it was started, and not stopped since."""
        return self._loop is not None

    @property
    def port(self) -> int:
        """The port that clients connect to."""
        if not len(self.listeners):
            raise UsageError(f"this {self.protocol.name} fake does not listen: start() it, or use `with`")
        return self.listeners[0].port

    @property
    def scheme(self) -> str:
        """The first part of `url`."""
        return self.protocol.name

    @property
    def url(self) -> str:
        """Where clients connect, such as ``rabbitmq-stream://127.0.0.1:41231``."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def where(self) -> str | dict[str, str]:
        """What clients connect to: ``host:port``, or addresses by role."""
        return f"{self.host}:{self.port}"
