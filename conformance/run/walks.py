"""Base scripts that nobody has thought out: an application that does what it can do, in a random order.

A walk is a base like any other. A protocol gives the steps, each with its weight, how a walk begins and how
it ends; which step comes when, and what it works on, is drawn from the walk's own random numbers: the same
for every run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.run.bases import Base, ScriptContext, base, text
from fakebrokers.faults import drop, latency

LENGTH = 24  #: steps of a walk
PAUSES_S = (0.0, 0.0, 0.0, 0.01, 0.1, 0.6)
KILLS = ("rst", "fin")


class Walk:
    """One walk.

    Attributes:
        context: What the steps work with.
        random: Everything is drawn from it.
        calls: Ops that are not waited for yet.
        state: What steps have to remember, by name.
    """

    def __init__(self, context: ScriptContext, seed: str) -> None:
        self.context = context
        self.random = Random(seed)
        self.calls: list[Call] = []
        self.state: dict[str, Any] = {}
        self._number = 0

    @property
    def number(self) -> int:
        """Another one each time, for names and bodies."""
        self._number += 1
        return self._number

    def body(self, prefix: str = "w") -> dict[str, str]:
        """A body that no other message has."""
        return text(f"{prefix}{self.number}")

    def pick(self, *choices: Any) -> Any:
        """One of them."""
        return self.random.choice(choices)

    def begin(self, op: str, timeout: float = 2.0, **args: Any) -> None:
        """Begin an op that is waited for later."""
        self.calls.append(self.context.begin(op, timeout, **args))

    async def ended(self) -> None:
        """Wait for all that is open."""
        calls, self.calls = self.calls, []
        await self.context.ended(calls)

    async def kill(self) -> None:
        """The server ends all connections, or one of them."""
        standing = sorted(self.context.broker.engine.connections)
        one = self.pick(None, *standing) if standing else None
        self.context.kill(self.pick(*KILLS), one)

    async def outage(self) -> None:
        """The server is away for a while."""
        await self.context.outage(self.pick(0.5, 5.0))

    async def slow(self) -> None:
        """What the server sends takes its time for a while."""
        name = self.context.broker.faults.add(latency(self.pick(0.2, 1.0), direction="out"))
        await self.context.sleep(self.pick(0.5, 2.0))
        self.context.broker.faults.remove(name)

    async def lost(self) -> None:
        """The next thing that the server sends is lost, on its way to whoever it is for."""
        self.context.broker.faults.add(drop(direction="out", first=1))

    async def cancel(self) -> None:
        """One of the ops that are under way is given up."""
        under_way = [call for call in self.calls if not call.done]
        if under_way and self.context.adapter.hello.can("cancel"):
            await self.context.adapter.cancel(self.pick(*under_way))

    async def rest(self) -> None:
        """Nothing happens for a while."""
        await self.context.sleep(self.pick(1.0, 5.0))


Step = Callable[[Walk], Awaitable[None]]

#: What disturbs an application, besides the losses that a protocol has among its steps.
ROUGH: Sequence[tuple[int, Step]] = ((1, Walk.outage), (2, Walk.slow), (3, Walk.cancel))
#: The same where a frame can get lost, and those after it still say whom they are for.
LOSSY = (*ROUGH, (2, Walk.lost))


def walks(
    count: int,
    steps: Sequence[tuple[int, Step]],
    begin: Step,
    end: Step,
    *,
    role: str,
    name: str = "walk",
    server: Mapping[str, Any] | None = None,
) -> list[Base]:
    """Several walks with the same steps.

    Args:
        steps: Each with its weight.
        begin, end: As in any base: connect first; at last clear the faults and see that the client works.
    """
    return [_walk(number, steps, begin, end, role, name, server) for number in range(count)]


def _walk(
    number: int,
    steps: Sequence[tuple[int, Step]],
    begin: Step,
    end: Step,
    role: str,
    name: str,
    server: Mapping[str, Any] | None,
) -> Base:
    async def script(context: ScriptContext) -> None:
        """Steps in an order drawn by lot."""
        walk = Walk(context, f"{name}-{number}")
        await begin(walk)
        chosen = walk.random.choices([step for _, step in steps], [weight for weight, _ in steps], k=LENGTH)
        for step in chosen:
            await step(walk)
            await context.sleep(walk.pick(*PAUSES_S))
        await walk.ended()
        await end(walk)

    walk = base(role=role, server=server, injections=False, name=f"{name}-{number}")(script)
    return walk._replace(is_drawn=True)
