"""The front door of every fake: start and stop, faults, journal, waiting, inspecting.

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
from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, TypeVar

from fakebrokers.core.driver import Driver
from fakebrokers.core.engine import Clock, Engine
from fakebrokers.core.frames import FrameTable
from fakebrokers.core.listeners import Gate
from fakebrokers.core.loop import Home, InsideLoop, loop_thread
from fakebrokers.core.memory import MemoryLink, close_door, open_door
from fakebrokers.core.operating import Operated
from fakebrokers.core.session import Broker
from fakebrokers.core.tcp import TcpListener
from fakebrokers.core.virtual import VirtualLoop
from fakebrokers.errors import UsageError
from fakebrokers.faults.control import FaultControl
from fakebrokers.faults.plan import Plan, load_plan
from fakebrokers.journal import Journal, RunJournal

#: What the broker's wall clock shows at 0 s of virtual time (2025-01-01), so that runs repeat exactly.
WALL_ON_VIRTUAL_TIME = 1_735_689_600.0

Self = TypeVar("Self", bound="FakeServer")


class FakeServer(Operated):
    """Base of the five fakes.

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
    """

    protocol: ClassVar[str]
    scheme: ClassVar[str]
    default_port: ClassVar[int]
    frames: ClassVar[FrameTable]
    stream: ClassVar[bool] = True

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
    ) -> None:
        if not _is_loopback(host):
            warnings.warn(
                f"{self.protocol}: listening on {host}: everyone who reaches this address can use the fake",
                stacklevel=3,
            )
        self.host = host
        self.profile = profile
        self._wanted_port = port
        self._memory = memory
        plan = load_plan(faults) if faults is not None else Plan()
        if seed is not None:
            plan = Plan(seed=seed, faults=plan.faults)
        self.journal = Journal(self.frames, limit=journal_limit, body_limit=body_limit)
        self._journal_dir = None if journal_dir is None else Path(journal_dir)
        self._written: RunJournal | None = None
        self.clock = Clock(time.time() - time.monotonic())
        self.broker = self.make_broker(self.clock)
        self.engine = Engine(
            self.frames,
            self.broker,
            stream=self.stream,
            plan=plan,
            journal=self.journal,
            clock=self.clock,
        )
        self.engine.host = self
        self.faults = FaultControl(self)
        self.listeners: list[TcpListener] = []
        self.gate = Gate(self)
        self._home: Home | None = None
        self._driver: Driver | None = None
        self._links: dict[str, MemoryLink] = {}
        self._doors: list[int] = []

    # what a protocol supplies

    @classmethod
    def options_from_environ(cls, environ: Mapping[str, str]) -> dict[str, Any]:
        """Keywords for what a real server takes from its environment; ``serve`` uses them."""
        return {}

    @abstractmethod
    def make_broker(self, clock: Clock) -> Broker:
        """The broker model for `self.profile`."""

    @abstractmethod
    def make_listeners(self, driver: Driver) -> list[TcpListener]:
        """The sockets to listen on; the first one's port is `port`."""

    # life

    def start(self: Self) -> Self:
        """Listen. On return clients can connect."""
        if self._home is not None:
            raise UsageError(f"this {self.protocol} fake runs already, at {self.url}")
        self._write_down()
        if self._memory:
            inside = InsideLoop(asyncio.get_running_loop())
            self._begin(inside)
            self._home = inside
            self._doors = [
                open_door(self.host, partial(self.connect_memory, door=number))
                for number in range(self.memory_doors)
            ]
            self.bound()
            return self
        home = loop_thread()
        self._begin(home)
        assert self._driver is not None
        self.listeners = self.make_listeners(self._driver)
        try:
            for listener in self.listeners:
                listener.bind()
            self._home = home
            self.bound()
            home.run(self.serve())
        except BaseException:
            home.call(self._close)
            self._home = None
            raise
        return self

    def _begin(self, home: Home) -> None:
        self._driver = Driver(self.engine, home.loop)
        self.gate.attach(home.loop)
        if isinstance(home.loop, VirtualLoop):
            self.clock.wall_at_zero = WALL_ON_VIRTUAL_TIME
        self.engine.start(home.loop.time())

    def bound(self) -> None:
        """The ports are known; nobody was accepted yet."""

    async def serve(self) -> None:
        """Accept from now on."""
        for listener in self.listeners:
            await listener.serve()

    def stop(self) -> None:
        """End all connections and give the port back. Safe to call twice."""
        if self._home is not None:
            self._home.call(self._close)
            self._home.run(self.unserve())
            self._home = None

    def _close(self) -> None:
        for port in self._doors:
            close_door(self.host, port)
        self._doors.clear()
        self.gate.close()
        for listener in self.listeners:
            listener.close()
            listener.drop_all()
        if self._driver is not None:
            self._driver.stop()
        if self._written is not None:
            self.journal.sink = None
            self._written.close()
            self.journal.failed(self._written.failure)
            self._written = None

    def _write_down(self) -> None:
        """Open the journal on disk, if one is wanted."""
        if self._journal_dir is not None:
            self._written = RunJournal(
                self._journal_dir,
                f"{self.protocol}-{time.strftime('%Y%m%dT%H%M%S')}",
                protocol=self.protocol,
                profile=self.profile,
                seed=self.engine.injector.seed,
            )
            self.journal.sink = self._written

    async def unserve(self) -> None:
        """End what `serve` began besides the listeners."""

    def check(self) -> None:
        """Raise what went wrong inside the fake, if anything did."""
        if failure := self.journal.pop_failure():
            self.engine.errors.append(failure)
        if self.engine.errors:
            errors, self.engine.errors = self.engine.errors, []
            if len(errors) == 1:
                raise errors[0]
            raise BaseExceptionGroup(f"{len(errors)} errors in the {self.protocol} fake", errors)

    def __enter__(self: Self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if error is None:
            self.check()

    async def start_async(self: Self) -> Self:
        """`start`; it takes about a millisecond."""
        return self.start()

    async def stop_async(self) -> None:
        """`stop`, for async code."""
        self.stop()

    async def __aenter__(self: Self) -> Self:
        return self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    # addresses

    @property
    def port(self) -> int:
        """The port that clients connect to."""
        if self._doors:
            return self._doors[0]
        if not self.listeners:
            raise UsageError(f"this {self.protocol} fake does not listen: start() it, or use `with`")
        return self.listeners[0].port

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

    # memory

    def connect_memory(self, client: asyncio.Protocol, door: int = 0) -> MemoryLink:
        """Join a client protocol to this fake without sockets (``memory=True``), at one of its addresses."""
        if not self._memory or self._driver is None:
            raise UsageError("connect_memory needs a fake that was made with memory=True and started")
        if self.gate.hole:
            raise TimeoutError("a connect hangs while the fake is a black hole")
        if self.gate.shut:
            raise ConnectionRefusedError("the fake lets nobody in")
        link = MemoryLink(self._driver, partial(self.welcome_door, door), client)
        self._links[link.name] = link
        return link

    @property
    def memory_doors(self) -> int:
        """How many addresses the fake has in memory."""
        return 1

    def welcome_door(self, door: int) -> Any:
        """Session and codec of a client that connects through memory to one of the addresses."""
        return self.welcome_memory()

    def welcome_memory(self) -> Any:
        """Session and codec of a client that connects through memory."""
        raise UsageError(f"{self.protocol} has no connections through memory")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
