"""The brokers of one process, by name. Blocking, for any thread but the loop's."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from typing import Any

from fakebrokers.control.common import COMMON
from fakebrokers.control.describe import BoundOperation, BrokerOptions
from fakebrokers.control.problems import Refusal
from fakebrokers.control.values import read
from fakebrokers.description import Description
from fakebrokers.errors import PlanError, UsageError, shortage
from fakebrokers.faults.plan import load_plan
from fakebrokers.protocol import Protocol, find_protocol, load_control, load_server
from fakebrokers.server import FakeServer


def operations_of(protocol: Description) -> dict[str, BoundOperation]:
    """What the fakes of a protocol can do, by name."""
    kind = load_server(protocol)
    own = load_control(protocol).operations
    found: dict[str, BoundOperation] = {}
    for each in (*COMMON, *own):
        found |= each.bind_all(kind)
    return found


def make(protocol: Protocol, options: BrokerOptions, **more: Any) -> FakeServer:
    """A broker with these options, not started yet."""
    return protocol.load()(**{**options.keywords(), **more})


class Brokers:
    """See the module's text.

    Args:
        host: Where brokers listen that are added.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._host = host
        self._servers: dict[str, FakeServer] = {}
        self._lock = threading.RLock()
        self._failures: list[Exception] = []

    def __iter__(self) -> Iterator[tuple[str, FakeServer]]:
        with self._lock:
            return iter(list(self._servers.items()))

    def find(self, name: str) -> FakeServer:
        """The broker of that name; `Refusal` 404 with those there are."""
        server = self._servers.get(name)
        if server is None:
            there = ", ".join(self._servers) or "none"
            raise Refusal(
                404, f"/brokers/{name[:100]}", f"expected a broker that runs ({there}), got {name[:100]!r}"
            )
        return server

    def adopt(self, name: str, server: FakeServer) -> None:
        """List a broker that runs already; `Refusal` if the name is taken."""
        with self._lock:
            self._servers[self._free_name("", name)] = server

    def add(self, protocol: str, name: str, options: dict[str, Any]) -> str:
        """Start a broker; returns its name.

        Raises:
            Refusal: There is no such protocol, the options make no sense, or name or port are taken.
        """
        try:
            described = find_protocol(protocol)
        except UsageError as error:
            raise Refusal(400, "body.protocol", f"expected the name of a protocol: {error}") from None
        wanted = read(options, described.load_control().options, "body.options")
        with self._lock:
            name = self._free_name(described.name, name)
            server = self._started(described, wanted)
            self._servers[name] = server
            return name

    def _started(self, protocol: Protocol, options: BrokerOptions) -> FakeServer:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that others can reach it was said when the process began
                if options.faults is not None:
                    load_plan(options.faults, protocol)
                server = make(protocol, options, host=self._host)
            server.start()
        except PlanError as error:
            raise Refusal(400, f"body.options.faults.{error.path}", error.problem) from None
        except UsageError as error:
            raise Refusal(422, "body.options", str(error)) from None
        except OSError as error:
            if short := shortage(error):
                raise Refusal(422, "body", f"cannot listen: {short}") from None
            raise Refusal(409, "body.options.port", f"cannot listen: {error}") from None
        try:
            options.prepare(server)
        except UsageError as error:
            server.stop()
            raise Refusal(422, "body.options", str(error)) from None
        return server

    def _free_name(self, protocol: str, name: str) -> str:
        if name:
            if name in self._servers:
                raise Refusal(409, "body.name", f"expected a name that no broker has, got {name!r}")
            return name
        number, name = 1, protocol
        while name in self._servers:
            number += 1
            name = f"{protocol}-{number}"
        return name

    def remove(self, name: str) -> None:
        """Stop a broker and forget it; `Refusal` 404 if there is none."""
        with self._lock:
            server = self.find(name)
            del self._servers[name]
        self._stop(server)

    def _stop(self, server: FakeServer) -> None:
        server.stop()
        try:
            server.check()
        except Exception as error:
            self._failures.append(error)

    def check(self) -> None:
        """Raise what went wrong inside a broker, also one that was stopped meanwhile."""
        for _, server in self:
            try:
                server.check()
            except Exception as error:
                self._failures.append(error)
        failures, self._failures = self._failures, []
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise ExceptionGroup(f"{len(failures)} brokers went wrong", failures)

    def close(self) -> None:
        """Stop all of them; `check` raises what went wrong."""
        for name, _ in self:
            self.remove(name)
