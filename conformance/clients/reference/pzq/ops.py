"""The ops of PZQ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.clients.adapter import kit
from conformance.clients.reference.kit import Reference, ReferenceAdapter, Runtime, seconds
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer, Delivery
from conformance.clients.reference.pzq.producer import text_of

Json = dict[str, Any]


class PzqOps:
    """What the adapter does for PZQ only."""

    def __init__(self, adapter: ReferenceAdapter) -> None:
        self.adapter = adapter

    def client(self, runtime: Runtime, endpoints: Any, options: Mapping[str, Any]) -> PzqClient:
        return runtime.part(PzqClient)(runtime, endpoints)

    @kit.op("publish")
    async def publish(
        self, session: str, body: Any, key: Any, wait: bool, timeout_ms: float | None = None,
        request_id: int | None = None,
    ) -> Json:  # fmt: skip
        client: PzqClient = self.adapter.session(session)

        async def work() -> Json:
            answer = await client.publish(kit.body_parts(body), kit.key_bytes(key), seconds(timeout_ms))
            return {
                "key": kit.report_key(answer.id),
                "meta": {"texts": [text_of(one) for one in answer.texts]},
            }

        return await self.adapter.published(work(), wait, request_id)

    @kit.op("subscribe")
    async def subscribe(self, session: str, sub: str, target: str, options: Json, on_message: Json) -> None:
        client: PzqClient = self.adapter.session(session)
        subscription = self.adapter.surfacing(sub, target, on_message)

        async def deliver_message(delivery: Delivery) -> None:
            await subscription.deliver(
                delivery.body,
                native=delivery,
                position=kit.report_key(delivery.key),
                meta=self.details(delivery, subscription.handle),
            )

        wanted = bool(options.get("filter_expired"))
        subscription.handle = client.subscribe(deliver_message, filter_expired=wanted)

    def details(self, delivery: Delivery, consumer: Consumer) -> Json:
        """What else there is to say about a message."""
        return {
            "pzq_id": kit.report_body(delivery.pzq_id)["b64"],
            "sent_us": _number(delivery.sent_us),
            "timeout_us": _number(delivery.timeout_us),
            "expired": consumer.is_expired(delivery),
        }

    @kit.op("settle")
    async def settle(self, sub: str, ref: str, how: str = "ack") -> None:
        subscription = self.adapter.subscription(sub)
        delivery = subscription.native.get(ref)
        if delivery is None or how not in ("ack", "nack"):
            raise kit.Failure("invalid", f"nothing to {how}")
        await subscription.handle.settle(delivery, how == "ack")

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str) -> None:
        self.adapter.handle_of(sub).close()

    @kit.op("pzq.monitor")
    async def monitor(self, session: str, timeout_ms: float | None = None) -> Json:
        return {"values": await self.adapter.session(session).ask(seconds(timeout_ms))}


def _number(value: int | None) -> int | str | None:
    return None if value is None else kit.number(value)


REFERENCE = Reference(
    protocol="pzq",
    ops=PzqOps,
    roles=("publisher", "consumer", "monitor"),
    settles="manual",
    callbacks=("message", "error"),
    caps=(
        "ack_timeout auto_reconnect callback_raise callback_sleep caller_key cancel clock_offset dedup "
        "endpoints filter_expired reentrant retry stats"
    ),
)
