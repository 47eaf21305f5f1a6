"""Clients in processes of their own: real time, real sockets, several runs side by side.

What is handed to such a client is what is written into its socket; when it reads that, and when it wrote
what comes from it, is known within `SLACK_S`. Bases wait no longer than `PAUSE_S` at a time, so what needs a
long silence is left to clients in memory.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from conformance.adapter.base import Adapter, AdapterFailed
from conformance.adapter.process import ProcessAdapter
from conformance.invariants import Finding, judge
from conformance.sweep.case import Case
from conformance.sweep.room import room_of
from conformance.sweep.run import play
from conformance.sweep.specs import Spec
from conformance.sweep.tape import Tape
from conformance.sweep.universe import Item, singles

SLACK_S = 0.25
PAUSE_S = 6.0  #: the back-off of most clients is shorter
SIDE_BY_SIDE = 8
LONGEST_S = 240.0  #: that a run may take

#: Takes a run and its findings; returns those that are new.
Take = Callable[[Case, list[Finding]], list[Finding]]
Command = Sequence[str]
Environment = dict[str, str] | None


class _Line(msgspec.Struct):
    """What of a line of an adapter the tape needs."""

    n: int
    id: int | None = None
    event: str | None = None


class TapedProcess(ProcessAdapter):
    """Notes on the tape when a line of the client comes."""

    def __init__(self, command: Command, protocol: str, env: Environment, tape: Tape) -> None:
        super().__init__(command, protocol, env=env)
        self._tape = tape

    def _receive(self, raw: Any) -> None:
        try:
            line = msgspec.json.decode(raw, type=_Line) if isinstance(raw, bytes) else None
        except msgspec.DecodeError:
            line = None
        if line is not None and line.event is not None:
            self._tape.note("event", line.n)
        elif line is not None:
            self._tape.note("answer", line.id)
        super()._receive(raw)


class Child:
    """A client that is started anew for every run.

    Args:
        make: Makes an adapter, not started, that notes on a tape.
    """

    def __init__(self, protocol: str, make: Callable[[Tape], Adapter]) -> None:
        self.protocol = protocol
        self._make = make

    @classmethod
    def of(cls, protocol: str, command: Command, env: Environment = None) -> Child:
        """The client behind the adapter of that command."""
        return cls(protocol, lambda tape: TapedProcess(command, protocol, env, tape))

    async def run(self, spec: Spec) -> Case:
        """Run a spec, in real time."""
        tape = Tape(asyncio.get_running_loop().time)
        work = play(self._make(tape), spec, tape, in_memory=False, longest_s=PAUSE_S)
        try:
            case = await asyncio.wait_for(work, LONGEST_S)
        except (AdapterFailed, TimeoutError) as error:
            case = Case(spec, room_of(spec.protocol), tape.rows, [], ())
            case.harness = f"the adapter: {error!r}"
        case.slack_s = SLACK_S
        return case

    async def run_all(self, specs: Iterator[Spec], seconds: float, on_case: Take) -> None:
        """Run specs side by side until the time is over or there are no more."""
        end = time.monotonic() + seconds

        async def worker() -> None:
            for spec in specs:
                if time.monotonic() >= end:
                    return
                case = await self.run(spec)
                on_case(case, judge(case))

        await asyncio.gather(*(worker() for _ in range(SIDE_BY_SIDE)))

    async def universe(self, seconds: float, on_case: Take) -> list[Item]:
        """What can be swept: the bases that this client plays well, and every act at every frame of them."""
        bases = [base for base in room_of(self.protocol).bases.values() if base.bends]
        found: list[Item] = []

        def look(case: Case, findings: list[Finding]) -> list[Finding]:
            news = on_case(case, findings) if _plays(case) else []
            if _plays(case) and not news:
                found.extend(singles(case))
            return news

        await self.run_all(iter([Spec(self.protocol, base.name) for base in bases]), seconds, look)
        return found


def _plays(case: Case) -> bool:
    """Whether the client has all ops that the base asks for."""
    return all(done.result is None or done.result.word != "unsupported" for done in case.ops)
