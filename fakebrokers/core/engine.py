"""All connections of one fake, its broker, faults, journal and timers. No IO: driven from outside.

Whoever drives it (sockets on the loop thread, or memory on a virtual clock) reports what the
transports say, calls `flush` at the end of each step, and `handle_timers` at `next_deadline()`.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from fakebrokers.core.connection import Connection
from fakebrokers.core.frames import FrameTable
from fakebrokers.core.send_path import Transport
from fakebrokers.core.session import Broker, Codec, HangUp, Session
from fakebrokers.faults.injector import Injector
from fakebrokers.faults.plan import Plan
from fakebrokers.journal import Journal


class Host(Protocol):
    """What befalls the whole fake and needs its listeners."""

    def refuse(self, for_s: float | None, fault: str) -> None: ...

    def black_hole(self, for_s: float | None, fault: str) -> None: ...

    def down(self, restart_s: float | None, fault: str) -> None: ...


class Clock:
    """Wall clock that the broker reports: seconds since 1970 for a monotonic `now`."""

    def __init__(self, wall_at_zero: float) -> None:
        self.wall_at_zero = wall_at_zero
        self.shift_s = 0.0

    def wall(self, now: float) -> float:
        """Seconds since 1970 at `now`."""
        return self.wall_at_zero + self.shift_s + now


class Engine:
    """See the module's text.

    Args:
        frames: The protocol's frame table.
        broker: What all connections share.
        stream: Whether the wire is a byte stream that the fake writes itself.
    """

    def __init__(
        self,
        frames: FrameTable,
        broker: Broker,
        *,
        stream: bool = True,
        plan: Plan | None = None,
        journal: Journal | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.broker = broker
        self.clock = clock or Clock(0.0)
        self.journal = Journal(frames) if journal is None else journal
        self.injector = Injector(frames, stream=stream, plan=plan)
        self.injector.on_request = self._requested
        self.connections: dict[str, Connection] = {}
        self.accepted = 0
        self.errors: list[BaseException] = []
        self.host: Host | None = None
        self.now = 0.0
        self._dirty: list[Connection] = []
        self._timers: list[tuple[float, int, Connection]] = []
        self._timer_order = 0
        self._crash: tuple[HangUp, bool] | None = None

    # connections

    def accept(
        self, session: Session, codec: Codec, transport: Transport, now: float, peer: str = ""
    ) -> Connection:
        """A client came. Connections are named ``c1``, ``c2`` ... in the order in which they come."""
        self.now = max(self.now, now)
        self.accepted += 1
        connection = Connection(
            f"c{self.accepted}",
            peer,
            codec,
            session,
            self.injector,
            self.journal,
            transport,
            self,
        )
        self.connections[connection.name] = connection
        self._guarded(connection, connection.open, now)
        return connection

    def receive(self, connection: Connection, unit: Any, now: float) -> None:
        """A unit came."""
        self.now = now
        self._guarded(connection, connection.receive, unit, now)
        self.wake(connection)

    def lost(self, connection: Connection, now: float, how: str = "closed by client") -> None:
        """The transport is gone."""
        self.now = now
        self._guarded(connection, connection.lost, now, how)
        self._forget(connection)

    def set_writable(self, connection: Connection, writable: bool, now: float) -> None:
        """The transport's buffer is full, or has room again."""
        self.now = now
        self._guarded(connection, connection.set_writable, writable, now)

    def act(self, connection: Connection, now: float, act: Callable[..., None], *arguments: Any) -> None:
        """Let a session do something that neither a frame nor a timer set off."""
        self.now = now
        self._guarded(connection, act, *arguments)
        self.wake(connection)

    def has_ended(self, name: str) -> bool:
        """Whether there was a connection of that name, and is no more."""
        number = name.removeprefix("c")
        accepted = number.isdecimal() and 1 <= int(number) <= self.accepted
        return accepted and name not in self.connections

    def kill(self, connection: Connection, how: HangUp, now: float) -> None:
        """End a connection as an operator would, past all faults."""
        self.now = now
        connection.end_now(how, now)

    def flush(self, now: float) -> None:
        """Write what is due. A flush may make other connections dirty; all are done on return."""
        self.now = now
        self._flush_dirty(now)
        while self._crash is not None:
            self._finish_crash(now)

    def _flush_dirty(self, now: float) -> None:
        while self._dirty:
            connection = self._dirty.pop()
            self._guarded(connection, connection.flush, now)
            if connection.alive:
                self._arm(connection)
            else:
                self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        if self.connections.pop(connection.name, None) is not None:
            self.injector.forget(connection.name)

    def wake(self, connection: Connection) -> None:
        """Flush this connection at the end of the step."""
        if not connection.dirty:
            connection.dirty = True
            self._dirty.append(connection)

    def _guarded(self, connection: Connection, act: Callable[..., None], *arguments: Any) -> None:
        """An error inside the fake ends the one connection and is kept for the test."""
        try:
            act(*arguments)
        except Exception as error:
            self.keep_error(error, f"on connection {connection.name} ({connection.peer})")
            connection.end_now(HangUp.RST, self.now)

    def keep_error(self, error: BaseException, where: str) -> None:
        """Keep an error inside the fake for the test (`FakeServer.check`) and go on.

        Whatever the loop calls (a listener, a transport, the end of a step) ends here when it fails: a
        callback that raises would leave its listener deaf, for all clients.
        """
        error.add_note(f"in the fake, {where}")
        self.errors.append(error)

    # time

    def start(self, now: float) -> None:
        """The fake begins to serve."""
        self.now = now
        self.injector.started(now)

    def _arm(self, connection: Connection) -> None:
        deadline = connection.next_deadline()
        if deadline < connection.armed[-1]:
            self._timer_order += 1
            heapq.heappush(self._timers, (deadline, self._timer_order, connection))
            connection.armed.append(deadline)

    def next_deadline(self) -> float:
        """When `handle_timers` is to be called; inf if never."""
        broker = self.broker.next_deadline()
        own = self._timers[0][0] if self._timers else math.inf
        return own if broker is None else min(own, broker)

    def handle_timers(self, now: float) -> None:
        """Deal with every deadline that has passed."""
        self.now = now
        deadline = self.broker.next_deadline()
        if deadline is not None and deadline <= now:
            self.broker.handle_timer(now)
        while self._timers and self._timers[0][0] <= now:
            connection = heapq.heappop(self._timers)[2]
            connection.armed.pop()
            if connection.alive and connection.next_deadline() <= now:
                self._guarded(connection, connection.handle_timer, now)
            self.wake(connection)

    # what tests and effects ask for

    def release(self, name: str, now: float) -> None:
        """Let go what the fault `name` holds back, on all connections."""
        self.injector.find(name)
        for connection in tuple(self.connections.values()):
            connection.release(name, now)

    def crash(self, how: HangUp, keep_state: bool, now: float, spare: str = "") -> None:
        """End all connections at once; at the end of the step forget everything unless `keep_state`.

        `spare` names the connection that ends by itself, behind the frame that set the crash off.
        """
        self.now = now
        self.journal.state(now, "", "crash", "state kept" if keep_state else "state lost")
        self._crash = (how, keep_state)
        for connection in tuple(self.connections.values()):
            if connection.name != spare:
                connection.end_now(how, now)

    def _finish_crash(self, now: float) -> None:
        assert self._crash is not None
        (how, keep_state), self._crash = self._crash, None
        for connection in tuple(self.connections.values()):
            connection.end_now(how, now)
        self._flush_dirty(now)
        if keep_state:
            self.broker.restarted(now)
        else:
            self.broker.reset()

    def _requested(self, action: str, fault: str, connection: str, arguments: Mapping[str, Any]) -> None:
        if action == "shift_clock":
            self.clock.shift_s += arguments["seconds"]
            self.journal.state(self.now, "", "clock", f"{arguments['seconds']:+} s", fault)
        elif action == "crash":
            if self.host is not None:
                self.host.down(arguments["restart_s"], fault)
            self.crash(HangUp(arguments["how"]), arguments["keep_state"], self.now, connection)
        elif self.host is not None:
            getattr(self.host, action)(fault=fault, **arguments)
