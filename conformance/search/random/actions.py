"""What a protocol gives for chaos: how its application publishes, consumes and asks, as adapter ops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar

from conformance.clients.adapter.base import Call
from conformance.run.bases import text
from conformance.search.random.context import ChaosContext
from fakebrokers.core.frames import Role

PUBLISH_S = 8.0


class Actions(ABC):
    """Subclass it in ``scenarios/<protocol>/chaos/actions.py`` and call an instance ``ACTIONS``.

    Targets are made from numbers: ``target(0)`` is the first stream, queue or action.

    Attributes:
        protocol: Its name.
        kinds: The workloads that the protocol can have, see `workloads.KINDS`.
        roles: For each of them the role that a client must have declared.
        server: Options of the fake.
        connecting, connect_s: Options of every ``connect``, and what it may take.
        recover_s: In which every back-off has ended, once nothing disturbs the client any more.
        drain_s: In which consumers get all that is there.
        settled_s: In which a message comes, once another one was settled.
        forgets: Whether a message that was consumed is gone, so that the broker's store proves nothing.
        probe: See `probing`.
        probe_target: What the first session opens besides, to publish to, so that the probe can work.
        reads_once: Whether a session can consume a target only once.
        canary: A mutant of the reference client that any working harness finds in a few runs.
        remote: Whether all of this can be done at a real server too, see `ChaosContext.is_remote`.
        also: Directions and roles of frames that other protocols do not have, see
            `fakebrokers.faults.drawing.SENT`.
        without: Effects and nemeses of others that this protocol cannot have.
    """

    protocol: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]] = ("publish", "consume", "request", "mixed")
    roles: ClassVar[Mapping[str, str]] = {
        "publish": "publisher",
        "consume": "consumer",
        "request": "publisher",
        "mixed": "consumer",
    }
    server: ClassVar[Mapping[str, Any]] = {}
    connecting: ClassVar[Mapping[str, Any]] = {}
    connect_s: ClassVar[float] = 5.0
    recover_s: ClassVar[float] = 120.0
    drain_s: ClassVar[float] = 20.0
    settled_s: ClassVar[float] = 0.2
    forgets: ClassVar[bool] = False
    probe_target: ClassVar[str] = ""
    reads_once: ClassVar[bool] = False
    probe: ClassVar[tuple[str, Mapping[str, Any]]] = ("publish", {})
    remote: ClassVar[bool] = False
    also: ClassVar[tuple[tuple[str, Role], ...]] = ()
    without: ClassVar[tuple[str, ...]] = ()
    canary: ClassVar[str] = ""

    def draw(self, random: Random, kind: str) -> dict[str, Any]:
        """Settings of a workload that only this protocol has."""
        return {}

    def options(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Options of the fake."""
        return dict(self.server)

    def connecting_of(self, number: int) -> dict[str, Any]:
        """Options of the connect of the n-th session, from 1."""
        return dict(self.connecting)

    def probing(self, params: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Op and arguments that work on the first session once nothing disturbs it."""
        return self.probe

    @abstractmethod
    def target(self, number: int, *, read: bool) -> str:
        """The name of the n-th target, from 0; `read`: it has a consumer."""

    async def prepare(self, context: ChaosContext, targets: list[str]) -> None:  # noqa: B027 - optional hook
        """Make the targets at the broker, and whatever else has to be there."""

    async def joined(self, context: ChaosContext, session: str) -> None:  # noqa: B027 - optional hook
        """A session has connected."""

    async def open(self, context: ChaosContext, session: str, target: str) -> bool:
        """Open what publishing needs. Returns whether it is open; asked again later if not."""
        return True

    @abstractmethod
    async def subscribe(
        self, context: ChaosContext, session: str, sub: str, target: str, params: Any
    ) -> bool:
        """Consume a target. Returns whether that has begun; asked again later if not."""

    def publish(self, context: ChaosContext, session: str, target: str, body: str, *, wait: bool) -> Call:
        """Begin to publish a message."""
        return context.begin("publish", PUBLISH_S, session=session, target=target, body=text(body), wait=wait)

    @abstractmethod
    def put(self, context: ChaosContext, target: str, body: str) -> None:
        """A message of another client."""

    def ask(self, context: ChaosContext, session: str, number: int) -> Call | None:
        """Begin a request that has a reply; None where the protocol has none."""
        return None

    async def settle(self, context: ChaosContext, sub: str) -> int:
        """Settle what has come and is not settled yet, where callbacks do not. Returns how many."""
        return 0
