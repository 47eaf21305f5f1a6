"""Makes the fake that a scenario asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conformance.suite.scenario import Scenario
from fakebrokers.protocol import find_protocol
from fakebrokers.server import FakeServer


def fake_for(seed: int = 0, memory: bool = False, **settings: Any) -> Callable[[Scenario], FakeServer]:
    """A maker of fakes: the scenario's own settings win over `settings`.

    They are exact: what a scenario counts must not depend on how TCP cuts what the client sends.
    """

    def make(item: Scenario) -> FakeServer:
        options: dict[str, Any] = {"seed": seed, "memory": memory, "exact": True, **settings, **item.server}
        return find_protocol(item.protocol).load()(**options)

    return make


class RealBroker:
    """Stands in for the fake when the scenarios run against a real broker (``--target``).

    Scripts that can run there never touch faults or the journal.
    """

    def __init__(self, host: str, port: int, options: Mapping[str, Any]) -> None:
        self.host = host
        self.port = port
        self.options = dict(options)

    def start(self) -> None:
        """It runs already."""

    def stop(self) -> None:
        """It goes on."""

    def check(self) -> None:
        """Its errors are its own."""
