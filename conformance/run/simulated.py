"""A stock client in this process: virtual time, and a host of its own in a simulation.

The trace has what the client gets and writes where the fake writes and reads it, as that of a process has.
So it is judged with the same slack: what is found here a process can confirm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from conformance.clients.adapter.kit import AdapterBase
from fakebrokers.errors import NotSimulated
from fakebrokers.protocol import find_protocol
from fakebrokers.server import FakeServer
from fakebrokers.simulation import Simulation, SimulationLoop
from fakebrokers.simulation.homes import housed, nodes_from
from fakebrokers.simulation.tasks import close, close_what_generators_await, in_order

LAST_WORDS_S = 1.0  #: virtual seconds that tasks of the harness have for ending


class NeedsProcess(Exception):
    """A run for a process of the client's own: it asked for something real, like a thread, or did not end."""


def is_stock(client: type[AdapterBase]) -> bool:
    """Whether a client reaches brokers by the loop's connections only, and not through memory."""
    return not getattr(client, "is_memory", False)


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run work on the loop of a simulation; time and chance follow it.

    Raises:
        NeedsProcess: Something real was asked for, whoever has caught the error.
    """
    simulation = Simulation(patch=True)
    loop = simulation.loop
    try:
        simulation.run(_whole(work))
    except NotSimulated:
        pass  # it is among the refusals
    except SystemExit as end:
        raise NeedsProcess(f"the client has ended its process with status {end.code}") from None
    finally:
        close_what_generators_await(loop)
        for task in in_order(asyncio.all_tasks(loop)):
            close(task)
        loop.close()
    if loop.refusals:
        raise NeedsProcess(str(loop.refusals[0]))


async def _whole(work: Coroutine[Any, Any, None]) -> None:
    """Do the work, and end what the harness has left; of a client that was killed nothing goes on."""
    await work
    this = asyncio.current_task()
    left = [task for task in in_order(asyncio.all_tasks()) if task is not this and task.process.alive]
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=LAST_WORDS_S)


def fake_for(protocol: str, *, in_memory: bool, **options: Any) -> FakeServer:
    """A fake for a run on the running loop; not started.

    Args:
        in_memory: It needs no sockets: it is reached through memory, or by a simulation.
    """
    loop = asyncio.get_running_loop()
    if isinstance(loop, SimulationLoop):
        network = loop.network
        hosts = nodes_from(network.host(protocol), options.get("nodes", 1), network.host)
        return housed(loop, protocol, hosts, **options)
    made: FakeServer = find_protocol(protocol).load()(memory=in_memory, **options)
    return made
