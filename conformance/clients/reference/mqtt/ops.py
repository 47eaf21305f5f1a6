"""The ops of MQTT."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from conformance.clients.adapter import kit
from conformance.clients.reference.kit import DEFAULT_TIMEOUT_S, Reference, ReferenceAdapter, Runtime, seconds
from conformance.clients.reference.mqtt.client import MqttClient
from fakebrokers.mqtt.frames import Publish

Json = dict[str, Any]


class MqttOps:
    """What the adapter does for MQTT only."""

    def __init__(self, adapter: ReferenceAdapter) -> None:
        self.adapter = adapter

    def client(self, runtime: Runtime, endpoints: Any, options: Mapping[str, Any]) -> MqttClient:
        return runtime.part(MqttClient)(runtime, list(endpoints), options)

    @kit.op("publish")
    async def publish(
        self, session: str, target: str, body: Any, wait: bool = True, qos: int = 1, retain: bool = False,
        timeout_ms: float | None = None, request_id: int | None = None,
    ) -> Json:  # fmt: skip
        client: MqttClient = self.adapter.session(session)
        payload = kit.body_bytes(body)
        if not qos and wait:
            raise kit.Failure("unsupported", "nothing acknowledges a message with QoS 0")

        async def work() -> Json:
            number = await client.publish(target, payload, qos, retain=retain, timeout=deadline_s(timeout_ms))
            return {"key": number}

        begun = asyncio.ensure_future(work())  # those that wait do not overtake those that do not
        if not qos:
            await begun
            return {"outcome": "sent", "key": None, "meta": {}}
        return await self.adapter.published(begun, wait, request_id)

    @kit.op("subscribe")
    async def subscribe(
        self, session: str, sub: str, target: str, options: Any = None, on_message: Any = None,
        timeout_ms: float | None = None,
    ) -> None:  # fmt: skip
        client: MqttClient = self.adapter.session(session)
        subscription = self.adapter.surfacing(sub, target, on_message)

        async def deliver_message(frame: Publish) -> None:
            meta = {"topic": frame.topic, "qos": frame.qos, "retain": frame.retain, "dup": frame.dup}
            await subscription.deliver(frame.payload, meta=meta, redelivered=frame.dup)

        wanted = (options or {}).get("qos", 1)
        made = await client.subscriptions.subscribe(target, wanted, deliver_message, deadline_s(timeout_ms))
        subscription.handle = (client, made)

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str, timeout_ms: float | None = None) -> None:
        client, made = self.adapter.handle_of(sub)
        await client.subscriptions.unsubscribe(made, deadline_s(timeout_ms))

    @kit.op("set_counter")
    async def set_counter(self, session: str, which: str, value: int | str) -> None:
        if which != "publishing":
            raise kit.Failure("unsupported", f"no counter {which}")
        self.adapter.session(session).exchanges.last_id = int(value) - 1


def deadline_s(timeout_ms: float | None) -> float:
    """How long an op may take."""
    found = seconds(timeout_ms)
    return DEFAULT_TIMEOUT_S if found is None else found


REFERENCE = Reference(
    protocol="mqtt",
    ops=MqttOps,
    roles=("publisher", "consumer"),
    caps=(
        "ack_timeout at_release auto_reconnect callback_raise callback_sleep cancel clock_offset "
        "counter_seed endpoints lasting reentrant stats stop_in_callback tls will"
    ),
)
