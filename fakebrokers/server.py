"""What every fake offers to tests: start and stop, faults, journal, waiting, inspecting.

    with RabbitMQStream() as broker:
        connect_your_client(broker.url)
        broker.wait_for(role="confirm", count=3)

All methods are blocking and safe from any thread; those that wait have an async twin
(``wait_for_async`` ...), and ``async with`` works like ``with``. The work itself happens on the
process's loop thread.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from fakebrokers.core.connection import Connection, Recognise
from fakebrokers.core.driver import Driver
from fakebrokers.core.engine import Clock, Engine
from fakebrokers.core.expecting import ON_THE_WIRE, Expectation, Expectations, Unit
from fakebrokers.core.frames import Frame
from fakebrokers.core.host import Host
from fakebrokers.core.life import Turns, runs, warn_of_drop
from fakebrokers.core.listeners import Endpoint, Listener, Listeners
from fakebrokers.core.loop import InsideLoop, LoopHandle, LoopThread, loop_thread
from fakebrokers.core.memory import MemoryLink, MemoryListener
from fakebrokers.core.session import Broker, HangUp
from fakebrokers.core.tcp import TcpListener
from fakebrokers.core.virtual import VirtualLoop
from fakebrokers.core.waiting import Waiter, Wanted
from fakebrokers.core.watch import Watcher
from fakebrokers.core.wire import Wire, frames_of
from fakebrokers.errors import UnmetExpectation, UsageError
from fakebrokers.faults.control import FaultControl
from fakebrokers.faults.plan import Plan, load_plan
from fakebrokers.journal import Journal, Record, RunJournal, Tap
from fakebrokers.protocol import Protocol

if TYPE_CHECKING:
    from fakebrokers.core.tls import Tls

T = TypeVar("T")

#: What the broker's wall clock shows at 0 s of virtual time (2025-01-01), so that runs repeat exactly.
WALL_ON_VIRTUAL_TIME = 1_735_689_600.0


class FakeServer(ABC):
    """Base of all fakes.

    Args:
        host: Address to listen on; anything but loopback is warned about.
        port: TCP port; 0 takes a free one.
        profile: ``real`` (the newest server that was measured), ``seed`` (the letter of the protocol
            document), or the version of a server.
        faults: A fault plan: a `Plan`, plain values, or the path of a TOML or JSON file.
        seed: Random seed of the faults; overrides that of the plan.
        journal_limit: Records that the journal keeps.
        body_limit: Frames with message bodies above this many bytes are journalled without them.
        journal_dir: Folder in which everything is written down besides, from `start` to `stop`.
        memory: Listen on no socket at all; clients connect with `connect_memory` on the running loop.
        peers: Tells by a client's frame who the client is, such as
            ``lambda frame: getattr(frame, "properties", {}).get("connection_name")``; called until it does.
            Faults with ``peer`` and ``scope = "peer"`` then go by that name, and do the same again when
            several clients connect at once, in whatever order they come.
        exact: See the attribute; in memory it is always so.

    Attributes:
        protocol: What it speaks.
        journal: What went over the wire.
        faults: Its faults.
        broker: The model of what all connections share; look, do not touch, from other threads.
        engine: The core; for tests of the core and for reports.
        expectations: What `expect` was told and `check` has not looked at yet.
        tls: The certificates, if it listens for TLS.
        is_companion: Another fake stops it, and nobody has to (see `companions`).
        exact: Each frame has its own effect and its own answer, so that what can be counted follows from what
            clients send and not from how TCP cuts it. Otherwise this holds only while there are faults, and
            what one read brings may be answered together, as real brokers do.
        watcher: Is told what clients are handed and what they write, byte for byte, behind all faults. Set
            it before `start`.
    """

    protocol: Protocol
    tls: Tls | None = None
    is_companion: bool = False
    watcher: Watcher | None = None

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        profile: str = "real",
        faults: Plan | Mapping[str, Any] | str | Path | None = None,
        seed: int | None = None,
        journal_limit: int = 100_000,
        body_limit: int = 1024,
        journal_dir: str | Path | None = None,
        memory: bool = False,
        peers: Recognise | None = None,
        exact: bool = False,
    ) -> None:
        if not _is_loopback(host):
            warnings.warn(
                f"{self.protocol.name}: listening on {host}: whoever reaches this address can use the fake",
                stacklevel=3,
            )
        self.host = host
        self.profile = profile
        self.in_memory = memory
        self._always_exact = exact or memory
        plan = load_plan(faults, self.protocol) if faults is not None else Plan()
        if seed is not None:
            plan = Plan(seed=seed, faults=plan.faults)
        wires = self.wires
        frames = frames_of(wires)
        self.journal = Journal(frames, limit=journal_limit, body_limit=body_limit)
        self.clock = Clock(time.time() - time.monotonic())
        self.broker = self.make_broker(self.clock)
        self.engine = Engine(
            wires,
            self.broker,
            own_effects=self.protocol.own_effects,
            protocol=self.protocol.name,
            plan=plan,
            journal=self.journal,
            clock=self.clock,
        )
        self.engine.recognise = peers
        self.listeners = Listeners(self.engine)
        self.faults = FaultControl(self)
        self._wanted_port = port
        self._journal_dir = None if journal_dir is None else Path(journal_dir)
        self._written: RunJournal | None = None
        self._waiter = Waiter(self.journal, self.call, self._post)
        self.expectations = Expectations(self.journal, frames)
        self._host = Host(self.engine, self.listeners, self)
        self._turns = Turns()
        self._is_foreign = False  #: it was running when this process was forked from its own
        self._loop: LoopHandle | None = None
        self._driver: Driver | None = None

    # what a protocol supplies

    @classmethod
    def options_from_environ(cls, environ: Mapping[str, str]) -> dict[str, Any]:
        """Keywords for what a real server takes from its environment; ``serve`` uses them."""
        return {}

    @abstractmethod
    def make_broker(self, clock: Clock) -> Broker:
        """The broker model for `self.profile`."""

    def endpoints(self) -> Sequence[Endpoint]:
        """Where to listen; the first one's port is `port`. Asked at each start."""
        return ()

    @property
    def wires(self) -> Sequence[Wire]:
        """What this fake's connections speak: all that its protocol has, unless it speaks one of them."""
        return self.protocol.wires

    def new_listeners(self, driver: Driver) -> list[Listener]:
        """What listens at the endpoints: TCP sockets, or addresses in memory."""
        kind = MemoryListener if self.in_memory else TcpListener
        return [kind(driver, endpoint, self.host) for endpoint in self.endpoints()]

    def bound(self) -> None:  # noqa: B027 - optional hook
        """The ports are known; nobody was accepted yet."""

    async def serve(self) -> None:
        """Accept from now on."""
        await self.listeners.serve()

    async def unserve(self) -> None:  # noqa: B027 - optional hook
        """End what `serve` began besides the listeners."""

    def closed(self) -> None:  # noqa: B027 - optional hook
        """The listeners are gone; on the loop."""

    def started(self) -> None:  # noqa: B027 - optional hook
        """It runs. What this raises stops it again."""

    def stopping(self) -> None:  # noqa: B027 - optional hook
        """It is going to stop; it still runs."""

    def stopped(self) -> None:  # noqa: B027 - optional hook
        """It runs no more, or could not be started: give back what needs no loop."""

    # life

    def start(self) -> Self:
        """Listen. On return clients can connect."""
        with self._turns.one_at_a_time(self._loop):
            if self._loop is not None:
                raise UsageError(f"this {self.protocol.name} fake runs already, at {self.url}")
            self._start()
            try:
                self.started()
            except BaseException:
                self.stop()
                raise
        return self

    def _start(self) -> None:
        self._open_journal()
        loop = InsideLoop(asyncio.get_running_loop()) if self.in_memory else loop_thread()
        self._driver = driver = Driver(self.engine, loop.loop, self.watcher)
        if isinstance(loop.loop, VirtualLoop):
            self.clock.wall_at_zero = WALL_ON_VIRTUAL_TIME
        self.engine.start(loop.loop.time())
        self._is_foreign = False
        try:
            self.listeners.bind(self.new_listeners(driver), loop.loop)
            self._loop = loop
            self.bound()
            loop.run(self.serve())
        except BaseException:
            loop.call(self._close)
            self._loop = None
            self.stopped()
            raise
        runs(self)

    def stop(self) -> None:
        """End all connections and give the port back. Safe to call twice, and from several threads."""
        with self._turns.one_at_a_time(self._loop):
            loop = self._loop
            if loop is None:
                return
            self.stopping()
            loop.call(self._close)
            loop.run(self.unserve())
            self._loop = None
            self.stopped()

    def forked(self) -> None:
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
            if not self.is_companion:
                warn_of_drop(self, self.protocol.name)
            loop.post(self._drop)

    def _drop(self) -> None:
        """Give everything back, on the loop."""
        loop, self._loop = self._loop, None
        if loop is not None:
            self._close()
            ending = loop.loop.create_task(self.unserve())
            ending.add_done_callback(lambda _: self.stopped())

    def _close(self) -> None:
        self.listeners.close()
        self.closed()
        if self._driver is not None:
            self._driver.stop()
        if self._written is not None:
            self.journal.sink = None
            self._written.close()
            self.journal.failed(self._written.failure)
            self._written = None

    def _open_journal(self) -> None:
        """Begin to write the journal to disk, if that is wanted."""
        if self._journal_dir is not None:
            self._written = RunJournal(
                self._journal_dir,
                f"{self.protocol.name}-{time.strftime('%Y%m%dT%H%M%S')}",
                protocol=self.protocol.name,
                profile=self.profile,
                seed=self.engine.injector.seed,
            )
            self.journal.sink = self._written

    def check(self, timeout: float = 0.0) -> None:
        """Raise what went wrong inside the fake, if anything did, and what was expected and did not happen.

        Args:
            timeout: Seconds to wait for what is still missing.

        Raises:
            UnmetExpectation: See `expect`; each expectation is checked once.
        """
        if timeout:
            self.expectations.wait(self._waiter, timeout)
        if failure := self.journal.pop_failure():
            self.engine.errors.append(failure)
        if problems := self.expectations.problems():
            self.engine.errors.append(UnmetExpectation("\n".join(problems)))
        self.expectations.clear()
        if self.engine.errors:
            errors, self.engine.errors = self.engine.errors, []
            if len(errors) == 1:
                raise errors[0]
            raise BaseExceptionGroup(f"{len(errors)} errors in the {self.protocol.name} fake", errors)

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

    @property
    def exact(self) -> bool:
        """See the class."""
        return self._always_exact or bool(self.engine.injector.rules)

    # on the fake's own thread

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

    # addresses

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
        """What clients are told to connect to: ``host:port``, or addresses by role."""
        return f"{self.host}:{self.port}"

    @property
    def urls(self) -> dict[str, str]:
        """Further addresses by name (TLS, management ...)."""
        return {}

    def connect_memory(self, client: asyncio.Protocol, endpoint: int = 0) -> MemoryLink:
        """Join a client protocol to this fake without sockets (``memory=True``), at one of its endpoints."""
        listener = self.listeners[endpoint] if self.in_memory and self._loop is not None else None
        if not isinstance(listener, MemoryListener):
            raise UsageError("connect_memory needs a fake that was made with memory=True and started")
        return listener.connect(client)

    @property
    def companions(self) -> Mapping[str, FakeServer]:
        """Other servers that stop with this one and have faults and a journal of their own, by attribute."""
        return {}

    # waiting

    def wait_for(
        self,
        condition: Callable[[Record], bool] | None = None,
        *,
        kind: str | None = None,
        role: str | None = None,
        tap: Tap | None = None,
        connection: str | None = None,
        count: int = 1,
        since: int = 0,
        timeout: float = 5.0,
    ) -> list[Record]:
        """Wait until the journal holds `count` records that fit; returns them.

        Args:
            condition: Asked for each record.
            kind, role, tap, connection: As in `Journal.select`.
            since: Only records with a higher `seq`.
            timeout: Seconds; then `WaitTimeout` with the last journal lines.
        """
        if isinstance(self._loop, InsideLoop):
            raise UsageError("wait_for would block the loop that this fake runs on: await wait_for_async")
        wanted = Wanted(condition, kind, role, tap, connection, count, since)
        return self._waiter.wait(wanted, timeout)

    async def wait_for_async(
        self,
        condition: Callable[[Record], bool] | None = None,
        *,
        kind: str | None = None,
        role: str | None = None,
        tap: Tap | None = None,
        connection: str | None = None,
        count: int = 1,
        since: int = 0,
        timeout: float = 5.0,
    ) -> list[Record]:
        """`wait_for`, for async code."""
        wanted = Wanted(condition, kind, role, tap, connection, count, since)
        return await self._waiter.wait_async(wanted, timeout)

    def expect(
        self,
        condition: Callable[[Record], bool] | None = None,
        *,
        kind: str | None = None,
        role: str | None = None,
        tap: Tap = ON_THE_WIRE,
        connection: str | None = None,
        count: int | None = None,
        at_least: int | None = None,
        at_most: int | None = None,
        unit: Unit = "frame",
        since: int = 0,
    ) -> Expectation:
        """Expect what the journal will hold when `check` is called: ``expect(role="publish", count=3)``.

        `check` is called at the end of a ``with`` block, and of each test that has a fixture.

        Args:
            condition, kind, role, connection, since: As in `wait_for`.
            tap: Where it has to be seen; left out: where it goes over the wire, behind all faults.
            count: How many, exactly; 0 for none.
            at_least, at_most: How many, instead; without any number at least one.
            unit: Whether frames are counted, or the single messages (``item``) of batches.

        Raises:
            UsageError: The numbers contradict each other, or nothing is called that here.
        """
        wanted = Wanted(condition, kind, role, tap, connection, 1, since)
        return self.expectations.add(wanted, count, at_least, at_most, unit)

    def journal_excerpt(self, lines: int = 20) -> str:
        """The last journal lines as text."""
        return self.journal.excerpt(lines)

    # looking and acting, as an operator or a network would

    @property
    def connections(self) -> list[dict[str, Any]]:
        """The connections that stand: name, address, peer, bytes, and what the session tells."""
        return self.call(lambda: [each.describe() for each in self.engine.connections.values()])

    def client_holds(self, connection: str) -> bool | None:
        """Whether the client still holds its socket of a connection, even one that the broker has ended.

        Returns:
            None where that cannot be told (no Linux; a library owns the sockets).

        Raises:
            UsageError: There was never a connection of that name.
        """
        for record in self.journal.select(kind="accepted", connection=connection):
            return self.listeners.client_holds(connection, record.note)
        raise UsageError(f"there was no connection {connection!r}")

    def say(self, connection: str, *frames: Frame) -> None:
        """Say frames on a connection that nobody asked for; no fault touches them."""

        def act() -> None:
            for frame in frames:
                self.connection(connection).inject(frame)

        self.call(act)

    def say_raw(self, connection: str, data: Any) -> None:
        """Say bytes (or whatever the wire's unit is) on a connection; no fault touches them."""
        self.call(lambda: self.connection(connection).inject(data))

    def connection(self, name: str) -> Connection:
        """A connection that stands, for code on the fake's own thread.

        Raises:
            UsageError: There is none of that name; with those there are.
        """
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
                    self.engine.kill(self.connection(name), HangUp(how), self.engine.now)

        self.call(act)

    def refuse(self, for_s: float | None = None) -> None:
        """Refuse new connections for `for_s` seconds, or until `restart`; those that stand go on."""
        self.call(self._host.refuse, for_s, "")

    def black_hole(self, for_s: float | None = None) -> None:
        """Let new connects hang for `for_s` seconds, or until `restart`; those that stand go on."""
        self.call(self._host.black_hole, for_s, "")

    def crash(self, how: HangUp | str = HangUp.RST, *, keep_state: bool = True) -> None:
        """Die: all connections end, nothing listens until `restart`."""

        def act() -> None:
            self._host.close_listeners(None, "")
            self.engine.crash(HangUp(how), keep_state, self.engine.now)

        self.call(act)

    def restart(self) -> None:
        """Listen again on the same ports, whatever kept them shut."""
        if self._loop is not None:
            self._loop.run(self.listeners.reopen())

    def reset(self) -> None:
        """As right after the start, on the same ports: no connections, no faults, nothing stored or
        expected, no
        journal.

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

    def released(self, fault: str) -> None:
        """A fault was released by hand: undo what it did to the listeners."""
        self._host.release(fault)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
