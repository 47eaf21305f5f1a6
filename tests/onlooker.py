"""An onlooker that keeps what it is told."""

from __future__ import annotations

from typing import Any

from fakebrokers.core.driver import Driver
from fakebrokers.core.watch import End
from fakebrokers.server import FakeServer


class Onlooker:
    """What passed between a fake and its clients, as rows of a word and what it is about."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, Any]] = []

    def accepted(self, connection: str, socket: str = "") -> None:
        self.rows.append(("accepted", connection))

    def written(self, connection: str, data: Any) -> None:
        self.rows.append(("written", data))

    def handed_over(self, connection: str, data: Any) -> None:
        self.rows.append(("handed over", data))

    def reads(self, connection: str, goes_on: bool) -> None:
        self.rows.append(("reads", goes_on))

    def ended(self, connection: str, by: End, how: str) -> None:
        self.rows.append(("ended", by))

    def of(self, what: str) -> list[Any]:
        return [data for word, data in self.rows if word == what]


def looked_at(server: FakeServer) -> Onlooker:
    """One that looks on from now on: what is a write of its own need not be read as one."""
    onlooker = Onlooker()
    driver: Driver = server.listeners[0].driver  # type: ignore[attr-defined]
    driver.watcher = onlooker
    return onlooker
