"""A small client on aiohttp (https://pypi.org/project/aiohttp/) behind the adapter protocol.

Narconi has no client library; `narconi_client` is what a user of aiohttp makes of Narconi's document.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import aiohttp

sys.path.insert(0, str(Path(__file__).parent))

from narconi_client import Narconi
from narconi_sockets import ConnectionClosed, Message, NarconiError, ProtocolError

from conformance.adapter import kit

Json = dict[str, Any]


def seconds(timeout_ms: float | None) -> float | None:
    return None if timeout_ms is None else timeout_ms / 1000


def details(message: Message) -> Json:
    headers = {name if name == "Content-Type" else name.lower(): v for name, v in message.headers.items()}
    shown: Json = {"headers": headers, "redelivered": message.redelivered}
    return shown | {"ts": message.timestamp, "position": message.ack_id}


class Adapter(kit.AdapterBase):
    adapter = "narconi-python"
    library = "aiohttp"
    library_version = aiohttp.__version__
    protocols = ("narconi",)
    roles = ("publisher", "consumer", "admin", "http")
    caps = "ack_timeout ack_to callback_raise callback_sleep cancel encoding keepalive reentrant tls"
    settles = "manual"

    @kit.op("connect")
    async def connect(self, session: str, endpoints: list[str], options: Json) -> None:
        def ended(text: str, problem: Exception | None) -> None:
            if problem is not None:
                self.emit("error", session=session, where="read", error=self.classify(problem).report())
            self.emit("session", session=session, what="connection_lost", text=text)

        context = kit.tls_context(options)
        base = options.get("base") or f"{'https' if context else 'http'}://{endpoints[0]}"
        project, keepalive = options.get("project", "test"), options.get("keepalive_s")
        self.sessions[session] = Narconi(
            base,
            project,
            keepalive_s=keepalive,
            tls=context,
            server_name=(options.get("tls") or {}).get("server_name"),
            on_end=ended,
        )

    @kit.op("state")
    async def state(self, session: str) -> Json:
        found = self.sessions.get(session)
        if found is None:
            return {"open": False, "pending": None}
        return {"open": not found.closed, "pending": found.pending}

    @kit.op("close")
    async def close(self, session: str, timeout_ms: float | None = None) -> None:
        await self.session(session).close(seconds(timeout_ms) or 10.0)

    @kit.op("narc.ensure_queue")
    async def ensure_queue(self, session: str, target: str, timeout_ms: float | None) -> None:
        await self.session(session).ensure_queue(target, seconds(timeout_ms))

    @kit.op("narc.delete_queue")
    async def delete_queue(self, session: str, target: str, timeout_ms: float | None) -> None:
        await self.session(session).delete_queue(target, seconds(timeout_ms))

    @kit.op("narc.post")
    async def post(
        self, session: str, target: str, body: Json, headers: Json | None, timeout_ms: float | None
    ) -> Json:
        await self.session(session).post(target, kit.body_bytes(body), headers or {}, seconds(timeout_ms))
        return {"outcome": "acked", "key": None, "meta": {}}

    @kit.op("narc.take")
    async def take(self, session: str, target: str, timeout_ms: float | None) -> Json:
        message = await self.session(session).take(target, seconds(timeout_ms))
        if message is None:
            return {"message": None}
        shape = {"ref": self.next_ref(), "sub": "", "target": target, "body": kit.report_body(message.body)}
        return {"message": {**shape, **details(message), "meta": {}}}

    @kit.op("publish")
    async def publish(
        self, session: str, target: str, body: Json, headers: Json | None, wait: bool,
        timeout_ms: float | None, request_id: int,
    ) -> Json:  # fmt: skip
        work = self.session(session).publish(target, kit.body_bytes(body), headers or {}, seconds(timeout_ms))
        if wait:
            await work
            return {"outcome": "acked", "key": None, "meta": {}}

        async def later() -> None:
            try:
                await work
                self.emit("outcome", id=request_id, outcome="acked", key=None, code=None)
            except Exception as error:
                failure = self.classify(error)
                word = "nacked" if failure.definite else "unknown"
                self.emit("outcome", id=request_id, outcome=word, key=None, code=failure.code)

        self.later = self.loop.create_task(later())
        return {"outcome": "sent", "key": None, "meta": {}}

    @kit.op("subscribe")
    async def subscribe(
        self, session: str, sub: str, target: str, options: Json, on_message: Json, timeout_ms: float | None
    ) -> None:
        subscription = self.subs[sub] = kit.Subscription(self, sub, target, on_message)

        async def callback(message: Message) -> None:
            await subscription.deliver(message.body, native=message.ack_id or "", **details(message))

        known = {name: options[name] for name in ("ack", "limit", "encoding") if name in options}
        subscription.handle = await self.session(session).consume(
            target, callback, timeout=seconds(timeout_ms), **known
        )

    @kit.op("settle")
    async def settle(self, sub: str, ref: str, how: str) -> None:
        subscription = self.subscription(sub)
        if how == "nack":
            raise kit.Failure("unsupported", "Narconi has no negative acknowledgement")
        await subscription.handle.ack(subscription.native.get(ref), up_to=how == "ack_to")

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str, drain: bool = False) -> None:
        consumer = self.subscription(sub).handle
        if drain:
            await consumer.drain()
        await consumer.close()

    def classify(self, error: Exception) -> kit.Failure:
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, NarconiError):
            return kit.Failure("auth" if error.code == 401 else "refused", str(error), code=error.code)
        if isinstance(error, aiohttp.WSServerHandshakeError) and error.status != 101:
            return kit.Failure("refused", text, code=error.status)
        if isinstance(error, ProtocolError | aiohttp.ClientPayloadError | aiohttp.ClientResponseError):
            return kit.Failure("protocol", text)
        if isinstance(error, ConnectionClosed):
            return kit.Failure("connection" if error.sent else "closed", text, definite=not error.sent)
        if isinstance(error, TimeoutError):
            return kit.Failure("timeout", text)
        if isinstance(error, aiohttp.ClientConnectionError):
            return kit.Failure("connection", text, definite=isinstance(error, aiohttp.ClientConnectorError))
        if isinstance(error, ValueError):
            return kit.Failure("invalid", text)
        return super().classify(error)


if __name__ == "__main__":
    kit.run(Adapter())
