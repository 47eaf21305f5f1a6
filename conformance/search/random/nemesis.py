"""What disturbs the whole: the network, the broker's process, its clock. Classic kinds, by name.

What they do are rows of a fault plan; few do something besides that no plan of a broker can have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from fakebrokers.faults import Realism, disturbances
from fakebrokers.faults.disturbances import Row

if TYPE_CHECKING:
    from conformance.search.random.context import ChaosContext
    from fakebrokers.core.wire import Wire
    from fakebrokers.faults.steps import Step


class Nemesis:
    """One kind. It keeps no state of its own.

    Attributes:
        name: What steps and users call it.
        about: What it does, for people.
        realism: Who could cause it.
        forgets: Whether the broker may lose what it has stored.
        needs_broker: Whether it does something that a proxy in front of a real server cannot do.
        needs_process: Whether the client has to be a child process.
        in_plan: Whether all that it does is in `rows`.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    realism: ClassVar[Realism] = Realism.ENVIRONMENT
    forgets: ClassVar[bool] = False
    needs_broker: ClassVar[bool] = False
    needs_process: ClassVar[bool] = False
    in_plan: ClassVar[bool] = True

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any] | None:
        """The arguments of a step, plain values; None where this run cannot have it.

        Args:
            params: Of the workload.
            wire: What the protocol speaks.
        """
        return {}

    def rows(self, step: Step, nodes: int = 1) -> list[Row]:
        """The step as rows of a fault plan, counted from its beginning.

        Args:
            nodes: How many there are to stop; a proxy is one.
        """
        return []

    async def begun(self, context: ChaosContext, step: Step) -> None:
        """The rows are added: what is to be noted, or done besides. Cancelled where the safety phase ends."""

    def heal(self, context: ChaosContext, step: Step) -> None:
        """Undo what `begun` did; also after a cancellation."""


class Partition(Nemesis):
    """Both ways."""

    name = "partition"
    about = "Nothing passes between client and broker, and new connects hang; what was sent comes later."

    def rows(self, step: Step, nodes: int = 1) -> list[Row]:
        return disturbances.partition(step.name, step.for_s, {})


class PartitionOut(Nemesis):
    """Nothing reaches the client."""

    name = "partition-out"
    about = "Nothing passes from the broker to the client; what was sent comes later."

    def rows(self, step: Step, nodes: int = 1) -> list[Row]:
        return disturbances.partition(step.name, step.for_s, {"directions": ("out",)})


class PartitionIn(Nemesis):
    """Nothing reaches the broker."""

    name = "partition-in"
    about = "Nothing passes from the client to the broker; what was sent comes later."

    def rows(self, step: Step, nodes: int = 1) -> list[Row]:
        return disturbances.partition(step.name, step.for_s, {"directions": ("in",)})


class SlowLink(Nemesis):
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

    def rows(self, step: Step, nodes: int = 1) -> list[Row]:
        return disturbances.slow_link(step.name, step.for_s, step.args)


class Crash(Nemesis):
    """The process dies and comes back."""

    name = "crash"
    about = "The broker crashes and restarts with what it had stored."

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any]:
        return {"how": random.choice(("rst", "fin"))}

    def rows(self, step: Step, nodes: int = 1) -> list[Row]:
        return disturbances.crash(step.name, step.for_s, {**step.args, "keep_state": not self.forgets})


class CrashForget(Crash):
    """It loses what it had."""

    name = "crash-forget"
    about = "The broker crashes and restarts with nothing stored."
    needs_broker = True
    forgets = True

    async def begun(self, context: ChaosContext, step: Step) -> None:
        context.notes.forgets = True
        await asyncio.sleep(0)
        await context.remake()


class RollingRestart(Nemesis):
    """Several short restarts in a row."""

    name = "rolling-restart"
    about = "The broker is restarted several times in a row; where it has nodes, one after the other."

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any]:
        return {"times": random.choice((2, 3)), "how": random.choice(("rst", "fin"))}

    def rows(self, step: Step, nodes: int = 1) -> list[Row]:
        return disturbances.rolling_restart(step.name, step.for_s, step.args)


class RollingNodes(RollingRestart):
    """One node after the other, where there are several, and they are ours."""

    def rows(self, step: Step, nodes: int = 1) -> list[Row]:
        return disturbances.rolling_restart(step.name, step.for_s, {**step.args, "nodes": nodes})


class ClockShift(Nemesis):
    """The wall clocks."""

    name = "clock-shift"
    about = "The broker's wall clock jumps, and jumps back."
    needs_broker = True

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any]:
        return {"seconds": random.choice((-86_400.0, -60.0, 3.0, 3600.0))}

    def rows(self, step: Step, nodes: int = 1) -> list[Row]:
        return disturbances.clock_shift(step.name, step.for_s, step.args)


class Cut(Nemesis):
    """Connections end again and again."""

    name = "cut"
    about = "All connections end, several times, with an even pause between."

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any]:
        return {"how": random.choice(("rst", "fin")), "times": random.choice((1, 2, 4))}

    def rows(self, step: Step, nodes: int = 1) -> list[Row]:
        return disturbances.cut(step.name, step.for_s, step.args)


class Pause(Nemesis):
    """SIGSTOP."""

    name = "pause"
    about = "The client's process is stopped."
    needs_process = True
    in_plan = False

    async def begun(self, context: ChaosContext, step: Step) -> None:
        context.adapter.pause()

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

    def rows(self, step: Step, nodes: int = 1) -> list[Row]:
        return disturbances.node_flap(step.name, step.for_s, step.args)


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
