"""rbfly (https://pypi.org/project/rbfly/), driven by the adapter protocol.

A session is one `StreamsClient`. The library knows no time-outs, tries to connect until it succeeds, and
writes a refused publish to its log only; all of that shows as it is. Iterating over a subscription is what
subscribes, so `subscribe` returns before the broker has answered (capability ``lazy_subscribe``) and a
refusal comes as an ``error`` event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from importlib.metadata import version
from typing import Any

import rbfly.streams as rbs
from rbfly.error import RbFlyError
from rbfly.streams.error import ProtocolError

from conformance.clients.adapter import kit

Json = dict[str, Any]

AUTH_CODES = range(7, 12)


def start_of(offset: Json) -> rbs.Offset:
    if offset["type"] == "timestamp":
        return rbs.Offset.timestamp(int(offset["value"]) / 1000)
    if offset["type"] == "offset":
        return rbs.Offset.offset(int(offset["value"]))
    return rbs.Offset(rbs.OffsetType[offset["type"].upper()])


def record(body: Json, key: Any = None, headers: Any = None, **_: Any) -> Any:
    data, key = kit.body_bytes(body), kit.integer(key)
    return rbs.stream_message_ctx(data, publish_id=key, app_properties=headers or {})


class Session:
    def __init__(self, client: Any) -> None:
        self.client = client
        self.publishers: dict[tuple[str, str | None], tuple[Any, AsyncExitStack]] = {}
        self.opening = asyncio.Lock()
        self.reading: set[asyncio.Task[None]] = set()

    async def publisher(self, target: str, name: str | None, kind: Any = rbs.Publisher) -> Any:
        """One at a time, as each kind of sending is a class of its own and they would share a reference."""
        async with self.opening:
            found, stack = self.publishers.get((target, name), (None, AsyncExitStack()))
            if not isinstance(found, kind):
                await stack.aclose()
                found = await stack.enter_async_context(self.client.publisher(target, name=name, cls=kind))
                self.publishers[target, name] = (found, stack)
        return found


class Adapter(kit.AdapterBase):
    adapter = library = "rbfly"
    library_version = version("rbfly")
    protocols = ("rabbitmq-stream",)
    roles = ("publisher", "consumer")
    formats = ("amqp",)
    limits: Mapping[str, int] = {"unconfirmed": 1}  # a publisher sends the next message after the confirm
    caps = (
        "auto_reconnect callback_sleep cancel lazy_subscribe named_publisher offset_without_consumer "
        "properties reentrant stats tls"
    )
    lacks = "rmqs.create.arguments"

    # deliveries are allowed by its own count of messages; what publishes or connects waits for the broker,
    # and unnamed publishers of a process share a name
    contract: Mapping[str, bool] = {
        "stores_positions": False,
        "pipelines": False,
        "skips_damaged": False,
        "beats_late": False,
    }

    def __init__(self) -> None:
        super().__init__()
        self.sending: set[asyncio.Task[None]] = set()

    @kit.op("connect")
    async def connect(self, session: str, endpoints: list[str], options: Json) -> None:
        host, port = kit.host_port(endpoints[0])
        user, password = options.get("user", "guest"), options.get("password", "guest")
        context = kit.tls_context(options)
        scheme = "rabbitmq-stream+tls" if context else "rabbitmq-stream"
        vhost = options.get("vhost", "/")  # "//" is the library's way to write the virtual host "/"
        client = rbs.streams_client(f"{scheme}://{user}:{password}@{host}:{port}/{vhost}", ssl=context)
        self.sessions[session] = Session(client)
        await client.get_protocol()

    @kit.op("state")
    async def state(self, session: str) -> Json:
        found = self.sessions.get(session)
        return {"open": found is not None and found.client.connected, "pending": None}

    @kit.op("close")
    async def close(self, session: str) -> None:
        found = self.session(session)
        await self.end(*found.reading)
        while found.publishers:
            await found.publishers.popitem()[1][1].aclose()
        await found.client.disconnect()

    @kit.op("publish")
    async def publish(
        self, session: str, target: str, args: Json, name: Any, wait: bool, request_id: int
    ) -> Json:
        publisher = await self.session(session).publisher(target, name)
        message = record(**args)
        if wait:
            await publisher.send(message)
            return {"outcome": "acked", "key": kit.number(message.stream_publish_id), "meta": {}}
        sending = asyncio.create_task(self.send(publisher, message, request_id))
        self.sending.add(sending)
        sending.add_done_callback(self.sending.discard)
        return {"outcome": "sent", "key": None, "meta": {}}

    async def send(self, publisher: Any, message: Any, request_id: int) -> None:
        outcome, code = "acked", None
        try:
            await publisher.send(message)
        except Exception as error:
            failure = self.classify(error)
            outcome, code = "nacked" if failure.definite else "unknown", failure.code
        key = kit.number(message.stream_publish_id)
        self.emit("outcome", id=request_id, outcome=outcome, key=key, code=code)

    @kit.op("publish_many")
    async def publish_many(self, session: str, target: str, messages: list[Json], name: str | None) -> Json:
        publisher = await self.session(session).publisher(target, name, rbs.PublisherBatchFast)
        for message in messages:
            publisher.batch(record(**message))
        await publisher.flush()  # the library tells the outcome of the whole batch only
        return {"outcomes": [{"outcome": "acked", "key": None}] * len(messages)}

    @kit.op("subscribe")
    async def subscribe(self, session: str, sub: str, target: str, options: Json, on_message: Json) -> None:
        found, subscription = self.session(session), kit.Subscription(self, sub, target, on_message)
        start = start_of(options.get("offset", {"type": "next"}))

        async def read() -> None:
            try:
                async for body in found.client.subscribe(target, offset=start):
                    context = rbs.get_message_ctx()
                    data = body if isinstance(body, bytes) else str(body).encode()
                    at = {"position": str(context.stream_offset), "ts": context.stream_timestamp * 1000}
                    await subscription.deliver(data, headers=dict(context.app_properties or {}), **at)
            except Exception as error:
                self.emit("error", sub=sub, where="read", error=self.classify(error).report())

        self.subs[sub] = subscription
        subscription.handle = asyncio.create_task(read())
        found.reading.add(subscription.handle)
        subscription.handle.add_done_callback(found.reading.discard)

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str) -> None:
        await self.end(self.subscription(sub).handle)

    async def end(self, *reading: asyncio.Task[None]) -> None:
        """End iterations, which unsubscribes; a user does so before leaving the client. One that ends itself
        does so as soon as it goes on."""
        for task in reading:
            task.cancel()
        others = [task for task in reading if task is not asyncio.current_task()]
        await asyncio.gather(*others, return_exceptions=True)

    @kit.op("rmqs.create")
    async def create(self, session: str, target: str) -> None:
        await self.session(session).client.create_stream(target)

    @kit.op("rmqs.delete")
    async def delete(self, session: str, target: str) -> None:
        await self.session(session).client.delete_stream(target)

    @kit.op("rmqs.declare_publisher")
    async def declare_publisher(self, session: str, target: str, name: str | None) -> None:
        await self.session(session).publisher(target, name)

    @kit.op("rmqs.delete_publisher")
    async def delete_publisher(self, session: str, target: str, name: str | None) -> None:
        found = self.session(session)
        await found.publisher(target, name)
        await found.publishers.pop((target, name))[1].aclose()

    @kit.op("rmqs.store_offset")
    async def store_offset(self, session: str, target: str, name: str, offset: int | str) -> None:
        await self.session(session).client.write_offset(target, name, int(offset))

    def classify(self, error: Exception) -> kit.Failure:
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, ProtocolError):
            return kit.Failure("auth" if error.code in AUTH_CODES else "refused", text, code=error.code)
        if isinstance(error, RbFlyError | ValueError) and not isinstance(error, OSError):  # as TLS errors are
            return kit.Failure("invalid" if isinstance(error, ValueError) else "protocol", text)
        return super().classify(error)


if __name__ == "__main__":
    kit.run(Adapter())
