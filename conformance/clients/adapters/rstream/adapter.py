"""rstream (https://pypi.org/project/rstream/), driven by the adapter protocol.

A session is one `Producer`, and a `Consumer` once an op needs it; one `Producer` more for filter values
and a `SuperStreamProducer` or `SuperStreamConsumer` for each super stream. rstream has no call that
declares a publisher: it does so with the first message. Only `state` looks at private attributes, because the
library tells nothing about its connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import rstream
from rstream import (
    ConfirmationStatus,
    Consumer,
    ConsumerOffsetSpecification,
    FilterConfiguration,
    OffsetType,
    Producer,
    RawMessage,
    RouteType,
    SuperStreamConsumer,
    SuperStreamProducer,
)
from rstream.connection import ConnectionClosed
from rstream.exceptions import ClientError, LeaderNotAvailable
from rstream.recovery import BackOffRecoveryStrategy

from conformance.clients.adapter import kit

Json = dict[str, Any]

AUTH_CODES = range(7, 12)
LOST = -1  # the library's response code for messages that were open when the connection broke
COMPRESSION = {"none": rstream.CompressionType.No, "gzip": rstream.CompressionType.Gzip}
ROUTES = {"hash": RouteType.Hash, "key": RouteType.Key}
SETTINGS = {"vhost": "vhost", "frame_max": "frame_max", "heartbeat_s": "heartbeat"}


class Session:
    def __init__(self, settings: Json) -> None:
        self.settings = settings
        self.users: dict[Any, Any] = {}
        self.closed = False
        self.waiting: set[asyncio.Event] = set()
        self.starting = asyncio.Lock()

    def user(self, kind: Any, purpose: Any = None, **more: Any) -> Any:
        key = kind if purpose is None else (kind, purpose)
        if key not in self.users:
            self.users[key] = kind(**self.settings, **more)
        return self.users[key]

    async def started(self, kind: Any, purpose: Any, **more: Any) -> Any:
        """One at a time, and kept once it has started: what begins meanwhile must not use half of one."""
        async with self.starting:
            if (kind, purpose) not in self.users:
                user = kind(**self.settings, **more)
                await user.start()
                if self.closed:
                    await user.close()
                    raise kit.Failure("closed", "the session is closed")
                self.users[kind, purpose] = user
        return self.users[kind, purpose]

    def admin(self) -> Any:
        return self.users.get(Producer) or self.user(Consumer)

    def state(self) -> Json:
        pools = [user._pool._clients.values() for user in self.users.values()]
        clients = [client for pool in pools for group in pool for client in group]
        waiting = [client._waiters for client in clients]
        if Producer in self.users:
            waiting += self.users[Producer]._waiting_for_confirm.values()
        alive = not clients or any(client.is_connection_alive() for client in clients)
        return {"open": alive and not self.closed, "pending": sum(map(len, waiting))}


@dataclass
class Routed(RawMessage):
    routing_key: str = ""


async def key_of(message: Routed) -> str:
    return message.routing_key


async def filter_value_of(message: RawMessage) -> str | None:
    return kit.filter_value(message.data)


def record(body: Json, key: int | str | None = None, **_: Any) -> RawMessage:
    return RawMessage(kit.body_bytes(body), kit.integer(key))


def outcome(status: ConfirmationStatus) -> Json:
    word = "acked" if status.is_confirmed else "unknown" if status.response_code == LOST else "nacked"
    return {"outcome": word, "key": kit.number(status.message_id), "code": status.response_code or None}


class Adapter(kit.AdapterBase):
    adapter = library = "rstream"
    library_version = rstream.__version__
    protocols = ("rabbitmq-stream",)
    roles = ("publisher", "consumer", "admin")
    formats = ("raw",)
    callbacks = ("message", "confirm", "session")
    caps = (
        "ack_timeout auto_reconnect callback_raise callback_sleep cancel filters named_publisher "
        "offset_without_consumer reentrant sac stats subentry super_streams tls"
    )
    # a connection for each producer and consumer; a stream that moves is reported to the application; frames
    # have no largest size
    contract: Mapping[str, bool] = {"many_connections": True, "leaves_dropped": True, "reads_on": True}
    # the library's own constants; close waits up to 5 s for each of two answers
    limits = kit.limits(connect=10_000, request=10_000, close=11_000)

    @kit.op("connect")
    async def connect(self, session: str, endpoints: list[str], options: Json, roles: list[str]) -> None:
        host, port = kit.host_port(endpoints[0])
        settings: Json = {"host": host, "port": port, "ssl_context": kit.tls_context(options)}
        settings |= {"username": options.get("user", "guest"), "password": options.get("password", "guest")}
        settings |= {theirs: options[ours] for ours, theirs in SETTINGS.items() if ours in options}
        if "mechanism" in options:
            settings["sasl_configuration_mechanism"] = rstream.SlasMechanism(options["mechanism"])
        if "auto_reconnect" in options:  # with the shortest delay that the library offers
            settings["recovery_strategy"] = BackOffRecoveryStrategy(options["auto_reconnect"], jitter=1)
        if options.get("listen", True):
            settings["on_close_handler"] = lambda info: self.lost(session, info)
        new = self.sessions[session] = Session(settings)
        await new.user(Producer if "publisher" in roles else Consumer).start()

    def lost(self, session: str, info: rstream.OnClosedErrorInfo) -> None:
        what = "target_closed" if info.reason == "Metadata Update" else "connection_lost"
        self.emit("session", session=session, what=what, text=info.reason, targets=info.streams)
        self.trip("session")

    @kit.op("state")
    async def state(self, session: str) -> Json:
        found = self.sessions.get(session)
        return {"open": False, "pending": None} if found is None else found.state()

    @kit.op("close")
    async def close(self, session: str) -> None:
        found = self.session(session)
        found.closed = True
        for user in found.users.values():
            await user.close()
        for complete in found.waiting:  # no confirm can come any more
            complete.set()

    def confirmed(self, status: ConfirmationStatus, request_id: int) -> None:
        self.emit("outcome", id=request_id, **outcome(status))
        self.trip("confirm")

    @kit.op("publish")
    async def publish(
        self, session: str, target: str, args: Json, name: Any, wait: bool, request_id: int, timeout_ms: Any
    ) -> Json:
        if "routing" in args:
            return await self.publish_routed(session, target, **args["routing"], body=args["body"])
        message, found = record(**args), self.session(session)
        producer = found.user(Producer)
        if args.get("filtered"):
            producer = await found.started(Producer, "filtered", filter_value_extractor=filter_value_of)
        if not wait:
            await producer.send(target, message, name, lambda status: self.confirmed(status, request_id))
            return {"outcome": "sent", "key": None, "meta": {}}
        limit = {} if timeout_ms is None else {"timeout": timeout_ms / 1000}
        await producer.send_wait(target, message, name, **limit)
        return {"outcome": "acked", "key": kit.number(message.publishing_id or 0), "meta": {}}

    async def publish_routed(self, session: str, target: str, by: str, key: str, body: Json) -> Json:
        more = {"super_stream": target, "routing": ROUTES[by], "routing_extractor": key_of}
        producer = await self.session(session).started(SuperStreamProducer, (target, by), **more)
        end: asyncio.Future[ConfirmationStatus] = asyncio.get_running_loop().create_future()

        def confirmed(status: ConfirmationStatus) -> None:
            if not end.done():
                end.set_result(status)

        await producer.send(Routed(kit.body_bytes(body), routing_key=key), confirmed)
        reported = outcome(await end)
        if reported["outcome"] == "acked":
            return {"outcome": "acked", "key": reported["key"], "meta": {}}
        kind = "connection" if reported["outcome"] == "unknown" else "refused"
        raise kit.Failure(kind, f"the message was not confirmed: {reported}", code=reported["code"])

    @kit.op("publish_many")
    async def publish_many(
        self, session: str, target: str, messages: Any, name: Any, wait: bool, subentry: Any, request_id: int
    ) -> Json:
        found, records = self.session(session), [record(**message) for message in messages]
        producer = found.user(Producer)
        ends: dict[int | None, Json] = {}
        expected = 1 if subentry else len(records)  # a sub-entry batch has one id
        complete = asyncio.Event()

        def confirmed(status: ConfirmationStatus) -> None:
            ends[status.message_id] = outcome(status)
            if len(ends) == expected:
                complete.set()
            self.confirmed(status, request_id)

        if subentry:
            await producer.send_sub_entry(target, records, COMPRESSION[subentry], name, confirmed)
        else:
            await producer.send_batch(target, records, name, confirmed)
        if not wait:
            return {"outcomes": [{"outcome": "sent", "key": record.publishing_id} for record in records]}
        found.waiting.add(complete)
        await complete.wait()
        keys = list(ends) * len(records) if subentry else [record.publishing_id for record in records]
        return {"outcomes": [ends.get(key, {"outcome": "unknown", "key": key}) for key in keys]}

    @kit.op("subscribe")
    async def subscribe(self, session: str, sub: str, target: str, options: Json, on_message: Json) -> None:
        found, properties = self.session(session), dict(options.get("properties") or {})
        subscription = self.subs[sub] = kit.Subscription(self, sub, target, on_message)

        async def callback(data: bytes, context: rstream.MessageContext) -> None:
            meta = {"partition": context.stream} if context.stream != target else {}
            at = {"position": str(context.offset), "ts": kit.number(context.timestamp), "meta": meta}
            await subscription.deliver(bytes(data), **at)

        start = options.get("offset", {"type": "first"})
        kind, value = OffsetType[start["type"].upper()], kit.integer(start.get("value"))
        more: Json = {"offset_specification": ConsumerOffsetSpecification(kind, value)}
        if "credit" in options:
            more["initial_credit"] = options["credit"]
        if "filter" in options:
            wanted = options["filter"]
            more["filter_input"] = FilterConfiguration(
                wanted["values"], lambda body: kit.is_wanted(body, wanted), bool(wanted.get("unfiltered"))
            )
        if options.get("super_stream"):
            if "single-active-consumer" in properties:
                properties["super-stream"] = target  # which the library leaves to its users
            every = await found.started(SuperStreamConsumer, sub, super_stream=target)
            await every.subscribe(
                callback, properties=properties or None, subscriber_name=options.get("name"), **more
            )
            subscription.handle = (every,)
            return
        consumer = found.user(Consumer)
        more |= {"properties": options.get("properties"), "subscriber_name": options.get("name")}
        subscription.handle = (consumer, await consumer.subscribe(target, callback, **more))

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str) -> None:
        consumer, *subscriber = self.handle_of(sub)
        await consumer.unsubscribe(*subscriber)

    @kit.op("rmqs.create")
    async def create(self, session: str, target: str, arguments: Json | None) -> None:
        await self.session(session).admin().create_stream(target, arguments)

    @kit.op("rmqs.delete")
    async def delete(self, session: str, target: str) -> None:
        await self.session(session).admin().delete_stream(target)

    async def maker(self, session: str, target: str) -> Any:
        """What the library makes a super stream with: a producer for it that never publishes."""
        more = {"super_stream": target, "routing_extractor": key_of}
        return await self.session(session).started(SuperStreamProducer, (target, "made"), **more)

    @kit.op("rmqs.create_super_stream")
    async def create_super_stream(
        self, session: str, target: str, partitions: int = 0, keys: Any = None, arguments: Json | None = None
    ) -> None:
        made = await self.maker(session, target)
        await made.create_super_stream(target, partitions, keys, arguments)

    @kit.op("rmqs.delete_super_stream")
    async def delete_super_stream(self, session: str, target: str) -> None:
        await (await self.maker(session, target)).delete_super_stream(target)

    @kit.op("rmqs.metadata")
    async def metadata(self, session: str, targets: list[str]) -> Json:
        admin = self.session(session).admin()
        return {"streams": [{"name": name, "exists": await admin.stream_exists(name)} for name in targets]}

    @kit.op("rmqs.store_offset")
    async def store_offset(self, session: str, target: str, name: str, offset: int | str) -> None:
        await self.session(session).user(Consumer).store_offset(target, name, int(offset))

    @kit.op("rmqs.query_offset")
    async def query_offset(self, session: str, target: str, name: str) -> Json:
        return {"offset": kit.number(await self.session(session).user(Consumer).query_offset(target, name))}

    def classify(self, error: Exception) -> kit.Failure:
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, rstream.ServerError):
            if isinstance(error.code, int):
                return kit.Failure("auth" if error.code in AUTH_CODES else "refused", text, code=error.code)
            return kit.Failure("connection" if error.args else "refused", text)
        unreadable = "is not a valid" in text or "Could not decode" in text
        if isinstance(error, ValueError) and unreadable:  # an enum, or a whole frame
            return kit.Failure("protocol", text)
        if isinstance(error, ClientError | ValueError) and not isinstance(error, OSError):  # TLS errors are
            return kit.Failure("refused" if isinstance(error, LeaderNotAvailable) else "invalid", text)
        lost = isinstance(error, ConnectionClosed)
        return kit.Failure("connection", text) if lost else super().classify(error)


if __name__ == "__main__":
    kit.run(Adapter())
