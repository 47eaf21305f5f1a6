"""What a test sees of a running fake, and what it does to it as an operator or a network would."""

from __future__ import annotations

from typing import Any

from fakebrokers.core.client_socket import holds_socket
from fakebrokers.core.connection import Connection
from fakebrokers.core.frames import Frame
from fakebrokers.core.listeners import Gate
from fakebrokers.core.memory import MemoryLink
from fakebrokers.core.session import HangUp
from fakebrokers.core.tcp import TcpListener
from fakebrokers.core.waiting import Waiting
from fakebrokers.errors import UsageError


class Operated(Waiting):
    """The part of a server that shows its connections, ends them, dies and comes back.

    Implements `engine.Host` and is the owner of a `gate.Gate`.
    """

    gate: Gate
    listeners: list[TcpListener]
    _links: dict[str, MemoryLink]

    @property
    def connections(self) -> list[dict[str, Any]]:
        """The connections that stand: name, peer, state, bytes, and what the session tells."""
        return self.call(
            lambda: [
                {
                    "name": c.name,
                    "peer": c.peer,
                    "received_bytes": c.received_bytes,
                    "sent_bytes": c.sent_bytes,
                    **c.session.describe(),
                }
                for c in self.engine.connections.values()
            ]
        )

    def client_holds(self, connection: str) -> bool | None:
        """Whether the client still holds its socket of a connection, even one that the broker has ended.

        Returns:
            None where that cannot be told (no Linux).
        """
        link = self._links.get(connection)
        if link is not None:
            return not link.is_closing()
        for record in self.journal.select(kind="accepted", connection=connection):
            host, _, port = record.note.rpartition(":")
            return holds_socket(host, int(port))
        raise UsageError(f"there was no connection {connection!r}")

    def say(self, connection: str, *frames: Frame) -> None:
        """Say frames on a connection that nobody asked for; no fault touches them."""

        def act() -> None:
            for frame in frames:
                self._connection(connection).inject(frame)

        self.call(act)

    def say_raw(self, connection: str, data: Any) -> None:
        """Say bytes (or whatever the wire's unit is) on a connection; no fault touches them."""
        self.call(lambda: self._connection(connection).inject(data))

    def _connection(self, name: str) -> Connection:
        if name not in self.engine.connections:
            there = ", ".join(self.engine.connections) or "none"
            raise UsageError(f"expected a connection that stands ({there}), got {name!r}")
        return self.engine.connections[name]

    def kill(self, connection: str | None = None, how: HangUp | str = HangUp.FIN) -> None:
        """End one connection (``c1``), or all of them, as an operator or a network would.

        One that has ended by itself meanwhile is left as it is.

        Raises:
            UsageError: There was never a connection of that name.
        """

        def act() -> None:
            names = list(self.engine.connections) if connection is None else [connection]
            for name in names:
                if not self.engine.has_ended(name):
                    self.engine.kill(self._connection(name), HangUp(how), self.engine.now)

        self.call(act)

    def crash(self, how: HangUp | str = HangUp.RST, *, keep_state: bool = True) -> None:
        """Die: all connections end, nothing listens until `restart`."""

        def act() -> None:
            self.down(None, "")
            self.engine.crash(HangUp(how), keep_state, self.engine.now)

        self.call(act)

    def restart(self) -> None:
        """Listen again on the same ports, whatever kept them shut."""
        if self._home is not None:
            self._home.run(self.gate.serve())

    # gate.Gate's owner

    def opened(self) -> None:
        """The listeners serve again."""
        self.journal.state(self.now, "", "listening")

    def failed(self, error: BaseException) -> None:
        """The listeners could not be opened again."""
        self.engine.errors.append(error)

    # engine.Host

    def refuse(self, for_s: float | None, fault: str) -> None:
        """Refuse new connections for a while."""
        self.gate.refuse(fault, for_s)
        self.journal.state(self.engine.now, "", "refusing", "", fault)

    def black_hole(self, for_s: float | None, fault: str) -> None:
        """Let new connects hang for a while."""
        self.gate.black_hole(fault, for_s)
        self.journal.state(self.engine.now, "", "black hole", "", fault)

    def down(self, restart_s: float | None, fault: str) -> None:
        """Refuse new connections because the broker died."""
        self.gate.refuse(fault, restart_s)

    def released(self, fault: str) -> None:
        """A fault was released by hand: undo what it did to the listeners."""
        self.gate.open(fault)
