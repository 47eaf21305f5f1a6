"""What disturbs the whole: the network, the broker's process, its clock. Classic kinds, by name."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from fakebrokers.core.session import HangUp
from fakebrokers.faults import Fault, Realism, fault, hold, latency
from fakebrokers.faults.effects import Throttle

if TYPE_CHECKING:
    from conformance.search.random.context import ChaosContext
    from fakebrokers.core.wire import Wire
    from fakebrokers.faults.steps import Step


PAUSE_S = 0.5  #: at least, between two losses by one step: a client that comes back at once makes no storm


class Nemesis(ABC):
    """One kind. It keeps no state of its own: what it has to remember is in the step.

    Attributes:
        name: What steps and users call it.
        about: What it does, for people.
        realism: Who could cause it.
        forgets: Whether the broker may lose what it has stored.
        needs_broker: Whether it does something that a proxy in front of a real server cannot do.
        needs_process: Whether the client has to be a child process.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    realism: ClassVar[Realism] = Realism.ENVIRONMENT
    forgets: ClassVar[bool] = False
    needs_broker: ClassVar[bool] = False
    needs_process: ClassVar[bool] = False

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any] | None:
        """The arguments of a step, plain values; None where this run cannot have it.

        Args:
            params: Of the workload.
            wire: What the protocol speaks.
        """
        return {}

    @abstractmethod
    async def act(self, context: ChaosContext, step: Step) -> None:
        """Take place, for ``step.for_s`` seconds. Cancelled where the safety phase ends before."""

    def heal(self, context: ChaosContext, step: Step) -> None:  # noqa: B027 - optional hook
        """Undo it; also after a cancellation."""


def _gone(context: ChaosContext, *names: str) -> None:
    for name in names:
        if name in context.broker.faults.names:
            context.broker.faults.remove(name)


def shut(context: ChaosContext, step: Step, *, keeps: bool = True) -> None:
    """The broker's process ends; nothing listens until `reopen`."""
    engine = context.broker.engine

    def act() -> None:
        engine.host.close_listeners(None, step.name)
        engine.crash(HangUp(step.args["how"]), keeps, engine.now)

    context.broker.call(act)


def reopen(context: ChaosContext, step: Step) -> None:
    """It listens again, unless another step keeps it shut."""
    context.broker.call(context.broker.engine.host.release, step.name)


class _Network(Nemesis):
    """Faults for everything that passes, and perhaps no new connections."""

    hangs: ClassVar[bool] = False

    def faults(self, step: Step) -> list[Fault]:
        raise NotImplementedError

    async def act(self, context: ChaosContext, step: Step) -> None:
        context.broker.faults.add(*self.faults(step))
        if self.hangs:
            context.broker.call(context.broker.engine.host.black_hole, None, step.name)
        await asyncio.sleep(step.for_s)

    def heal(self, context: ChaosContext, step: Step) -> None:
        _gone(context, *(one.name for one in self.faults(step)))
        if self.hangs:
            reopen(context, step)


class Partition(_Network):
    """Both ways."""

    name = "partition"
    about = "Nothing passes between client and broker, and new connects hang; what was sent comes later."
    hangs = True

    def faults(self, step: Step) -> list[Fault]:
        return [
            hold(behind=True, direction="out", name=f"{step.name}-out"),
            hold(behind=True, direction="in", name=f"{step.name}-in"),
        ]


class PartitionOut(_Network):
    """Nothing reaches the client."""

    name = "partition-out"
    about = "Nothing passes from the broker to the client; what was sent comes later."

    def faults(self, step: Step) -> list[Fault]:
        return [hold(behind=True, direction="out", name=f"{step.name}-out")]


class PartitionIn(_Network):
    """Nothing reaches the broker."""

    name = "partition-in"
    about = "Nothing passes from the client to the broker; what was sent comes later."

    def faults(self, step: Step) -> list[Fault]:
        return [hold(behind=True, direction="in", name=f"{step.name}-in")]


class SlowLink(_Network):
    """A bad line."""

    name = "slow-link"
    about = "Everything is late, by another time for each frame, and comes in a thin stream."

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any]:
        delay_s = random.choice((0.02, 0.1, 0.4))
        return {
            "delay_s": delay_s,
            "jitter_s": delay_s * random.choice((0.0, 0.5)),
            "bytes_per_s": random.choice((0, 2000, 20_000)) if wire.stream else 0,
        }

    def faults(self, step: Step) -> list[Fault]:
        delay_s, jitter_s = step.args["delay_s"], step.args["jitter_s"]
        found = [
            latency(delay_s, jitter=jitter_s, direction="out", name=f"{step.name}-out"),
            latency(delay_s, jitter=jitter_s, direction="in", name=f"{step.name}-in"),
        ]
        if step.args["bytes_per_s"]:
            thin = Throttle(bytes_per_s=step.args["bytes_per_s"])
            found.append(fault(thin, direction="out", name=f"{step.name}-thin"))
        return found


class Crash(Nemesis):
    """The process dies and comes back."""

    name = "crash"
    about = "The broker dies and comes back with what it had."

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any]:
        return {"how": random.choice(("rst", "fin"))}

    async def act(self, context: ChaosContext, step: Step) -> None:
        shut(context, step, keeps=not self.forgets)
        if self.forgets:
            context.notes.forgets = True
            await asyncio.sleep(0)
            await context.remake()
        await asyncio.sleep(step.for_s)

    def heal(self, context: ChaosContext, step: Step) -> None:
        reopen(context, step)


class RollingRestart(Nemesis):
    """Several short restarts in a row."""

    name = "rolling-restart"
    about = "The broker is restarted several times in a row; where it has nodes, one after the other."

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any]:
        return {"times": random.choice((2, 3)), "how": random.choice(("rst", "fin"))}

    async def act(self, context: ChaosContext, step: Step) -> None:
        pause_s = max(PAUSE_S, step.for_s / (2 * step.args["times"]))
        for number in range(step.args["times"]):
            self.down(context, number, step)
            await asyncio.sleep(pause_s)
            self.up(context, number, step)
            await asyncio.sleep(pause_s)

    def down(self, context: ChaosContext, number: int, step: Step) -> None:
        """The n-th stop, from 0."""
        shut(context, step)

    def up(self, context: ChaosContext, number: int, step: Step) -> None:
        """The start that follows."""
        reopen(context, step)

    def heal(self, context: ChaosContext, step: Step) -> None:
        reopen(context, step)


class ClockShift(Nemesis):
    """The wall clocks."""

    name = "clock-shift"
    about = "The broker's wall clock jumps, and jumps back."
    needs_broker = True

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any]:
        return {"seconds": random.choice((-86_400.0, -60.0, 3.0, 3600.0))}

    async def act(self, context: ChaosContext, step: Step) -> None:
        engine = context.broker.engine
        context.broker.call(engine.shift_clock, step.args["seconds"], step.name)
        await asyncio.sleep(step.for_s)

    def heal(self, context: ChaosContext, step: Step) -> None:
        context.broker.call(context.broker.engine.shift_clock, -step.args["seconds"], step.name)


class Cut(Nemesis):
    """Connections end again and again."""

    name = "cut"
    about = "All connections end, several times, with an even pause between."

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any]:
        return {"how": random.choice(("rst", "fin")), "times": random.choice((1, 2, 4))}

    async def act(self, context: ChaosContext, step: Step) -> None:
        for number in range(step.args["times"]):
            if number:
                await asyncio.sleep(max(PAUSE_S, step.for_s / step.args["times"]))
            context.kill(step.args["how"])


class Pause(Nemesis):
    """SIGSTOP."""

    name = "pause"
    about = "The client's process stands still."
    needs_process = True

    async def act(self, context: ChaosContext, step: Step) -> None:
        context.adapter.pause()
        await asyncio.sleep(step.for_s)

    def heal(self, context: ChaosContext, step: Step) -> None:
        context.adapter.resume()


class NodeFlap(Nemesis):
    """A node that comes and goes. For fakes that have ``nodes`` and can stop them."""

    name = "node-flap"
    about = "A node stops and starts again, several times."
    needs_broker = True

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any] | None:
        nodes = params.get("nodes", 1)
        if nodes < 2:
            return None
        return {"node": random.randint(1, nodes), "times": random.choice((1, 2, 3))}

    async def act(self, context: ChaosContext, step: Step) -> None:
        pause_s = max(PAUSE_S, step.for_s / (2 * step.args["times"]))
        for _ in range(step.args["times"]):
            context.broker.stop_node(step.args["node"])
            await asyncio.sleep(pause_s)
            context.broker.start_node(step.args["node"])
            await asyncio.sleep(pause_s)

    def heal(self, context: ChaosContext, step: Step) -> None:
        context.broker.start_node(step.args["node"])


class RollingNodes(RollingRestart):
    """One node after the other, where there are several, and they are ours."""

    def down(self, context: ChaosContext, number: int, step: Step) -> None:
        nodes = _nodes(context)
        if nodes < 2:
            super().down(context, number, step)
        else:
            context.broker.stop_node(number % nodes + 1)

    def up(self, context: ChaosContext, number: int, step: Step) -> None:
        nodes = _nodes(context)
        if nodes < 2:
            super().up(context, number, step)
        else:
            context.broker.start_node(number % nodes + 1)

    def heal(self, context: ChaosContext, step: Step) -> None:
        super().heal(context, step)
        nodes = _nodes(context)
        for node in range(1, nodes + 1) if nodes > 1 else ():
            context.broker.start_node(node)


def _nodes(context: ChaosContext) -> int:
    """How many there are to stop; a proxy is one."""
    return 1 if context.is_remote else int(context.schedule.params.get("nodes", 1))


class CrashForget(Crash):
    """It loses what it had."""

    name = "crash-forget"
    about = "The broker dies and comes back empty."
    needs_broker = True
    forgets = True


GENERAL: tuple[Nemesis, ...] = (
    Partition(),
    PartitionOut(),
    PartitionIn(),
    SlowLink(),
    Crash(),
    CrashForget(),
    RollingRestart(),
    ClockShift(),
    Cut(),
    Pause(),
)
