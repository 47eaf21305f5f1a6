"""What can be swept of a stock client that runs on virtual time: by the frames of its own runs."""

from __future__ import annotations

from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.adapter.messages import Hello
from conformance.run.inprocess import run
from conformance.run.material import material_of
from conformance.run.simulated import NeedsProcess
from conformance.search.systematic.children import plays, second_faults, suits
from conformance.search.systematic.universe import DrawableSpec, of_run, plain
from fakebrokers.core import virtual


def stock_universe(protocol: str, client: type[AdapterBase]) -> list[DrawableSpec]:
    """Everything, of the bases that this client plays.

    A base that needs a process is there without faults: nobody knows its frames.
    """
    hello = virtual.run(_hello_of(client, protocol))
    found: list[DrawableSpec] = []
    for base in material_of(protocol).bases.values():
        if not suits(base, hello):
            continue
        whole = plain(protocol, base)
        if not base.injections:
            found.append(whole)
            continue
        try:
            case = run(client, whole.spec)
        except NeedsProcess:
            found.append(whole)
            continue
        if plays(case):
            found += [whole, *of_run(case, second_faults(case))]
    return found


async def _hello_of(client: type[AdapterBase], protocol: str) -> Hello:
    adapter = InProcessAdapter(client, protocol)
    hello = await adapter.start()
    await adapter.kill()
    return hello
