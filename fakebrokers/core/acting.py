"""What tests see of a running fake, and do to it as an operator or a network would."""

from __future__ import annotations

from typing import Any

from fakebrokers.core.connection import Connection
from fakebrokers.core.frames import Frame
from fakebrokers.core.parts import Parts
from fakebrokers.core.session import HangUp, hang_up_named
from fakebrokers.errors import UsageError


class Acting(Parts):
    """From any thread."""

    @property
    def connections(self) -> list[dict[str, Any]]:
        """The connections that are open: name, address, peer, bytes, and what the session tells."""
        return self.call(lambda: [each.describe() for each in self.engine.connections.values()])

    def client_holds(self, connection: str) -> bool | None:
        """Whether the client still holds its socket of a connection, even one that the broker has ended.

        Returns:
            None where that cannot be told (no Linux; a library owns the sockets; an end so long ago that the
            journal has forgotten the connection).

        Raises:
            UsageError: There was never a connection of that name.
        """

        def address() -> str | None:
            open_one = self.engine.connections.get(connection)
            if open_one is not None:
                return open_one.address  # the journal may have forgotten its begin
            accepted = self.journal.select(kind="accepted", connection=connection)
            if not accepted and not self.engine.has_ended(connection):
                raise UsageError(f"there was no connection {connection!r}")
            return accepted[0].note if accepted else None

        found = self.call(address)
        return None if found is None else self.listeners.client_holds(connection, found)

    def say(self, connection: str, *frames: Frame) -> None:
        """Send frames that were not asked for on a connection; no fault touches them."""

        def act() -> None:
            for frame in frames:
                self.connection(connection).inject(frame)

        self.call(act)

    def say_raw(self, connection: str, data: Any) -> None:
        """Say bytes (or whatever the wire's unit is) on a connection; no fault touches them."""
        self.call(lambda: self.connection(connection).inject(data))

    def connection(self, name: str) -> Connection:
        """A connection that is open, for code on the fake's own thread.

        Raises:
            UsageError: There is none of that name; with those there are.
        """
        if name not in self.engine.connections:
            there = ", ".join(self.engine.connections) or "none"
            raise UsageError(f"expected a connection that is open ({there}), got {name!r}")
        return self.engine.connections[name]

    def kill(self, connection: str | None = None, how: HangUp | str = HangUp.FIN) -> None:
        """End one connection (``c1``), or all of them, as an operator or a network would.

        One that has ended by itself meanwhile is left as it is.

        Raises:
            UsageError: There was never a connection of that name.
        """
        way = hang_up_named(how)

        def act() -> None:
            names = list(self.engine.connections) if connection is None else [connection]
            for name in names:
                if not self.engine.has_ended(name):
                    self.engine.kill(self.connection(name), way, self.engine.now)

        self.call(act)

    def refuse(self, for_s: float | None = None) -> None:
        """Refuse new connections for `for_s` seconds, or until `restart`; those that are open go on."""
        self.call(self._host.refuse, for_s, "")

    def black_hole(self, for_s: float | None = None) -> None:
        """Let new connects hang for `for_s` seconds, or until `restart`; those that are open go on."""
        self.call(self._host.black_hole, for_s, "")

    def crash(self, how: HangUp | str = HangUp.RST, *, keep_state: bool = True) -> None:
        """Die: all connections end, nothing listens until `restart`."""
        way = hang_up_named(how)

        def act() -> None:
            self._host.close_listeners(None, "")
            self.engine.crash(way, keep_state, self.engine.now)

        self.call(act)

    def restart(self) -> None:
        """Listen again on the same ports, whatever kept them shut."""
        if self._loop is not None:
            self._loop.run(self.listeners.reopen())

    def reset(self) -> None:
        """As right after the start, on the same ports: no connections, no faults, nothing stored or
        expected, no journal.

        Users, virtual hosts, limits and the seed stay; the connections that come then go on counting.
        """
        self.faults.forget()
        self.call(lambda: self.engine.crash(HangUp.RST, False, self.engine.now))
        self.restart()

        def act() -> None:
            self.clock.shift_s = 0.0
            self.journal.forget()
            self.expectations.clear()

        self.call(act)
