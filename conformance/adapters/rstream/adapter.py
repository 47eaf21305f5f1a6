"""rstream (https://pypi.org/project/rstream/) behind the adapter protocol.

A session is one `Producer`, and a `Consumer` once an op needs it. rstream has no call that declares a
publisher: it does so with the first message. Only `state` looks at private attributes, because the library
tells nothing about its connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import rstream
from rstream import ConfirmationStatus, ConsumerOffsetSpecification, OffsetType, RawMessage
from rstream.connection import ConnectionClosed
from rstream.exceptions import ClientError, LeaderNotAvailable
from rstream.recovery import BackOffRecoveryStrategy

from conformance.adapter import kit

Json = dict[str, Any]

AUTH_CODES = range(7, 12)
LOST = -1  # the library's response code for messages that were open when the connection broke
COMPRESSION = {"none": rstream.CompressionType.No, "gzip": rstream.CompressionType.Gzip}
SETTINGS = {"user": "username", "password": "password", "vhost": "vhost", "frame_max": "frame_max"}
SETTINGS |= {"heartbeat_s": "heartbeat"}


class Session:
    def __init__(self, settings: Json) -> None:
        self.settings = settings
        self.users: dict[Any, Any] = {}
        self.closed = False

    def user(self, kind: Any) -> Any:
        if kind not in self.users:
            self.users[kind] = kind(**self.settings)
        return self.users[kind]

    def admin(self) -> Any:
        return self.users.get(rstream.Producer) or self.user(rstream.Consumer)

    def clients(self) -> list[Any]:
        pools = [user._pool._clients.values() for user in self.users.values()]
        return [client for pool in pools for group in pool for client in group]


def record(body: Json, key: int | str | None = None) -> RawMessage:
    return RawMessage(kit.body_bytes(body), None if key is None else int(key))


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
    # the library's own constants; close waits up to 5 s for each of two answers
    limits: Mapping[str, int] = {
        "connect_timeout_ms": 10_000,
        "request_timeout_ms": 10_000,
        "close_timeout_ms": 11_000,
    }
    caps = (
        "ack_timeout auto_reconnect callback_raise callback_sleep cancel named_publisher "
        "offset_without_consumer reentrant sac stats subentry tls"
    )

    @kit.op("connect")
    async def connect(
        self, session: str, endpoints: list[str], options: Any = None, roles: Any = ("publisher",)
    ) -> None:
        options = {"user": "guest", "password": "guest", **(options or {})}
        host, port = kit.host_port(endpoints[0])
        settings = {"host": host, "port": port, "ssl_context": kit.tls_context(options)}
        settings |= {theirs: options[ours] for ours, theirs in SETTINGS.items() if ours in options}
        if "mechanism" in options:
            settings["sasl_configuration_mechanism"] = rstream.SlasMechanism(options["mechanism"])
        if "auto_reconnect" in options:  # with the shortest delay that the library offers
            settings["recovery_strategy"] = BackOffRecoveryStrategy(options["auto_reconnect"], jitter=1)
        if options.get("listen", True):
            settings["on_close_handler"] = lambda info: self.lost(session, info)
        new = self.sessions[session] = Session(settings)
        await new.user(rstream.Producer if "publisher" in roles else rstream.Consumer).start()

    def lost(self, session: str, info: rstream.OnClosedErrorInfo) -> None:
        what = "target_closed" if info.reason == "Metadata Update" else "connection_lost"
        self.emit("session", session=session, what=what, text=info.reason, targets=info.streams)
        self.trip("session")

    @kit.op("state")
    async def state(self, session: str) -> Json:
        if session not in self.sessions:
            return {"open": False, "pending": None}
        found = self.sessions[session]
        alive = [client.is_connection_alive() for client in found.clients()]
        waiting = [len(client._waiters) for client in found.clients()]
        if producer := found.users.get(rstream.Producer):
            waiting += [len(confirms) for confirms in producer._waiting_for_confirm.values()]
        return {"open": not found.closed and (any(alive) or not alive), "pending": sum(waiting)}

    @kit.op("close")
    async def close(self, session: str) -> None:
        found = self.session(session)
        found.closed = True
        for user in found.users.values():
            await user.close()

    @kit.op("publish")
    async def publish(
        self, session: str, target: str, body: Json, request_id: int | None = None, key: Any = None,
        name: str | None = None, wait: bool = True, timeout_ms: float | None = None,
    ) -> Json:  # fmt: skip
        message, producer = record(body, key), self.session(session).user(rstream.Producer)
        if wait:
            limit = {} if timeout_ms is None else {"timeout": timeout_ms / 1000}
            await producer.send_wait(target, message, name, **limit)
            return {"outcome": "acked", "key": kit.number(message.publishing_id or 0), "meta": {}}

        def confirmed(status: ConfirmationStatus) -> None:
            self.emit("outcome", id=request_id, **outcome(status))
            self.trip("confirm")

        await producer.send(target, message, name, confirmed)
        return {"outcome": "sent", "key": None, "meta": {}}

    @kit.op("publish_many")
    async def publish_many(
        self, session: str, target: str, messages: list[Json], request_id: int | None = None,
        name: str | None = None, wait: bool = True, subentry: str | None = None,
    ) -> Json:  # fmt: skip
        producer = self.session(session).user(rstream.Producer)
        records = [record(**message) for message in messages]
        ends: dict[int, Json] = {}
        expected, complete = 1 if subentry else len(records), asyncio.Event()  # a sub-entry batch has one id

        def confirmed(status: ConfirmationStatus) -> None:
            ends[status.message_id] = outcome(status)
            self.emit("outcome", id=request_id, **outcome(status))
            if len(ends) == expected:
                complete.set()
            self.trip("confirm")

        if subentry:
            await producer.send_sub_entry(target, records, COMPRESSION[subentry], name, confirmed)
        else:
            await producer.send_batch(target, records, name, confirmed)
        if not wait:
            return {"outcomes": [{"outcome": "sent", "key": record.publishing_id} for record in records]}
        await complete.wait()
        if subentry:
            return {"outcomes": list(ends.values()) * len(records)}
        return {"outcomes": [ends[record.publishing_id or 0] for record in records]}

    @kit.op("subscribe")
    async def subscribe(
        self, session: str, sub: str, target: str, options: Any = None, on_message: Any = None
    ) -> None:
        found, options = self.session(session), options or {}
        subscription = self.subs[sub] = kit.Subscription(self, sub, target, on_message)

        async def callback(data: bytes, context: rstream.MessageContext) -> None:
            at = {"position": str(context.offset), "ts": kit.number(context.timestamp)}
            await subscription.deliver(bytes(data), **at)

        start = options.get("offset", {"type": "first"})
        value = None if start.get("value") is None else int(start["value"])
        consumer = found.user(rstream.Consumer)
        subscriber_id = await consumer.subscribe(
            target,
            callback,
            offset_specification=ConsumerOffsetSpecification(OffsetType[start["type"].upper()], value),
            properties=options.get("properties"),
            subscriber_name=options.get("name"),
            **({"initial_credit": options["credit"]} if "credit" in options else {}),
        )
        subscription.handle = (consumer, subscriber_id)

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str) -> None:
        consumer, subscriber_id = self.subscription(sub).handle
        await consumer.unsubscribe(subscriber_id)

    @kit.op("rmqs.create")
    async def create(self, session: str, target: str, arguments: Any = None) -> None:
        await self.session(session).admin().create_stream(target, arguments)

    @kit.op("rmqs.delete")
    async def delete(self, session: str, target: str) -> None:
        await self.session(session).admin().delete_stream(target)

    @kit.op("rmqs.metadata")
    async def metadata(self, session: str, targets: list[str]) -> Json:
        admin = self.session(session).admin()
        return {"streams": [{"name": name, "exists": await admin.stream_exists(name)} for name in targets]}

    @kit.op("rmqs.store_offset")
    async def store_offset(self, session: str, target: str, name: str, offset: int | str) -> None:
        await self.session(session).user(rstream.Consumer).store_offset(target, name, int(offset))

    @kit.op("rmqs.query_offset")
    async def query_offset(self, session: str, target: str, name: str) -> Json:
        consumer = self.session(session).user(rstream.Consumer)
        return {"offset": kit.number(await consumer.query_offset(target, name))}

    def classify(self, error: Exception) -> kit.Failure:
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, rstream.ServerError):
            if isinstance(error.code, int):
                return kit.Failure("auth" if error.code in AUTH_CODES else "refused", text, code=error.code)
            return kit.Failure("connection" if error.args else "refused", text)
        if isinstance(error, ClientError | ValueError):
            return kit.Failure("refused" if isinstance(error, LeaderNotAvailable) else "invalid", text)
        return (
            kit.Failure("connection", text)
            if isinstance(error, ConnectionClosed)
            else super().classify(error)
        )


if __name__ == "__main__":
    kit.run(Adapter())
