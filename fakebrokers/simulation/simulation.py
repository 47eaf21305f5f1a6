"""A whole system in one process, on virtual time, from one seed.

with Simulation(seed=7) as simulation:
    broker = simulation.rabbitmq_stream(nodes=3)
    app = simulation.start(shop.main, broker.url)

    async def outage():
        await asyncio.sleep(600)
        broker.crash()
        await asyncio.sleep(60)
        broker.restart()
        return await app.wait()

    simulation.run(outage())
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Coroutine, Sequence
from contextlib import nullcontext
from contextvars import copy_context
from functools import partial
from itertools import product
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from fakebrokers.errors import UsageError, instead_of
from fakebrokers.protocol import folder_name, protocol_names
from fakebrokers.simulation.applications import Application
from fakebrokers.simulation.chance import Chance
from fakebrokers.simulation.homes import housed, nodes_from
from fakebrokers.simulation.hosts import PROCESS, Host
from fakebrokers.simulation.loop import SimulationLoop
from fakebrokers.simulation.tasks import in_order
from fakebrokers.simulation.turns import LONGEST_S

if TYPE_CHECKING:
    from fakebrokers.server import FakeServer

T = TypeVar("T")

#: Virtual seconds that tasks have for ending when they are cancelled, as long as they are connected.
LAST_WORDS_S = 60.0


class Simulation:
    """Virtual time, a network, and everything on it.

    Each protocol has a method that is called like its fixture (``simulation.rabbitmq_stream(nodes=3)``) and
    takes the keywords of its server class; what it gives is reached by ``url`` from inside.

    Args:
        seed: What is drawn depends on nothing else; also the seed of the brokers' faults.
        shuffle: Draw the order of tasks that are ready at the same time.
        patch: Let `time`, `datetime.now`, `random`, `uuid4` and `secrets` follow the simulation, for the code
            that runs in it.
        longest_s: Virtual seconds that everything may take together; more is an error.

    Attributes:
        loop: The event loop.
        network: Hosts, and what is between them.
        brokers: All that were made, by the name of their host.
        applications: All that were started.
    """

    def __init__(
        self, seed: int = 0, *, shuffle: bool = False, patch: bool = False, longest_s: float = LONGEST_S
    ) -> None:
        self.seed = seed
        self._chance = Chance(seed) if patch else None
        self.loop = SimulationLoop(random.Random(f"{seed} order") if shuffle else None, longest_s)
        self.network = self.loop.network
        self.brokers: dict[str, FakeServer] = {}
        self.applications: list[Application[Any]] = []
        self._places: list[tuple[object, list[Host]]] = []  #: brokers and their nodes, and where they are
        self._outages: asyncio.Future[None] | None = None  #: ends when drawn faults are over
        #: Called with the name and the fake when a broker has started.
        self.started: Callable[[str, FakeServer], None] = lambda name, broker: None

    def __repr__(self) -> str:
        return f"<Simulation, seed {self.seed}, at {self.loop.time():g} s>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if error is None:
            self.check()

    # running

    @property
    def now(self) -> float:
        """Virtual seconds since it began."""
        return self.loop.time()

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, and everything else meanwhile; it runs on the host ``test``."""
        context = copy_context()
        context.run(PROCESS.set, self.network.outside)
        try:
            return self._run(self.loop.create_task(main, name="test", context=context))
        except BaseException as error:
            for refusal in self.loop.refusals:
                if refusal is not error:
                    error.add_note(str(refusal))
            raise

    def _run(self, task: asyncio.Task[T]) -> T:
        with self._chance.follows() if self._chance is not None else nullcontext():
            return self.loop.run_until_complete(task)

    def close(self) -> None:
        """Cancel what still runs, and stop the brokers. Safe to call twice."""
        if self.loop.is_closed():
            return
        try:
            self.loop.longest_s = math.inf
            context = self.network.outside.context.copy()
            self._run(self.loop.create_task(self._end_all(), context=context))
        finally:
            for broker in self.brokers.values():
                broker.stop()
            self.loop.close()
            for application in self.applications:
                application.bury()

    async def _end_all(self) -> None:
        """Cancel all tasks, then cut what is still connected; what goes on all the same is left as it is."""
        this = asyncio.current_task()
        tasks = [each for each in in_order(asyncio.all_tasks()) if each.process.alive and each is not this]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=LAST_WORDS_S)
        for transport in tuple(self.loop.transports):
            transport.abort()
        await asyncio.sleep(1)
        await self.loop.shutdown_asyncgens()
        for task in tasks:
            task.forget()

    def check(self) -> None:
        """Raise what went wrong and no call has raised: in applications, in brokers, and refused calls."""
        errors: list[BaseException] = list(self.loop.refusals)
        self.loop.refusals = []
        failures = [each.failure for each in self.applications]
        errors += [each for each in failures if each is not None and each not in errors]
        for broker in self.brokers.values():
            try:
                broker.check()
            except Exception as error:
                errors.append(error)
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise BaseExceptionGroup(f"{len(errors)} errors in the simulation", errors)

    # who takes part

    def start(
        self, main: Callable[..., Coroutine[Any, Any, T]], *arguments: Any, **options: Any
    ) -> Application[T]:
        """Start an application: an async function, on a host of its own that is called like it."""
        name = getattr(main, "__name__", type(main).__name__).strip("_<>").replace("_", "-")
        return self._start(self.network.new_host(name), main, arguments, options)

    def start_on(
        self, host: str, main: Callable[..., Coroutine[Any, Any, T]], *arguments: Any, **options: Any
    ) -> Application[T]:
        """Start an application on the host of that name, which may be there already."""
        return self._start(self.network.host(host), main, arguments, options)

    def _start(
        self,
        host: Host,
        main: Callable[..., Coroutine[Any, Any, T]],
        arguments: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Application[T]:
        application = Application(self.loop, host, partial(main, *arguments, **options))
        self.applications.append(application)
        return application

    def broker(self, protocol: str, *, host: str | Sequence[str] | None = None, **options: Any) -> FakeServer:
        """Start a fake broker; keywords as for its server class.

        Args:
            host: The name of its host; of a cluster that of each node's, or that of the first one's: the
                others are called like it, with ``-node2``, ``-node3`` ... at the end.
        """
        if protocol == "pzq":
            raise UsageError(
                "PZQ's clients use libzmq, which has threads and sockets of its own: it cannot be "
                "simulated; use the fixture pzq"
            )
        homes = self._homes(host, protocol, options.get("nodes", 1))
        for each in self.brokers:
            if any(each == home.name for home in homes):
                raise UsageError(f"there is a broker on the host {each!r} already")
        name = homes[0].name
        options.setdefault("seed", self.seed)
        server: Any = housed(self.loop, protocol, homes, **options)
        server.start()
        self.brokers[name] = server
        self._places.append((server, homes))
        if hasattr(server, "stop_node"):
            self._places += [(node, [home]) for node, home in zip(server.nodes, homes, strict=True)]
        self.started(name, server)
        started: FakeServer = server
        return started

    def _homes(self, host: str | Sequence[str] | None, protocol: str, nodes: int) -> list[Host]:
        """The hosts of a broker's nodes."""
        if host is not None and not isinstance(host, str):
            if len(host) != nodes:
                raise UsageError(f"expected a host for each of {nodes} nodes, got {list(host)}")
            return [self.network.host(each) for each in host]
        first = self.network.new_host(protocol) if host is None else self.network.host(host)
        return nodes_from(first, nodes, self.network.host)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        by_method = {folder_name(each): each for each in protocol_names()}
        if name not in by_method:
            raise AttributeError(f"a simulation has no {name!r}{instead_of(name, by_method)}")
        return partial(self.broker, by_method[name])

    async def healed(self) -> None:
        """Wait until the faults that `fakebrokers simulate` has drawn are over; at once without any."""
        if self._outages is not None:
            await asyncio.wait([self._outages])

    # the network

    def latency(self, one: Any, other: Any, seconds: float) -> None:
        """From now on everything between these two takes so long, one way.

        Args:
            one, other: A broker with all its nodes, one of ``broker.nodes``, an application, or the name of a
                host; the test itself is on ``test``.
        """
        for a, b in self._pairs(one, other):
            self.network.links.set_delay(a.name, b.name, seconds)

    def partition(self, one: Any, other: Any) -> None:
        """Let nothing through between these two until `heal`; their connections stay open."""
        for a, b in self._pairs(one, other):
            self.network.links.cut(a.name, b.name)

    def heal(self, one: Any = None, other: Any = None) -> None:
        """End the partition between these two, all partitions of this one, or all there are."""
        ones, others = ([None] if each is None else self._hosts(each) for each in (one, other))
        for pair in product(ones, others):
            self.network.links.heal(*(host.name for host in pair if host is not None))

    def _pairs(self, one: Any, other: Any) -> list[tuple[Host, Host]]:
        """The hosts of two places, each with each.

        Raises:
            UsageError: Both are nodes of one broker, between which nothing passes.
        """
        pairs = list(product(self._hosts(one), self._hosts(other)))
        for _, there in self._places:
            if any(a is not b and a in there and b in there for a, b in pairs):
                raise UsageError(
                    f"the nodes of {there[0].name} share what they store, and nothing passes between them: "
                    "expected stop_node(), which ends one of them, or, of RabbitMQ, move_leader()"
                )
        return pairs

    def _hosts(self, place: Any) -> list[Host]:
        """The hosts of a broker, of one of its nodes or of an application, or the one of that name."""
        if isinstance(place, Host):
            return [place]
        if isinstance(place, Application):
            return [place.host]
        if isinstance(place, str):
            return [self.network.known(place)]
        for each, hosts in self._places:
            if each is place:
                return hosts
        raise UsageError(
            "expected a broker, one of its nodes or an application of this simulation, or the name of a "
            f"host, got {place!r}"
        )
