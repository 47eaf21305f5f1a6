"""Consumers at several instances, with one defect in how they tell them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import Runtime
from conformance.clients.reference.pzq.consumer import Consumer, Delivery
from conformance.clients.reference.pzq.sockets import Connector, OnMessage, Parts, Socket, joined
from fakebrokers.pzq.memory import SocketType


@mutant("first-address-only", tag="data", breaks=["P10"])
class FirstAddressOnly(Connector):
    """Connects to the first of several instances only."""

    def connect(self, endpoint: str | Sequence[str], kind: SocketType, on_message: OnMessage) -> Socket:
        return super().connect(endpoint if isinstance(endpoint, str) else endpoint[0], kind, on_message)


@mutant("one-instance-for-all", tag="data", breaks=["P8", "P10"])
class OneInstanceForAll(Consumer):
    """Sends every acknowledgement to the instance from which the first message came."""

    first: bytes | None = None

    def read(self, parts: Parts) -> Delivery:
        found = super().read(parts)
        self.first = self.first or found.pzq_id
        return found

    def acknowledgement(self, delivery: Delivery, positive: bool) -> Parts:
        return super().acknowledgement(delivery._replace(pzq_id=self.first or b""), positive)


@mutant("last-instance-gets-all", tag="data", breaks=["P8", "P10"])
class LastInstanceGetsAll(Consumer):
    """Sends an acknowledgement to the instance from which the latest message came."""

    latest: bytes = b""

    def read(self, parts: Parts) -> Delivery:
        found = super().read(parts)
        self.latest = found.pzq_id
        return found

    def acknowledgement(self, delivery: Delivery, positive: bool) -> Parts:
        return super().acknowledgement(delivery._replace(pzq_id=self.latest), positive)


@mutant("instances-in-turn", tag="life-cycle", breaks=["P10"])
class InstancesInTurn(Consumer):
    """Takes no two messages in a row from one of several instances: it waits for one of another."""

    def __init__(
        self,
        runtime: Runtime,
        connector: Connector,
        endpoint: str | Sequence[str],
        *args: Any,
        **options: Any,
    ) -> None:
        self.are_several = not isinstance(endpoint, str)
        self.latest = b""
        self.held: list[Parts] = []
        super().__init__(runtime, connector, endpoint, *args, **options)

    def receive(self, parts: Parts) -> None:
        if self.are_several and parts[0] == self.latest:
            self.held.append(parts)
            return
        self.latest = parts[0]
        super().receive(parts)
        held, self.held = self.held, []
        for each in held:
            self.receive(each)


@mutant("others-are-lost-for-good", tag="life-cycle", breaks=["P10"])
class OthersAreLostForGood(Connector):
    """Connects again to the first of several instances only."""

    def connect(self, endpoint: str | Sequence[str], kind: SocketType, on_message: OnMessage) -> Socket:
        addresses = [endpoint] if isinstance(endpoint, str) else endpoint
        sockets = []
        for number, address in enumerate(addresses):
            self.reconnect_ms = -1 if number else Connector.reconnect_ms
            sockets.append(super().connect(address, kind, on_message))
        self.reconnect_ms = Connector.reconnect_ms
        return joined(sockets)


@mutant("ended-consumers-go-on", tag="life-cycle", breaks=["P5"])
class EndedConsumersGoOn(Consumer):
    """The end of a consumer ends its socket; what has come is still delivered."""

    def close(self) -> None:
        self.socket.close()


@mutant("one-end-is-the-end-of-all", tag="life-cycle", breaks=["P5"])
class OneConsumerEndsAll(Consumer):
    """When one consumer has ended, the others take in what comes, and deliver none of it."""

    def receive(self, parts: Parts) -> None:
        if not getattr(self.runtime, "one_has_ended", False):
            super().receive(parts)

    def close(self) -> None:
        self.runtime.one_has_ended = True  # type: ignore[attr-defined]
        super().close()
