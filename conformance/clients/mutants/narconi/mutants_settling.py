"""Defects in what is acknowledged, and in what then is left to wait for."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from conformance.clients.adapter import kit
from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.narconi.channels import Subscription
from conformance.clients.reference.narconi.consumer import Consumer, Delivery
from conformance.clients.reference.narconi.ops import NarconiOps
from conformance.clients.reference.narconi.socket import Socket

WHILE_S = 0.05


@mutant("waits-for-those-below", tag="life-cycle", breaks=["N11"])
class WaitsForThoseBelow(Consumer):
    """After one acknowledgement of many it counts the last alone as settled, and waits for the others."""

    def settle_to(self, ack_id: str) -> None:
        below = self.outstanding[: self.outstanding.index(ack_id)] if ack_id in self.outstanding else []
        super().settle_to(ack_id)
        self.outstanding[:0] = below


@mutant("ids-are-compared-as-text", tag="data", breaks=["N11"])
class IdsAreComparedAsText(Consumer):
    """After an acknowledgement of many it takes "10" for settled with "9", and acknowledges it no more."""

    def settle_to(self, ack_id: str) -> None:
        rest = [each for each in self.outstanding if each > ack_id]
        super().settle_to(ack_id)
        self.outstanding = rest


@mutant("settles-again-with-others", tag="wire", breaks=["N11"])
class SettlesAgainWithOthers(Consumer):
    """Acknowledges all up to a delivery also where that is settled already."""

    def settle_to(self, ack_id: str) -> None:
        if ack_id in self.outstanding:
            super().settle_to(ack_id)
        else:
            self.command({"ackToId": ack_id})


@mutant("drains-what-is-lost", tag="life-cycle", breaks=["N8", "N15"])
class DrainsWhatIsLost(Socket):
    """A graceful end waits on for the server although its connection is lost."""

    def _lost(self, text: str, error: ClientError | None = None) -> None:
        waiting, self._barriers = self._barriers, []
        super()._lost(text, error)
        self._barriers = waiting


@mutant("ended-subscriptions-stay-connected", tag="life-cycle", breaks=["N15"])
class EndedSubscriptionsStayConnected(NarconiOps):
    """The end of a subscription ends its callbacks; its connection is kept until the session ends."""

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str, drain: bool = False, timeout_ms: float | None = None) -> None:
        if drain:
            await super().unsubscribe(sub, drain, timeout_ms)
        else:
            handle: Subscription = self.adapter.handle_of(sub)
            handle._stop()
            handle._leave_out()


@mutant("acknowledges-in-a-while", tag="data", breaks=["N11"])
class AcknowledgesInAWhile(Consumer):
    """Sends acknowledgements a little later, by when the channel may be closed."""

    def command(self, value: dict[str, Any]) -> None:
        asyncio.get_running_loop().call_later(WHILE_S, self.later, value)

    def later(self, value: dict[str, Any]) -> None:
        with suppress(ClientError):
            super().command(value)


@mutant("acknowledges-on-the-newest-connection", tag="data", breaks=["N8", "N11"])
class AcknowledgesOnTheNewestConnection(NarconiOps):
    """Acknowledges by the number alone, on the connection that the subscription has now."""

    @kit.op("settle")
    async def settle(self, sub: str, ref: str, how: str = "ack") -> None:
        subscription = self.adapter.subscription(sub)
        delivery: Delivery | None = subscription.native.get(ref)
        if delivery is not None and delivery.source is not None and subscription.handle is not None:
            subscription.native[ref] = delivery._replace(source=subscription.handle.core)
        await super().settle(sub, ref, how)
