"""The ops of Narconi."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from conformance.clients.adapter import kit
from conformance.clients.reference.kit import ClientError, Reference, ReferenceAdapter, Runtime, seconds
from conformance.clients.reference.narconi.channels import Subscription
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Delivery
from conformance.clients.reference.narconi.settings import Settings

Json = dict[str, Any]
T = TypeVar("T")

CONFIRMED: Json = {"outcome": "acked", "key": None, "meta": {}}


class NarconiOps:
    """What the adapter does for Narconi only."""

    def __init__(self, adapter: ReferenceAdapter) -> None:
        self.adapter = adapter

    def client(self, runtime: Runtime, endpoints: Any, options: Mapping[str, Any]) -> NarconiClient:
        base = str(options.get("base") or endpoints[0])
        settings = Settings(
            endpoint=base.removeprefix("http://").rstrip("/"),
            project=options.get("project", "test"),
            keepalive_s=options.get("keepalive_s"),
            auto_reconnect=bool(options.get("auto_reconnect")),
        )
        return runtime.part(NarconiClient)(runtime, settings)

    def session(self, name: str) -> NarconiClient:
        """The client of a session."""
        found: NarconiClient = self.adapter.session(name)
        return found

    async def within(self, session: str, timeout_ms: float | None, work: Coroutine[Any, Any, T]) -> T:
        """Do it in time."""
        return await self.session(session).runtime.tasks.within(seconds(timeout_ms), work)

    # HTTP

    @kit.op("narc.ensure_queue")
    async def ensure_queue(self, session: str, target: str, timeout_ms: float | None = None) -> None:
        await self.within(session, timeout_ms, self.session(session).http.ensure(target))

    @kit.op("narc.delete_queue")
    async def delete_queue(self, session: str, target: str, timeout_ms: float | None = None) -> None:
        await self.within(session, timeout_ms, self.session(session).http.delete(target))

    @kit.op("narc.post")
    async def post(
        self, session: str, target: str, body: Json, headers: Any = None, timeout_ms: float | None = None
    ) -> Json:
        work = self.session(session).http.post(target, kit.body_bytes(body), headers or {})
        await self.within(session, timeout_ms, work)
        return CONFIRMED

    @kit.op("narc.take")
    async def take(self, session: str, target: str, timeout_ms: float | None = None) -> Json:
        delivery = await self.within(session, timeout_ms, self.session(session).http.take(target))
        if delivery is None:
            return {"message": None}
        body = kit.report_body(delivery.body)
        shape = {"ref": self.adapter.next_ref(), "sub": "", "target": target, "body": body}
        return {"message": {**shape, **details(delivery), "meta": {}}}

    # WebSockets

    @kit.op("publish")
    async def publish(
        self, session: str, target: str, body: Json, headers: Any = None, timeout_ms: float | None = None,
        wait: bool = True, request_id: int | None = None,
    ) -> Json:  # fmt: skip
        sending = self.session(session).publish(target, kit.body_bytes(body), headers or {})

        async def work() -> Json:
            await self.within(session, timeout_ms, sending)
            return {}

        return await self.adapter.published(work(), wait, request_id)

    @kit.op("subscribe")
    async def subscribe(
        self, session: str, sub: str, target: str, options: Any = None, on_message: Any = None,
        timeout_ms: float | None = None,
    ) -> None:  # fmt: skip
        given: Json = options or {}
        client = self.session(session)
        subscription = self.adapter.surfacing(sub, target, on_message)

        async def delivered(delivery: Delivery) -> None:
            await subscription.deliver(delivery.body, native=delivery, **details(delivery))

        known = {"limit": given.get("limit"), "encoding": given.get("encoding")}
        work = client.subscribe(target, delivered, ack=bool(given.get("ack")), **known)
        subscription.handle = await self.within(session, timeout_ms, work)

    @kit.op("settle")
    async def settle(self, sub: str, ref: str, how: str = "ack") -> None:
        subscription = self.adapter.subscription(sub)
        delivery: Delivery | None = subscription.native.get(ref)
        if delivery is None or delivery.source is None or delivery.ack_id is None or how == "nack":
            raise kit.Failure("invalid", f"nothing to {how}")
        if how == "ack_to":
            delivery.source.settle_to(delivery.ack_id)
        else:
            delivery.source.settle(delivery.ack_id)

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str, drain: bool = False, timeout_ms: float | None = None) -> None:
        handle: Subscription = self.adapter.handle_of(sub)
        if drain and handle.socket.is_open:
            try:
                with suppress(ClientError):  # a connection that is lost has nothing left to drain
                    await asyncio.wait_for(handle.drain(), seconds(timeout_ms))
            except TimeoutError:
                handle.abort()
                raise ClientError("timeout", "deliveries wait for their acknowledgement") from None
            except asyncio.CancelledError:  # it was asked to end, and nothing waits until it has
                handle.abort()
                raise
        await handle.close()


def details(delivery: Delivery) -> Json:
    """A delivery as the runner wants it."""
    return {
        "headers": delivery.headers,
        "redelivered": delivery.redelivered,
        "ts": delivery.timestamp,
        "position": delivery.ack_id,
    }


REFERENCE = Reference(
    protocol="narconi",
    ops=NarconiOps,
    roles=("publisher", "consumer", "admin", "http"),
    settles="manual",
    caps=(
        "ack_timeout ack_to auto_reconnect callback_raise callback_sleep cancel clock_offset encoding "
        "keepalive reentrant tls"
    ),
)
