"""The ops of Redis."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.clients.adapter import kit
from conformance.clients.adapter.contract import STRICT
from conformance.clients.reference.kit import Reference, ReferenceAdapter, Runtime, seconds
from conformance.clients.reference.redis.client import Received, RedisClient, Subscription
from conformance.clients.reference.redis.link import Settings
from conformance.clients.reference.redis.resp import ErrorReply

Json = dict[str, Any]


class RedisOps:
    """What the adapter does for Redis only."""

    def __init__(self, adapter: ReferenceAdapter) -> None:
        self.adapter = adapter

    def client(self, runtime: Runtime, endpoints: Any, options: Mapping[str, Any]) -> RedisClient:
        settings = Settings(
            endpoint=endpoints[0],
            resp=options.get("resp", 2),
            user=options.get("user"),
            password=options.get("password"),
            auto_reconnect=bool(options.get("auto_reconnect")),
        )
        return runtime.part(RedisClient)(runtime, settings)

    def session(self, name: str) -> RedisClient:
        """The client of a session."""
        found: RedisClient = self.adapter.session(name)
        return found

    @kit.op("publish")
    async def publish(
        self, session: str, target: str, body: Json, wait: bool = True, timeout_ms: float | None = None,
        request_id: int | None = None,
    ) -> Json:  # fmt: skip
        payload = kit.body_bytes(body)
        client = self.session(session)
        sending = asyncio.ensure_future(client.publish(target.encode(), payload, seconds(timeout_ms)))

        async def work() -> Json:
            return {"meta": {"receivers": await sending}}

        return await self.adapter.published(work(), wait, request_id)

    @kit.op("subscribe")
    async def subscribe(
        self, session: str, sub: str, target: str, options: Any = None, on_message: Any = None,
        timeout_ms: float | None = None,
    ) -> None:  # fmt: skip
        client = self.session(session)
        surfacing = self.adapter.surfacing(sub, target, on_message)

        async def deliver(message: Received) -> None:
            channel = message.channel.decode(errors="replace")
            await surfacing.deliver(message.payload, meta={"channel": channel})

        way = (options or {}).get("way", "channel")
        subscription = client.runtime.part(Subscription)(client.runtime, way, target.encode(), deliver)
        await client.subscribe(subscription, seconds(timeout_ms))
        surfacing.handle = client, subscription

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str, drain: bool = False, timeout_ms: float | None = None) -> None:
        client, subscription = self.adapter.handle_of(sub)
        await client.unsubscribe(subscription, seconds(timeout_ms))

    @kit.op("redis.call")
    async def call(self, session: str, words: Sequence[Any], timeout_ms: float | None = None) -> Json:
        answer = await self.session(session).call(words_of(words), seconds(timeout_ms))
        return {"value": value_of(answer)}

    @kit.op("redis.pipeline")
    async def pipeline(
        self, session: str, commands: Sequence[Sequence[Any]], timeout_ms: float | None = None
    ) -> Json:
        given = [words_of(words) for words in commands]
        answers = await self.session(session).pipeline(given, seconds(timeout_ms))
        return {
            "results": [
                {"error": one.code} if isinstance(one, ErrorReply) else {"value": value_of(one)}
                for one in answers
            ]
        }


def words_of(words: Sequence[Any]) -> list[bytes]:
    """A command as the op has it."""
    return [word.encode() if isinstance(word, str) else kit.body_bytes(word) for word in words]


def value_of(answer: Any) -> Any:
    """An answer as the op returns it."""
    if isinstance(answer, bytes):
        return kit.report_body(answer)
    if isinstance(answer, ErrorReply):
        return {"error": answer.code}
    if isinstance(answer, int) and not isinstance(answer, bool):
        return kit.number(answer)
    return [value_of(one) for one in answer] if isinstance(answer, list | tuple) else answer


REFERENCE = Reference(
    protocol="redis",
    ops=RedisOps,
    roles=("publisher", "consumer", "caller"),
    contract={**STRICT, "many_connections": True},
    caps=(
        "ack_timeout auto_reconnect callback_raise callback_sleep cancel clock_offset reentrant resp3 shards "
        "stats tls"
    ),
)
