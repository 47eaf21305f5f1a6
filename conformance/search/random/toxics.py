"""Nemeses as toxics of a Toxiproxy: the real one or ours, by its REST API as ``toxiproxy-python`` speaks it.

The client speaks to our proxy, which takes down what passes; after it comes the Toxiproxy, then the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit
from uuid import uuid4

from conformance.search.random.nemesis import Nemesis
from fakebrokers.core.wire import Wire
from fakebrokers.errors import UsageError
from fakebrokers.extras import needs

if TYPE_CHECKING:
    from conformance.search.random.context import ChaosContext
    from fakebrokers.faults.steps import Step

API_PORT = 8474
BOTH = ("downstream", "upstream")

#: Type, stream and attributes of a toxic.
Toxic = tuple[str, str, dict[str, int]]


class Toxics:
    """One proxy of a Toxiproxy, made for a run.

    Args:
        url: Of the API.
        upstream: The server, ``host:port``.

    Raises:
        UsageError: No server answers there, or the package is missing.
    """

    def __init__(self, url: str, upstream: str) -> None:
        with needs("chaos", "--toxiproxy"):
            import toxiproxy
        place = urlsplit(url if "//" in url else f"//{url}")
        driver = toxiproxy.Toxiproxy()
        driver.update_api_consumer(place.hostname or "127.0.0.1", place.port or API_PORT)
        if not driver.running():
            raise UsageError(f"no Toxiproxy answers at {url}")
        self._proxy: Any = driver.create(upstream=upstream, name=f"chaos-{uuid4().hex[:8]}", enabled=True)

    @property
    def listen(self) -> str:
        """Where it listens, ``host:port``."""
        return str(self._proxy.listen)

    def add(self, name: str, toxics: list[Toxic]) -> None:
        """Add toxics, with names that begin so. Blocks."""
        for number, (kind, stream, attributes) in enumerate(toxics):
            self._proxy.add_toxic(name=f"{name}-{number}", type=kind, stream=stream, attributes=attributes)

    def remove(self, name: str) -> None:
        """Take them out. Blocks."""
        for each in list(self._proxy.toxics()):
            if each.startswith(f"{name}-"):
                self._proxy.destroy_toxic(each)

    def shut(self) -> None:
        """Cut all connections and refuse new ones. Blocks."""
        self._proxy.disable()

    def reopen(self) -> None:
        """Let them in again. Blocks."""
        self._proxy.enable()

    def close(self) -> None:
        """It is not needed any more."""
        self._proxy.destroy()


class _ToxicNemesis(Nemesis):
    """Toxics for as long as the step lasts."""

    in_plan = False

    def toxics(self, step: Step) -> list[Toxic]:
        raise NotImplementedError

    async def begun(self, context: ChaosContext, step: Step) -> None:
        await asyncio.to_thread(context.toxics.add, step.name, self.toxics(step))

    def heal(self, context: ChaosContext, step: Step) -> None:
        context.toxics.remove(step.name)


class ToxicPartition(_ToxicNemesis):
    """Nothing passes, and the connections end with it."""

    name = "partition"
    about = "Nothing passes; connections on which something was to pass end when it is over."
    streams: ClassVar[tuple[str, ...]] = BOTH

    def toxics(self, step: Step) -> list[Toxic]:
        return [("timeout", stream, {"timeout": int(step.for_s * 1000)}) for stream in self.streams]


class ToxicPartitionOut(ToxicPartition):
    """Nothing reaches the client."""

    name = "partition-out"
    streams = ("downstream",)


class ToxicPartitionIn(ToxicPartition):
    """Nothing reaches the server."""

    name = "partition-in"
    streams = ("upstream",)


class ToxicSlowLink(_ToxicNemesis):
    """A bad line."""

    name = "slow-link"
    about = "Everything is late, by another time for each piece, and comes in a thin stream."

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any]:
        delay_ms = random.choice((20, 100, 400))
        return {
            "latency": delay_ms,
            "jitter": delay_ms // random.choice((2, 4)),
            "rate": random.choice((2, 20)),
        }

    def toxics(self, step: Step) -> list[Toxic]:
        late = {"latency": step.args["latency"], "jitter": step.args["jitter"]}
        return [
            *(("latency", stream, late) for stream in BOTH),
            ("bandwidth", "downstream", {"rate": step.args["rate"]}),
        ]


class ToxicSlicer(_ToxicNemesis):
    """Small pieces."""

    name = "slicer"
    about = "What the server sends comes in small pieces."

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any]:
        return {"average_size": random.choice((2, 10, 50)), "delay": random.choice((100, 1000))}

    def toxics(self, step: Step) -> list[Toxic]:
        size = step.args["average_size"]
        pieces = {"average_size": size, "size_variation": size // 2, "delay": step.args["delay"]}
        return [("slicer", "downstream", pieces)]


class ToxicCut(_ToxicNemesis):
    """Resets."""

    name = "cut"
    about = "All connections are reset, and those that come meanwhile."

    def toxics(self, step: Step) -> list[Toxic]:
        return [("reset_peer", "downstream", {"timeout": 0})]


class ToxicCrash(Nemesis):
    """No server listens."""

    name = "crash"
    about = "All connections end, and the server does not listen for a while."
    in_plan = False

    async def begun(self, context: ChaosContext, step: Step) -> None:
        await asyncio.to_thread(context.toxics.shut)

    def heal(self, context: ChaosContext, step: Step) -> None:
        context.toxics.reopen()


TOXIC: Mapping[str, Nemesis] = {
    one.name: one
    for one in (
        ToxicPartition(),
        ToxicPartitionOut(),
        ToxicPartitionIn(),
        ToxicSlowLink(),
        ToxicSlicer(),
        ToxicCut(),
        ToxicCrash(),
    )
}
