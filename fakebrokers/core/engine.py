"""All connections of one fake, its broker, faults, journal and timers. No IO: driven from outside.

Whoever drives it (sockets on the loop thread, or memory on a virtual clock) reports what the
transports say, calls `flush` at the end of each step, and `handle_timers` at `next_deadline()`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from fakebrokers.core.action import Action
from fakebrokers.core.connection import Connection
from fakebrokers.core.receive_path import Recognise
from fakebrokers.core.send_path import Transport
from fakebrokers.core.session import Broker, Codec, HangUp, Session
from fakebrokers.core.timers import Timer
from fakebrokers.core.wire import Wire
from fakebrokers.faults.injector import Injector
from fakebrokers.faults.rule import Rule
from fakebrokers.journal import Journal


class Clock:
    """Wall clock that the broker reports: seconds since 1970 for a monotonic `now`."""

    def __init__(self, wall_at_zero: float) -> None:
        self.wall_at_zero = wall_at_zero
        self.shift_s = 0.0

    def wall(self, now: float) -> float:
        """Seconds since 1970 at `now`."""
        return self.wall_at_zero + self.shift_s + now


class ClockOfTests(Clock):
    """What `time.time` says at the moment: a test may have frozen it, or travel in it."""

    def wall(self, now: float) -> float:
        return time.time() + self.shift_s


class Whole(Protocol):
    """The fake around an engine, see `host.Host`."""

    def perform(self, action: Action, fault: str, connection: str) -> None:
        """Do what a fault wants at that connection; "" for none."""

    def release(self, fault: str) -> None:
        """Undo what a fault did to the listeners."""


class Engine:
    """See the module's text.

    Args:
        broker: What all connections share.
        injector: The faults.
        journal: Where everything is written down.
        clock: What the broker says when asked for the time; None: one that begins at 0.

    Attributes:
        errors: What went wrong inside the fake; a test gets it from `FakeServer.check`.
        host: The fake as a whole; None for an engine that nobody can connect to by itself.
        recognise: Tells who a client is where the protocol does not; for connections from now on.
    """

    def __init__(
        self,
        broker: Broker,
        injector: Injector,
        journal: Journal,
        clock: Clock | None = None,
    ) -> None:
        self.broker = broker
        self.timers = broker.timers
        self.clock = clock or Clock(0.0)
        self.journal = journal
        self.injector = injector
        self.connections: dict[str, Connection] = {}
        self.accepted = 0
        self.dialled = 0
        self.errors: list[BaseException] = []
        self.host: Whole | None = None
        self.recognise: Recognise | None = None
        self.now = 0.0
        self._dirty: list[Connection] = []
        self._crash: tuple[HangUp, bool] | None = None
        self._undo: dict[str, list[Callable[[], object]]] = {}

    # connections

    def accept(
        self,
        wire: Wire,
        session: Session,
        codec: Codec,
        transport: Transport,
        now: float,
        address: str = "",
        *,
        dialled: bool = False,
    ) -> Connection:
        """A connection stands: a client came, or the fake has dialled out itself.

        Connections are named ``c1``, ``c2`` ... in the order in which clients come, and ``d1``, ``d2`` ... in
        the order in which the fake gets through.
        """
        self.now = max(self.now, now)
        if dialled:
            self.dialled += 1
        else:
            self.accepted += 1
        connection = Connection(
            f"d{self.dialled}" if dialled else f"c{self.accepted}",
            address,
            wire,
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
        try:
            connection.receive(unit, now)
        except Exception as error:
            self._fail(connection, error)
        if not connection.dirty:
            self.wake(connection)

    def lost(self, connection: Connection, now: float, how: str = "closed by client") -> None:
        """The transport is gone."""
        self.now = now
        self._guarded(connection, connection.lost, now, how)
        if not connection.alive:
            self._forget(connection)

    def input_ended(self, connection: Connection, now: float) -> bool:
        """The client sends nothing more; whether the connection goes on in the other direction."""
        if not connection.session.half_closes:
            return False
        self.now = now
        self._guarded(connection, connection.input_ended, now)
        return True

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
        made = {"c": self.accepted, "d": self.dialled}.get(name[:1], 0)
        there_was = name[1:].isdecimal() and 1 <= int(name[1:]) <= made
        return there_was and name not in self.connections

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
        self.broker.step_ended(now)
        while self._dirty:
            connection = self._dirty.pop()
            try:
                connection.flush(now)
            except Exception as error:
                self._fail(connection, error)
            if not connection.alive:
                self._forget(connection)
            self.broker.step_ended(now)  # the flush may have read on

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
            self._fail(connection, error)

    def _fail(self, connection: Connection, error: Exception) -> None:
        self.keep_error(error, f"on connection {connection.name} ({connection.address})")
        connection.end_now(HangUp.RST, self.now)

    def keep_error(self, error: BaseException, where: str) -> None:
        """Keep an error inside the fake for the test (`FakeServer.check`) and go on.

        Whatever the loop calls (a listener, a transport, the end of a step) ends here when it fails: a
        callback that raises would leave its listener without ever reading again, for all clients.
        """
        error.add_note(f"in the fake, {where}")
        self.errors.append(error)

    # time

    def start(self, now: float) -> None:
        """The fake begins to serve."""
        self.now = now
        self.injector.started(now)

    def next_deadline(self) -> float:
        """When `handle_timers` is to be called; inf if never."""
        return self.timers.next_due

    def handle_timers(self, now: float) -> None:
        """Deal with every deadline that has passed."""
        self.now = now
        mark = self.timers.mark
        while (timer := self.timers.pop(now, mark)) is not None:
            self._fire(timer, now)

    def _fire(self, timer: Timer, now: float) -> None:
        act, connection = timer.act, timer.owner
        assert act is not None
        if connection is not None:
            self._guarded(connection, act, now)
            self.wake(connection)
            return
        try:
            act(now)
        except Exception as error:
            self.keep_error(error, "at one of the broker's timers")

    # what tests and effects ask for

    def release(self, name: str, now: float) -> None:
        """Let go what the fault `name` holds back, everywhere; undo what it did."""
        self.injector.find(name)
        for connection in tuple(self.connections.values()):
            connection.release(name, now)
        if self.host is not None:
            self.host.release(name)
        for undo in self._undo.pop(name, ()):
            undo()

    def until_over(self, fault: str, undo: Callable[[], object]) -> None:
        """Undo something when a fault that has an end is over, or released before."""
        if any(rule.name == fault and rule.fault.match.until_s is not None for rule in self.injector.rules):
            self._undo.setdefault(fault, []).append(undo)

    def begin(self, rule: Rule, now: float) -> None:
        """Let a fault whose time has come act at the connections that are open."""
        for connection in tuple(self.connections.values()):
            self._guarded(connection, connection.fired, connection.pipe.begin(rule, now), now)
            self.wake(connection)

    def perform(self, action: Action, fault: str, connection: str) -> None:
        """Do what an effect at `connection` wants of the fake as a whole."""
        if self.host is not None:
            self.host.perform(action, fault, connection)

    def shift_clock(self, seconds: float, fault: str) -> None:
        """The wall clock jumps."""
        self.clock.shift_s += seconds
        self.journal.state(self.now, "", "clock", f"{seconds:+} s", fault)

    def crash(self, how: HangUp, keep_state: bool, now: float, ends_itself: str = "") -> None:
        """End all connections at once; at the end of the step forget everything unless `keep_state`.

        `ends_itself` names the connection that ends after the frame that set the crash off.
        """
        self.now = now
        self.journal.state(now, "", "crash", "state kept" if keep_state else "state lost")
        self._crash = (how, keep_state)
        for connection in tuple(self.connections.values()):
            if connection.name != ends_itself:
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
