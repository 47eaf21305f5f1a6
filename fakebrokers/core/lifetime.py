"""How a fake starts, stops, and ends where nobody stops it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self
from weakref import ref

from fakebrokers.core.awaiting import Awaiting
from fakebrokers.core.clock import wall
from fakebrokers.core.driver import Driver
from fakebrokers.core.home import Home
from fakebrokers.core.life import Turns, runs, warn_of_drop
from fakebrokers.core.listeners import Endpoint, Listener
from fakebrokers.core.loop import InsideLoop, LoopHandle, LoopThread, loop_thread
from fakebrokers.core.memory import MemoryListener
from fakebrokers.core.tcp import TcpListener
from fakebrokers.core.virtual import VirtualTime
from fakebrokers.core.watch import Watcher
from fakebrokers.description import found
from fakebrokers.errors import UsageError
from fakebrokers.journal import RunJournal

#: What the broker's wall clock shows at 0 s of virtual time (2025-01-01), so that runs repeat exactly.
WALL_ON_VIRTUAL_TIME = 1_735_689_600.0


class Lifetime(Awaiting):
    """Start and stop; a context manager, for `with` and for `async with`."""

    profile: str
    _is_companion: bool = False  #: another fake stops it, and nobody has to (see `FakeServer._companions`)
    #: Gets what clients are handed and what they write, byte for byte, after all faults; set before `start`.
    _watcher: Watcher | None = None
    _home: Home | None = None  #: the simulated hosts that it runs on, set before `start`; goes with `memory`
    _journal_dir: Path | None
    _journal_frames: bool
    _written: RunJournal | None
    _turns: Turns
    _is_over: bool = False  #: what the broker holds is given back

    # what a protocol supplies

    def _endpoints(self) -> Sequence[Endpoint]:
        """Where to listen; the first one's port is `port`. Asked at each start."""
        return ()

    def _new_listeners(self, driver: Driver) -> list[Listener]:
        """What listens at the endpoints: TCP sockets, simulated ones, or addresses in memory."""
        return [self._new_listener(driver, endpoint) for endpoint in self._endpoints()]

    def _new_listener(self, driver: Driver, endpoint: Endpoint) -> Listener:
        if self._home is not None:
            return self._home.listener(driver, endpoint)
        kind = MemoryListener if self.in_memory else TcpListener
        return kind(driver, endpoint, self.host)

    @property
    def _has_streams(self) -> bool:
        """Whether bytes flow between it and its clients, so that it can speak TLS and dial nodes."""
        return self._home is not None or not self.in_memory

    def _host_of(self, node: int) -> str:
        """The host on which a node of a cluster listens, by number from 0."""
        return self.host if self._home is None else self._home.host_of(node)

    def _bound(self) -> None:
        """The ports are known; nobody was accepted yet."""

    async def _serve(self) -> None:
        """Accept from now on."""
        await self.listeners.serve()

    async def _unserve(self) -> None:
        """End what `serve` began besides the listeners."""

    def _closed(self) -> None:
        """The listeners are gone; on the loop."""

    def _started(self) -> None:
        """It runs. What this raises stops it again."""

    def _stopping(self) -> None:
        """It is going to stop; it still runs."""

    def _stopped(self) -> None:
        """It runs no more, or could not be started: give back what needs no loop."""

    # life

    def start(self) -> Self:
        """Listen. On return clients can connect."""
        with self._turns.one_at_a_time(self._loop):
            if self._loop is not None:
                raise UsageError(f"this {self.protocol.name} fake runs already, at {self.url}")
            self._start()
            try:
                self._started()
            except BaseException:
                self.stop()
                raise
        return self

    def _start(self) -> None:
        loop = self._find_loop()
        try:
            self._open_journal()
            self._driver = driver = Driver(self.engine, loop.loop, self._watcher)
            if isinstance(loop.loop, VirtualTime):
                self.clock.wall_at_zero = WALL_ON_VIRTUAL_TIME
            self.engine.start(loop.loop.time())
            self._is_foreign = self._is_over = False
            self.listeners.bind(self._new_listeners(driver), loop.loop)
            self._loop = loop
            self._bound()
            loop.run(self._serve_from_now(self._serve(), driver))
        except BaseException:
            loop.call(self._close)
            self._loop = None
            self._stopped()
            raise
        runs(self)

    async def _serve_from_now(self, serve: Awaitable[None], driver: Driver) -> None:
        """Serve; faults that have a time of their own count it from here."""
        await serve
        assert self.engine.injector.timetable is not None
        self.engine.injector.timetable.start(driver.loop.time())
        driver.finish_step()

    def _find_loop(self) -> LoopHandle:
        if self._home is not None:
            return self._home.loop
        return InsideLoop(asyncio.get_running_loop()) if self.in_memory else loop_thread()

    def stop(self) -> None:
        """End all connections and give the port back. Safe to call twice, and from several threads."""
        with self._turns.one_at_a_time(self._loop):
            loop = self._loop
            if loop is None:
                return
            self._stopping()
            loop.call(self._close)
            loop.run(self._unserve())
            self._loop = None
            self._stopped()

    def _forked(self) -> None:
        """This is a child process: the fake goes on in its parent, which keeps all that it has."""
        self._loop = self._driver = self._written = None
        self._is_foreign = True
        self._turns.forked()
        self.engine.connections.clear()
        self.engine.errors.clear()
        self.expectations.clear()
        self.journal.abandon_sink()

    def __del__(self) -> None:
        loop = getattr(self, "_loop", None)
        if isinstance(loop, LoopThread):
            if not self._is_companion:
                warn_of_drop(self, self.protocol.name)
            loop.post(self._drop)

    def _drop(self) -> None:
        """Give everything back, on the loop."""
        loop, self._loop = self._loop, None
        if loop is not None:
            self._close()
            ending = loop.loop.create_task(self._unserve())
            ending.add_done_callback(lambda _: self._stopped())

    def _close(self) -> None:
        self.listeners.close()
        self._is_over = True
        self._closed()
        if self._driver is not None:
            self._driver.stop()
        if self._written is not None:
            self.journal.sink = None
            self._written.close()
            self.journal.failed(self._written.failure)
            self._written = None

    def _record_holdings(self) -> None:
        """Let the journal take down what the broker holds, if that is written down for the protocol."""
        place, there = self.protocol.model, ref(self)
        if place and self.protocol.wires[0].brokered:
            held = found(place).held_now

            def ask() -> Mapping[str, str] | None:
                server = there()
                return None if server is None or server._is_over else held(server)

            self.journal.record_holdings(ask)

    def _open_journal(self) -> None:
        """Begin to write the journal to disk, if that is wanted."""
        if self._journal_dir is not None:
            self._written = RunJournal(
                self._journal_dir,
                f"{self.protocol.name}-{time.strftime('%Y%m%dT%H%M%S', time.localtime(wall()))}",
                frames=self._journal_frames,
                body_limit=None,
                protocol=self.protocol.name,
                profile=self.profile,
                seed=self.engine.injector.seed,
            )
            self.journal.sink = self._written
            if self._journal_frames:
                self._record_holdings()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if error is None:
            self.check()

    async def start_async(self) -> Self:
        """`start`; it takes about a millisecond."""
        return self.start()

    async def stop_async(self) -> None:
        """`stop`, for async code."""
        self.stop()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)
