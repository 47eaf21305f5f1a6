"""Specs on clients in processes of their own: real time, real sockets, several runs side by side.

Bases wait no longer than `pace` lets them, so what needs a long silence is left to clients in memory. A run
may come out otherwise the next time: what is found counts when it is found again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator

from conformance.clients.adapter.messages import Hello
from conformance.rules import Finding, judge
from conformance.run.bases import Base
from conformance.run.case import Case
from conformance.run.inprocess import play
from conformance.run.material import material_of
from conformance.run.pace import PAUSE_S
from conformance.run.specs import ORDER, PLAIN, Injection, Spec
from conformance.run.trace import Trace
from conformance.search.client import Command, Environment, TracedProcess, run_live
from conformance.search.live import SIDE_BY_SIDE, side_by_side
from conformance.search.systematic.orders import other_bodies
from conformance.search.systematic.universe import DrawableSpec, singles

LONGEST_S = 120.0  #: that a run may take


class Child:
    """A client that is started anew for every run.

    Args:
        make: Makes an adapter, not started, that notes on a trace.
        pause_s: What a pause of a base takes at most.
        hears: Whether errors that nobody has seen are read from what Python writes of them to stderr.

    Attributes:
        lanes: How many runs go on at once.
        on_served: Called with a spec and the process that has served it, which has ended.
    """

    lanes = SIDE_BY_SIDE

    def __init__(
        self,
        protocol: str,
        make: Callable[[Trace], TracedProcess],
        pause_s: float = PAUSE_S,
        *,
        hears: bool = False,
    ) -> None:
        self.protocol = protocol
        self.on_served: Callable[[Spec, int], None] = lambda _, __: None
        self._hears = hears
        self._make = make
        self._pause_s = pause_s

    @classmethod
    def of(cls, protocol: str, command: Command, env: Environment = None, pause_s: float = PAUSE_S) -> Child:
        """The client that the adapter of that command drives."""
        return cls(protocol, lambda trace: TracedProcess(command, protocol, env, trace), pause_s)

    async def run(self, spec: Spec) -> Case:
        """Run a spec, in real time."""
        trace = Trace(asyncio.get_running_loop().time)
        adapter = self._make(trace)
        work = play(adapter, spec, trace, in_memory=False, pause_s=self._pause_s)

        def broken() -> Case:
            return Case(spec, material_of(spec.protocol), trace.rows, [], ())

        case = await run_live(adapter, work, broken, LONGEST_S, hears=self._hears)
        if adapter.pid is not None:
            self.on_served(spec, adapter.pid)
        return case

    async def judged(self, spec: Spec) -> tuple[Case, list[Finding]]:
        """Run and judge a spec, while other runs go on."""
        case = await self.run(spec)
        return case, await asyncio.to_thread(judge, case)

    def run_all(self, specs: Iterable[Spec], seconds: float) -> Iterator[tuple[Case, list[Finding]]]:
        """Run specs side by side until the time is over or there are no more; the runs as they end."""
        end = time.monotonic() + seconds
        return side_by_side(self.judged, specs, self.lanes, lambda: time.monotonic() >= end)

    async def bases(self) -> list[Base]:
        """The base scripts for what the client says that it can. Raises `AdapterFailed`."""
        adapter = self._make(Trace(asyncio.get_running_loop().time))
        hello = await adapter.start()
        await adapter.kill()
        return [base for base in material_of(self.protocol).bases.values() if suits(base, hello)]

    def universe(
        self, seconds: float, on_case: Callable[[Case, list[Finding]], object]
    ) -> list[DrawableSpec]:
        """What can be swept: the bases that this client plays well, and every act at every frame of them.

        Bases that show what they are for without faults are among the specs.
        """
        bases = asyncio.run(self.bases())
        plain = {base.name: Spec(self.protocol, base.name) for base in bases}
        found = [DrawableSpec((PLAIN,), plain[base.name]) for base in bases if not base.injections]
        for case, findings in self.run_all([plain[base.name] for base in bases if base.injections], seconds):
            if plays(case):
                on_case(case, findings)
                found.extend(singles(case))
                found.extend(second_faults(case))
                for what, word, change in other_bodies(case):
                    changed = Spec(self.protocol, case.spec.base, changes=(change,))
                    found.append(DrawableSpec((ORDER, what, word), changed))
        return sorted(found, key=lambda item: item.spec.base)  # whichever run was over first


#: What is done after a loss, and to which frames of the next connection.
SECOND = ("rst", "lost", "late", "fin", "twice")
SECOND_AT = (1, 3, 5, 7, 9)


def second_faults(case: Case) -> Iterator[DrawableSpec]:
    """A loss in the middle of the first connection, then a fault on the second one."""
    conns = list(case.conns.values())[:1]
    if not conns or case.touched or not case.reconnects:
        return
    spoken = sum(1 for _ in conns[0].of("out"))
    loss = Injection(conns[0].name, "out", max(1, spoken * 3 // 4), "rst")
    later = f"c{len(case.conns) + 1}"
    for act in SECOND:
        for nth in SECOND_AT:
            yield DrawableSpec(
                ("second", act),
                Spec(case.spec.protocol, case.spec.base, (loss, Injection(later, "out", nth, act))),
            )


def suits(base: Base, hello: Hello) -> bool:
    """Whether a client can play a base."""
    has = {name for name, said in hello.caps.items() if said is not False}
    return base.role in ("", *hello.roles) and set(base.needs) <= {*has, *hello.ops}


def plays(case: Case) -> bool:
    """Whether the client has any op that the base asks for, besides those of every client."""
    own = [done for done in case.ops if done.op not in ("connect", "close", "state", "stats")]
    return any(done.result is None or done.result.word != "unsupported" for done in own)


#: From what most clients of this kind get wrong to what only few do. The rest follows after.
BEST_FIRST = (
    *(
        "rst",
        "fin",
        "late",
        "second",
        "rst-before",
        PLAIN,
        "lost",
        "contradict",
        "goodbye",
        "twice",
        "cut",
        "swap",
    ),
    *("cut-fin", "unasked", "happens", "silent", "order", "split", "glue", "latency", "trickle", "version"),
)


def best_first(items: Iterable[DrawableSpec]) -> Iterator[DrawableSpec]:
    """The same specs in one group for each act: so few are run that each act has to come up soon."""
    for group, spec in items:
        rank = BEST_FIRST.index(group[0]) if group[0] in BEST_FIRST else len(BEST_FIRST)
        yield DrawableSpec((f"{rank:02} {group[0]}",), spec)
