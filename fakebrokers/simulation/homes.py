"""Where the brokers of a simulation run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from fakebrokers.core.loop import InsideLoop, LoopHandle
from fakebrokers.protocol import find_protocol
from fakebrokers.simulation.hosts import Host, Process
from fakebrokers.simulation.servers import SimulatedListener

if TYPE_CHECKING:
    from fakebrokers.core.driver import Driver
    from fakebrokers.core.listeners import Endpoint, Listener
    from fakebrokers.server import FakeServer
    from fakebrokers.simulation.loop import SimulationLoop

T = TypeVar("T")


class SimulatedHome:
    """Where a broker runs; implements `home.Home`.

    Args:
        hosts: Of its nodes.
        port: The first port that it listens on, on each of them; further ones are the next that are free.
    """

    def __init__(self, loop: SimulationLoop, hosts: Sequence[Host], port: int) -> None:
        self._simulated = loop
        self._processes = [Process(each) for each in hosts]
        self._ports = dict.fromkeys(hosts, port)
        self.loop: LoopHandle = _BrokerLoop(loop, self._processes[0])

    def host_of(self, node: int) -> str:
        """The name of the host that a node runs on."""
        return self._processes[node].host.name

    def listener(self, driver: Driver, endpoint: Endpoint) -> Listener:
        """What listens there."""
        process = self._processes[endpoint.node]
        port = endpoint.port or self._ports[process.host]
        self._ports[process.host] = max(self._ports[process.host], port + 1)
        return SimulatedListener(self._simulated, process, driver, endpoint, port)


class _BrokerLoop(InsideLoop):
    """The loop as a broker sees it: what the broker does belongs to no application that may be killed."""

    def __init__(self, loop: SimulationLoop, process: Process) -> None:
        super().__init__(loop)
        self._process = process

    def call(self, act: Callable[..., T], *arguments: Any) -> T:
        return self._process.context.copy().run(act, *arguments)

    def post(self, act: Callable[[], Any]) -> None:
        self.loop.call_soon(act, context=self._process.context.copy())


def nodes_from(first: Host, nodes: int, host: Callable[[str], Host]) -> list[Host]:
    """The hosts of a broker's nodes: the others are called like the first one, with a number."""
    return [first, *(host(f"{first.name}-node{number}") for number in range(2, nodes + 1))]


def housed(loop: SimulationLoop, protocol: str, hosts: Sequence[Host], **options: Any) -> FakeServer:
    """A fake whose nodes run on these hosts; not started."""
    described = find_protocol(protocol)
    server: Any = described.load()(host=hosts[0].name, memory=True, **options)
    server._home = SimulatedHome(loop, hosts, described.port)
    made: FakeServer = server
    return made
