"""The ops of NATS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.clients.adapter import kit
from conformance.clients.reference.kit import Reference, ReferenceAdapter, Runtime, seconds
from conformance.clients.reference.nats.client import NatsClient
from conformance.clients.reference.nats.wire import Message

Json = dict[str, Any]


class NatsOps:
    """What the adapter does for NATS only."""

    def __init__(self, adapter: ReferenceAdapter) -> None:
        self.adapter = adapter

    def client(self, runtime: Runtime, endpoints: Any, options: Mapping[str, Any]) -> NatsClient:
        return runtime.part(NatsClient)(runtime, endpoints, options)

    @kit.op("publish")
    async def publish(
        self, session: str, target: str, body: Any, wait: bool = True, timeout_ms: float | None = None,
        request_id: int | None = None,
    ) -> Json:  # fmt: skip
        client: NatsClient = self.adapter.session(session)
        deadline = client.runtime.clock.deadline(seconds(timeout_ms))
        link = await client.write_message(target, kit.body_bytes(body), deadline)
        answer = link.ping()

        async def work() -> Json:
            await client.synced(link, deadline, answer)
            return {}

        return await self.adapter.published(work(), wait, request_id)

    @kit.op("flush")
    async def flush(self, session: str, timeout_ms: float | None = None) -> None:
        await self.adapter.session(session).flush(seconds(timeout_ms))

    @kit.op("nats.request")
    async def request(self, session: str, target: str, body: Any, timeout_ms: float | None = None) -> Json:
        client: NatsClient = self.adapter.session(session)
        answer = await client.request(target, kit.body_bytes(body), seconds(timeout_ms))
        return {"body": kit.report_body(answer.payload)}

    @kit.op("subscribe")
    async def subscribe(
        self, session: str, sub: str, target: str, options: Json, on_message: Json,
        timeout_ms: float | None = None,
    ) -> None:  # fmt: skip
        client: NatsClient = self.adapter.session(session)
        subscription = self.adapter.surfacing(sub, target, on_message)

        async def deliver(message: Message) -> None:
            await subscription.deliver(message.payload, meta={"subject": message.subject})

        subscription.handle = (
            client,
            await client.subscribe(
                target,
                deliver,
                seconds(timeout_ms),
                queue=options.get("queue", ""),
                limit=options.get("max", 0),
                pending_limit=options.get("pending_limit", 0),
            ),
        )

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str, drain: bool = False, timeout_ms: float | None = None) -> None:
        client, listener = self.adapter.handle_of(sub)
        await client.unsubscribe(listener, drain=drain, timeout=seconds(timeout_ms))

    @kit.op("nats.drain")
    async def drain(self, session: str, timeout_ms: float | None = None) -> None:
        await self.adapter.session(session).drain(seconds(timeout_ms))


REFERENCE = Reference(
    protocol="nats",
    ops=NatsOps,
    roles=("publisher", "consumer", "requester"),
    caps=(
        "ack_timeout auto_reconnect callback_raise callback_sleep cancel clock_offset endpoints keepalive "
        "max_messages pending_limit queue_groups reentrant stats token"
    ),
)
