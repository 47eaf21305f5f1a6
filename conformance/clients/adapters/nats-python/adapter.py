"""nats-py (https://pypi.org/project/nats-py/), driven by the adapter protocol.

A publish is acknowledged by `flush`, which is what the library has for that. A connect and a drain end
by the time-out of their application: by itself the library tries a list of servers for two minutes, and
waits ten seconds for each answer of a drain.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from importlib.metadata import version
from typing import Any

from nats import errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from conformance.clients.adapter import kit

Json = dict[str, Any]

SETTINGS = {
    "user": "user",
    "password": "password",
    "token": "token",
    "auto_reconnect": "allow_reconnect",
    "ping_interval_s": "ping_interval",
    "max_pings": "max_outstanding_pings",
}
GONE = (errors.ConnectionClosedError, errors.ConnectionReconnectingError)
WRONG = (errors.MaxPayloadError, errors.BadSubjectError, errors.BadSubscriptionError)


class Session:
    """One connection; `is_over` once the application has closed it."""

    def __init__(self) -> None:
        self.client = Client()
        self.is_over = False


class Adapter(kit.AdapterBase):
    adapter = "nats-python"
    library = "nats-py"
    library_version = version("nats-py")
    protocols = ("nats",)
    roles = ("publisher", "consumer", "requester")
    callbacks = ("message", "session", "error")
    caps = (
        "ack_timeout auto_reconnect callback_raise callback_sleep cancel endpoints keepalive max_messages "
        "pending_limit queue_groups reentrant token"
    )

    @kit.op("connect")
    async def connect(
        self, session: str, endpoints: list[str], options: Json, timeout_ms: float | None = None
    ) -> None:
        new = self.sessions[session] = Session()
        settings = {theirs: options[ours] for ours, theirs in SETTINGS.items() if ours in options}
        if options.get("listen", True):
            settings |= {
                "error_cb": lambda error: self.failed(session, error),
                "disconnected_cb": lambda: self.happened(new, session, "connection_lost"),
                "reconnected_cb": lambda: self.happened(new, session, "reconnected"),
                "closed_cb": lambda: self.happened(new, session, "disconnected"),
            }
            settings = {
                name: _coroutine(value) if callable(value) else value for name, value in settings.items()
            }
        servers = [f"nats://{endpoint}" for endpoint in endpoints]
        limit = None if timeout_ms is None else timeout_ms / 1000
        try:
            await asyncio.wait_for(new.client.connect(servers, dont_randomize=True, **settings), limit)
        except BaseException:
            new.is_over = True
            await new.client.close()
            raise

    async def happened(self, of: Session, session: str, what: str) -> None:
        if not of.is_over:
            self.emit("session", session=session, what=what, text="", code=None)
            self.trip("session")

    async def failed(self, session: str, error: Exception) -> None:
        where = "callback" if isinstance(error, kit.CallbackError) else "other"
        self.emit("error", session=session, where=where, error=self.classify(error).report())
        self.trip("error")

    @kit.op("state")
    async def state(self, session: str) -> Json:
        found = self.sessions.get(session)
        return {"open": found is not None and found.client.is_connected, "pending": None}

    @kit.op("close")
    async def close(self, session: str) -> None:
        found = self.session(session)
        found.is_over = True
        await found.client.close()

    @kit.op("publish")
    async def publish(
        self,
        session: str,
        target: str,
        body: Any,
        wait: bool,
        request_id: int,
        timeout_ms: float | None = None,
    ) -> Json:
        client: Client = self.session(session).client
        await client.publish(target, kit.body_bytes(body))
        if wait:
            await client.flush(_seconds(timeout_ms))
            return {"outcome": "acked", "key": None, "meta": {}}
        self.loop.create_task(self.outcome(client, request_id, _seconds(timeout_ms)))
        return {"outcome": "sent", "key": None, "meta": {}}

    async def outcome(self, client: Client, request_id: int, limit: float) -> None:
        word = "acked"
        try:
            await client.flush(limit)
        except Exception:
            word = "unknown"
        self.emit("outcome", id=request_id, outcome=word, key=None, code=None)

    @kit.op("flush")
    async def flush(self, session: str, timeout_ms: float | None = None) -> None:
        await self.session(session).client.flush(_seconds(timeout_ms))

    @kit.op("nats.request")
    async def request(self, session: str, target: str, body: Any, timeout_ms: float | None = None) -> Json:
        client: Client = self.session(session).client
        answer = await client.request(target, kit.body_bytes(body), timeout=_seconds(timeout_ms))
        return {"body": kit.report_body(answer.data)}

    @kit.op("subscribe")
    async def subscribe(
        self, session: str, sub: str, target: str, options: Json, on_message: Json,
        timeout_ms: float | None = None,
    ) -> None:  # fmt: skip
        client: Client = self.session(session).client
        subscription = self.subs[sub] = kit.Subscription(self, sub, target, on_message)

        async def callback(message: Msg) -> None:
            await subscription.deliver(message.data, meta={"subject": message.subject})

        more = {"pending_msgs_limit": options["pending_limit"]} if "pending_limit" in options else {}
        made = await client.subscribe(target, queue=options.get("queue", ""), cb=callback, **more)
        subscription.handle = made
        if "max" in options:
            await made.unsubscribe(limit=options["max"])
        try:
            await client.flush(_seconds(timeout_ms))
        except BaseException:  # the application has no subscription, so the library shall not keep it
            with suppress(errors.Error):
                await made.unsubscribe()
            raise

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str, drain: bool = False, timeout_ms: float | None = None) -> None:
        handle = self.handle_of(sub)
        await asyncio.wait_for(handle.drain() if drain else handle.unsubscribe(), _seconds(timeout_ms))

    @kit.op("nats.drain")
    async def drain(self, session: str, timeout_ms: float | None = None) -> None:
        found = self.session(session)
        found.is_over = True
        await asyncio.wait_for(found.client.drain(), _seconds(timeout_ms))

    def classify(self, error: Exception) -> kit.Failure:
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, errors.NoRespondersError):
            return kit.Failure("refused", text, code=503)
        if isinstance(error, errors.AuthorizationError):
            return kit.Failure("auth", text)
        if isinstance(error, WRONG):
            return kit.Failure("invalid", text)
        if isinstance(error, errors.ConnectionDrainingError):  # the application has ended it
            return kit.Failure("closed", text)
        if isinstance(error, errors.ConnectionClosedError) and not isinstance(error, TimeoutError):
            return kit.Failure("closed", text)
        if isinstance(error, (*GONE, errors.NoServersError, errors.StaleConnectionError)):
            return kit.Failure("connection", text)
        if isinstance(error, errors.ProtocolError | errors.JsonParseError):
            return kit.Failure("protocol", text)
        if type(error) is errors.Error:  # what the server has said, after "nats: "
            said = str(error).removeprefix("nats: ")
            return kit.Failure("refused", text, code=said)
        return super().classify(error)


def _coroutine(make: Any) -> Any:
    """A coroutine function of what makes a coroutine: the library wants to see one."""

    async def call(*args: Any) -> None:
        await make(*args)

    return call


def _seconds(timeout_ms: float | None) -> float:
    return 10.0 if timeout_ms is None else max(timeout_ms, 1) / 1000


if __name__ == "__main__":
    kit.run(Adapter())
