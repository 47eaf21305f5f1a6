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
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from fakebrokers.core.acting import Acting
from fakebrokers.core.clock import monotonic, wall
from fakebrokers.core.driver import Driver
from fakebrokers.core.engine import Clock, ClockOfTests, Engine
from fakebrokers.core.expecting import Expectations
from fakebrokers.core.host import Host
from fakebrokers.core.life import Turns
from fakebrokers.core.lifetime import WALL_ON_VIRTUAL_TIME, Lifetime
from fakebrokers.core.listeners import Listeners
from fakebrokers.core.loop import LoopHandle
from fakebrokers.core.memory import MemoryLink, MemoryListener
from fakebrokers.core.receive_path import Recognise
from fakebrokers.core.session import Broker
from fakebrokers.core.waiting import Waiter
from fakebrokers.core.wire import Wire, frames_of
from fakebrokers.description import Description
from fakebrokers.errors import UsageError
from fakebrokers.faults.control import FaultControl
from fakebrokers.faults.injector import Injector
from fakebrokers.faults.plan import Plan, PlanSource, load_plan
from fakebrokers.journal import Journal, RunJournal
from fakebrokers.options import Count, Port, ServerType
from fakebrokers.renamed import HOOKS, keep_old_names, take_old_names

if TYPE_CHECKING:
    from fakebrokers.core.tls import Tls

__all__ = ["WALL_ON_VIRTUAL_TIME", "FakeServer"]


class FakeServer(Lifetime, Acting, metaclass=ServerType):
    """Base of all fakes.

    Args:
        host: Address to listen on; anything but loopback is warned about.
        port: TCP port; 0 takes a free one.
        profile: ``real`` (the newest server that was measured), ``seed`` (the letter of the protocol
            document), or the version of a server.
        faults: A fault plan: a `Plan`, a list of faults, plain values, or the path of a TOML or JSON file.
        seed: Random seed of the faults; overrides that of the plan.
        journal_limit: Records that the journal keeps.
        body_limit: Frames with message bodies above this many bytes are journalled without them.
        journal_dir: Folder in which everything is written down besides, from `start` to `stop`.
        journal_frames: Write down all fields of each frame there, message bodies too: `fakebrokers journal`
            makes bytes of them again. Credentials are blotted out.
        memory: Listen on no socket at all; clients connect with `connect_memory` on the running loop.
        peers: Finds by a client's frame who the client is, such as
            ``lambda frame: getattr(frame, "properties", {}).get("connection_name")``; called until it does.
            Faults with ``peer`` and ``scope = "peer"`` then go by that name, and do the same again when
            several clients connect at once, in whatever order they come.
        exact: See the attribute; in memory it is always so.
        wall_clock: What the broker says when asked for the date and time: ``real``, or that of the ``test``,
            which may have frozen it. Timers and the journal have a clock of their own.

    Attributes:
        protocol: What it speaks.
        journal: What went over the wire.
        faults: Its faults.
        broker: The model of what all connections share; look, do not touch, from other threads.
        engine: The core; for tests of the core and for reports.
        expectations: What `expect` was given and `check` has not looked at yet.
        tls: The certificates, if it listens for TLS.
        exact: Each frame has its own effect and its own answer, so that what can be counted follows from what
            clients send and not from how TCP cuts it. Otherwise this holds only while there are faults, and
            what one read brings may be answered together, as real brokers do.
    """

    protocol: Description
    tls: Tls | None = None
    _old_keywords: ClassVar[Mapping[str, tuple[str, float]]] = {}  #: see `ServerType`

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        take_old_names(cls, HOOKS)

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: Port = 0,
        profile: str = "real",
        faults: PlanSource | None = None,
        seed: int | None = None,
        journal_limit: Count = 100_000,
        body_limit: Count = 1024,
        journal_dir: str | Path | None = None,
        journal_frames: bool = False,
        memory: bool = False,
        peers: Recognise | None = None,
        exact: bool = False,
        wall_clock: Literal["real", "test"] = "real",
    ) -> None:
        if not (memory or _is_loopback(host)):
            warnings.warn(
                f"{self.protocol.name}: listening on {host}: all who reach this address can use the fake",
                stacklevel=4,
            )
        self.host = host
        self.profile = profile
        self.in_memory = memory
        self._always_exact = exact or memory
        plan = load_plan(faults, self.protocol) if faults is not None else Plan()
        if seed is not None:
            plan = Plan(seed=seed, faults=plan.faults)
        wires = self._wires
        frames = frames_of(wires)
        self.journal = Journal(frames, limit=journal_limit, body_limit=body_limit)
        self.clock = Clock(wall() - monotonic()) if wall_clock == "real" else ClockOfTests(0.0)
        self.broker = self._make_broker(self.clock)
        injector = Injector(wires, own=self.protocol.own_effects, protocol=self.protocol.name, plan=plan)
        self.engine = Engine(self.broker, injector, self.journal, self.clock)
        self.engine.recognise = peers
        self.listeners = Listeners(self.engine)
        self.faults = FaultControl(self)
        self._wanted_port = port
        self._journal_dir = None if journal_dir is None else Path(journal_dir)
        self._journal_frames = journal_frames
        self._written: RunJournal | None = None
        self._waiter = Waiter(self.journal, self.call, self._post)
        self.expectations = Expectations(self.journal, frames)
        self._host = Host(self.engine, self.listeners, self)
        self._turns = Turns()
        self._is_foreign = False  #: it was running when this process was forked from its own
        self._loop: LoopHandle | None = None
        self._driver: Driver | None = None

    def __repr__(self) -> str:
        """Read from any thread, also by a debugger while the fake is stuck: it asks the loop for nothing."""
        name = type(self).__name__
        if not hasattr(self, "_loop"):
            return f"<{name}, not made>"
        state = f" at {self.url}" if self.runs else ", not running"
        counts = {"connection": len(self.engine.connections), "record": len(self.journal), **self._contents}
        if faults := len(self.engine.injector.rules):
            counts["fault"] = faults
        listed = ", ".join(f"{n} {what}{'' if n == 1 else 's'}" for what, n in counts.items())
        return f"<{name}{state}: {listed}>"

    # what a protocol supplies

    @property
    def _contents(self) -> Mapping[str, int]:
        """What is stored, for `repr`: how many, by the word for one."""
        return {}

    @classmethod
    def _options_from_environ(cls, environ: Mapping[str, str]) -> dict[str, Any]:
        """Keywords for what a real server takes from its environment; ``serve`` uses them."""
        return {}

    @abstractmethod
    def _make_broker(self, clock: Clock) -> Broker:
        """The broker model for `self.profile`."""

    @property
    def _wires(self) -> Sequence[Wire]:
        """What this fake's connections speak: all that its protocol has, unless it speaks one of them."""
        return self.protocol.wires

    @property
    def exact(self) -> bool:
        """See the class."""
        return self._always_exact or bool(self.engine.injector.at_work)

    # addresses

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
    def _companions(self) -> Mapping[str, FakeServer]:
        """Other servers that stop with this one and have faults and a journal of their own, by attribute."""
        return {}


keep_old_names(FakeServer, HOOKS)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
