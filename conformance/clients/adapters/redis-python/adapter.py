"""redis-py's asyncio client (https://pypi.org/project/redis/), driven by the adapter protocol.

A session is one `Redis` with its pool, and one `PubSub` once something is subscribed to, which `run` reads.
The library has one time-out for all that it reads, and tries ten times more before it reports a failure: both
are left as they are. It reports no losses by itself; what `run` raises is an error event.
"""

from __future__ import annotations

import asyncio
from typing import Any

import redis
from redis import exceptions
from redis.asyncio import Redis

from conformance.clients.adapter import kit

Json = dict[str, Any]

BREATH_S = 0.5  # before what failed is read again, as `run` would at once
WAYS = {
    "channel": ("subscribe", "unsubscribe"),
    "pattern": ("psubscribe", "punsubscribe"),
    "shard": ("ssubscribe", "sunsubscribe"),
}


class Session:
    def __init__(self, client: Redis) -> None:
        self.client = client
        self.pubsub = client.pubsub()
        self.running: asyncio.Task[None] | None = None
        self.is_there = False

    async def close(self) -> None:
        self.is_there = False
        if self.running is not None:
            self.running.cancel()
        await self.pubsub.aclose()
        await self.client.aclose()


def words_of(words: list[Any]) -> list[Any]:
    return [word if isinstance(word, str) else kit.body_bytes(word) for word in words]


def value_of(answer: Any) -> Any:
    if isinstance(answer, bytes):
        return kit.report_body(answer)
    if isinstance(answer, Exception):
        return {"error": code_of(answer)}
    if isinstance(answer, int) and not isinstance(answer, bool):
        return kit.number(answer)
    return [value_of(one) for one in answer] if isinstance(answer, list) else answer


def code_of(error: Exception) -> str:
    """The first word of an error, which the library takes off where it knows it."""
    word = str(error).partition(" ")[0]
    return getattr(error, "status_code", None) or (word if word.isupper() else "ERR")


class Adapter(kit.AdapterBase):
    adapter = "redis-python"
    library = "redis"
    library_version = redis.__version__
    protocols = ("redis",)
    roles = ("publisher", "consumer", "caller")
    caps = (
        "auto_reconnect callback_raise callback_sleep cancel lazy_subscribe reentrant resp3 shards stats tls"
    )
    lacks = "connect.auto_reconnect"
    callbacks = ("message", "error")
    contract = {  # noqa: RUF012 # as its type says
        "many_connections": True,  # a pool
        "waits": True,
        "repeats": True,
        "own_deadline": True,
        "drops_idle": True,
    }
    # eleven attempts with 5 s each, and pauses of a second between them
    limits = kit.limits(connect=66_000, request=66_000, publish=66_000)

    @kit.op("connect")
    async def connect(self, session: str, endpoints: list[str], options: Json) -> None:
        host, port = kit.host_port(endpoints[0])
        settings: Json = {"protocol": options.get("resp", 2)}
        if "password" in options:
            settings |= {"username": options.get("user"), "password": options["password"]}
        if tls := options.get("tls"):
            settings |= {"ssl": True, "ssl_ca_certs": tls.get("ca_file")}
            host = tls.get("server_name", host)
        client = Redis(host=host, port=port, **settings)
        client.response_callbacks.clear()  # replies as they are
        made = self.sessions[session] = Session(client)
        try:
            await client.ping()  # the library connects for a command alone
        except (exceptions.ResponseError, exceptions.BusyLoadingError) as error:
            if self.classify(error).kind == "auth":
                raise  # else the server is there, whatever it refuses
        made.is_there = True

    @kit.op("state")
    async def state(self, session: str) -> Json:
        found = self.sessions.get(session)
        return {"open": found is not None and found.is_there, "pending": None}

    @kit.op("close")
    async def close(self, session: str) -> None:
        await self.session(session).close()

    @kit.op("publish")
    async def publish(self, session: str, target: str, body: Json, wait: bool, request_id: int) -> Json:
        sending = self.session(session).client.publish(target, kit.body_bytes(body))
        if wait:
            return {"outcome": "acked", "key": None, "meta": {"receivers": await sending}}
        self.loop.create_task(self.outcome(sending, request_id))
        return {"outcome": "sent", "key": None, "meta": {}}

    async def outcome(self, sending: Any, request_id: int) -> None:
        outcome, code = "acked", None
        try:
            await sending
        except Exception as error:
            failure = self.classify(error)
            outcome, code = "nacked" if failure.definite else "unknown", failure.code
        self.emit("outcome", id=request_id, outcome=outcome, key=None, code=code)

    @kit.op("subscribe")
    async def subscribe(self, session: str, sub: str, target: str, options: Json, on_message: Json) -> None:
        found = self.session(session)
        way = options.get("way", "channel")
        subscription = self.subs[sub] = kit.Subscription(self, sub, target, on_message)

        async def handler(message: Json) -> None:
            meta = {"channel": message["channel"].decode(errors="replace")}
            await subscription.deliver(message["data"], meta=meta)

        await getattr(found.pubsub, WAYS[way][0])(**{target: handler})
        subscription.handle = (found, way)
        if found.running is None:
            found.running = self.loop.create_task(found.pubsub.run(exception_handler=self.failed(session)))

    def failed(self, session: str) -> Any:
        async def failed(error: Exception, pubsub: Any) -> None:
            where = "callback" if isinstance(error, kit.CallbackError) else "read"
            self.emit("error", session=session, where=where, error=self.classify(error).report())
            self.trip("error")
            if where == "read":
                await asyncio.sleep(BREATH_S)

        return failed

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str) -> None:
        found, way = self.handle_of(sub)
        await getattr(found.pubsub, WAYS[way][1])(self.subs[sub].target)

    @kit.op("redis.call")
    async def call(self, session: str, words: list[Any]) -> Json:
        answer = await self.session(session).client.execute_command(*words_of(words))
        return {"value": value_of(answer)}

    @kit.op("redis.pipeline")
    async def pipeline(self, session: str, commands: list[list[Any]]) -> Json:
        pipe = self.session(session).client.pipeline(transaction=False)
        for words in commands:
            pipe.execute_command(*words_of(words))
        answers = await pipe.execute(raise_on_error=False)
        return {
            "results": [
                {"error": code_of(one)} if isinstance(one, Exception) else {"value": value_of(one)}
                for one in answers
            ]
        }

    async def clear(self) -> None:
        for found in self.sessions.values():
            if found.running is not None:
                found.running.cancel()
            await found.client.connection_pool.disconnect()

    def classify(self, error: Exception) -> kit.Failure:
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, exceptions.TimeoutError):
            return kit.Failure("timeout", text)
        if isinstance(error, exceptions.AuthenticationError | exceptions.NoPermissionError):
            return kit.Failure("auth", text, code=code_of(error))
        if isinstance(error, exceptions.BusyLoadingError):
            return kit.Failure("refused", text, code="LOADING")
        if isinstance(error, exceptions.InvalidResponse):
            return kit.Failure("protocol", text)
        if isinstance(error, exceptions.ResponseError):
            return kit.Failure("refused", text, code=code_of(error))
        if isinstance(error, exceptions.DataError):
            return kit.Failure("invalid", text)
        if isinstance(error, exceptions.ConnectionError):
            return kit.Failure("connection", text)
        return super().classify(error)


if __name__ == "__main__":
    kit.run(Adapter())
