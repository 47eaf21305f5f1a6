"""What carries a reference client, whatever its protocol."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

from conformance.clients.reference.kit.backoff import Backoff
from conformance.clients.reference.kit.callbacks import Callbacks, OnError, OnNote, OnSession
from conformance.clients.reference.kit.clock import Clock
from conformance.clients.reference.kit.feed import Feed
from conformance.clients.reference.kit.network import Network
from conformance.clients.reference.kit.ordered import OrderedSet
from conformance.clients.reference.kit.tasks import Tasks

T = TypeVar("T")


class Runtime:
    """Is made for each session and handed to its client.

    Args:
        network: Reaches servers.
        replaced: Classes that replace those of which they are subclasses: see `part`.
        seed: Of all random choices.

    Attributes:
        clock, tasks, callbacks, random: What their classes say.
        feeds: The feeds whose tasks run.
        is_closed: By the user, or given up; the client sets it.
    """

    def __init__(
        self,
        network: Network,
        *,
        on_session: OnSession = lambda *_: None,
        on_error: OnError = lambda *_: None,
        on_note: OnNote = lambda _: None,
        replaced: Sequence[type] = (),
        seed: int = 0,
    ) -> None:
        self.network = network
        self.is_closed = False
        self.random = Random(seed)
        self.feeds: OrderedSet[Feed[Any]] = OrderedSet()
        self._replaced = tuple(replaced)
        self.callbacks = self.part(Callbacks)(on_session, on_error, on_note)
        self.clock = self.part(Clock)(network)
        self.tasks = self.part(Tasks)(self.clock, lambda: self.is_closed)

    def part(self, original: type[T]) -> type[T]:
        """The class to make a part of the client from: the original, or the mutant that replaces it."""
        return part_of(self._replaced, original)

    def backoff(self, first_s: float, longest_s: float) -> Backoff:
        """Pauses for one thing that may have to be made again."""
        return self.part(Backoff)(self.random, first_s, longest_s)

    @property
    def task_count(self) -> int:
        """Tasks that run."""
        return len(self.tasks) + len(self.feeds)

    def end(self) -> None:
        """The client is dropped: no task and no callback goes on."""
        self.is_closed = True
        self.tasks.end()
        for feed in tuple(self.feeds):
            feed.abort()


def part_of(replaced: Sequence[type], original: type[T]) -> type[T]:
    """The first of the classes that may replace `original`, or that itself."""
    return next((one for one in replaced if issubclass(one, original)), original)
