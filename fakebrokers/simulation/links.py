"""What lies between the hosts of a simulation: latencies, partitions, and what is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any, Protocol

from fakebrokers.errors import UsageError

#: The names of two hosts; of one, where a program talks to another on its own host.
Pair = frozenset[str]


class Carrier(Protocol):
    """What calls everything: a loop, as far as lines need one."""

    def time(self) -> float:
        """Virtual seconds."""

    def call_soon(self, act: Callable[..., object], *args: Any, context: Context | None = None) -> object:
        """Call it at the next turn."""

    def call_at(self, when: float, act: Callable[[], object], *, context: Context) -> asyncio.TimerHandle:
        """Call it at that time."""

    def handle(self, act: Callable[[], object]) -> asyncio.Handle:
        """What `call` takes, as often as it is wanted; in the present context."""

    def call(self, handle: asyncio.Handle) -> None:
        """Call it at the next turn."""


class Links:
    """All of it.

    Attributes:
        loop: Carries everything.
        context: In which the network acts; it outlives every process.
        trace: What has arrived, if it is taken down: time, way and bytes.
        slow: Between whom something is on its way for a while; between all others it is there at once, as
            between two programs on one machine.
    """

    def __init__(self, loop: Carrier, context: Context) -> None:
        self.loop = loop
        self.context = context
        self.trace: list[tuple[float, str, bytes]] | None = None
        self.slow: set[Pair] = set()
        self._latencies: dict[Pair, float] = {}
        self._cuts: set[Pair] = set()
        self._kept_back: dict[Callable[[], None], Pair] = {}

    def delay(self, between: Pair) -> float:
        """Seconds that everything takes from one to the other."""
        return self._latencies.get(between, 0.0)

    def is_cut(self, between: Pair) -> bool:
        """Whether nothing gets through."""
        return between in self._cuts

    def set_delay(self, a: str, b: str, seconds: float) -> None:
        """From now on everything between these hosts takes so long, one way."""
        if seconds < 0 or a == b:
            raise UsageError(f"expected two hosts and 0 s or more, got {a}, {b} and {seconds} s")
        self._latencies[frozenset((a, b))] = seconds
        self._note_slow()

    def cut(self, a: str, b: str) -> None:
        """Let nothing through; what is sent meanwhile arrives after `heal`, or its sender gives up."""
        if a == b:
            raise UsageError(f"a host cannot be cut off from itself ({a})")
        self._cuts.add(frozenset((a, b)))
        self._note_slow()

    def heal(self, *names: str) -> None:
        """Let everything through again: between two hosts, of one, or everywhere."""
        self._cuts = {cut for cut in self._cuts if not cut.issuperset(names)}
        self._note_slow()
        for send_again, between in tuple(self._kept_back.items()):
            if not self.is_cut(between):
                del self._kept_back[send_again]
                send_again()

    def _note_slow(self) -> None:
        self.slow = self._cuts | {pair for pair, delay in self._latencies.items() if delay}

    def keep_back(self, between: Pair, send_again: Callable[[], None]) -> None:
        """What somebody has sent does not get through; `send_again` is called when it would."""
        self._kept_back[send_again] = between

    def later(self, delay: float, act: Callable[[], object]) -> None:
        """Do something for the network."""
        if delay:
            self.loop.call_at(self.loop.time() + delay, act, context=self.context)
        else:
            self.loop.call_soon(act, context=self.context)

    def note(self, source: tuple[str, int], target: tuple[str, int], data: bytes, kind: str = "") -> None:
        """Take down what has arrived."""
        if self.trace is not None:
            way = f"{source[0]}:{source[1]} > {target[0]}:{target[1]}{kind}"
            self.trace.append((self.loop.time(), way, data))
