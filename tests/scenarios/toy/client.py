"""A client of the toy protocol behind the adapter protocol, correct or with one defect; in memory only."""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from conformance.clients.adapter.kit import AdapterBase, Failure, Subscription, body_bytes, op
from fakebrokers.core.memory import dial
from tests.toy import Bye, Frame, Get, Hello, Put, Stored, ToyCodec, Value, Welcome

PATIENCE_S = 5.0


class Connection(asyncio.Protocol):
    """Answers come in the order of the questions."""

    def __init__(self) -> None:
        self.codec = ToyCodec()
        self.waiting: list[tuple[type[Frame], asyncio.Future[Any]]] = []

    def data_received(self, data: bytes) -> None:
        self.take(list(self.codec.feed(data)))

    def take(self, frames: list[tuple[Frame, int]]) -> None:
        for frame, _ in frames:
            for number, (kind, answer) in enumerate(self.waiting):
                if isinstance(frame, kind):
                    del self.waiting[number]
                    if not answer.done():
                        answer.set_result(frame)
                    break

    def connection_lost(self, error: Exception | None) -> None:
        for _, answer in self.waiting:
            if not answer.done():
                answer.set_exception(ConnectionResetError("the connection has ended"))


class HasNoHalves(Connection):
    """Takes all that comes at once for whole lines."""

    def data_received(self, data: bytes) -> None:
        self.take(list(ToyCodec().feed(data if data.endswith(b"\n") else data + b"\n")))


class Toy(AdapterBase):
    """The adapter."""

    adapter = library = "toy"
    library_version = "1"
    protocols = ("toy",)
    roles = ("caller", "service")
    caps = "ack_timeout"
    connection: type[Connection] = Connection
    patience = 1.0  #: share of the deadline after which an op is given up

    async def ask(self, session: str, frame: Frame, kind: type[Frame], timeout_ms: float | None) -> Any:
        link, connection = self.session(session)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        connection.waiting.append((kind, answer))
        link.write(ToyCodec().encode(frame))
        limit = PATIENCE_S if timeout_ms is None else timeout_ms / 1000
        return await asyncio.wait_for(answer, limit * self.patience)

    @op("connect")
    async def connect(self, session: str, endpoints: list[str], timeout_ms: float | None = None) -> None:
        connection = self.connection()
        link = dial(endpoints[0], connection)
        self.sessions[session] = (link, connection)
        await self.ask(session, Hello("me"), Welcome, timeout_ms)

    @op("close")
    async def close(self, session: str, timeout_ms: float | None = None) -> None:
        await self.ask(session, Bye(), Bye, timeout_ms)
        link, _ = self.sessions.pop(session)
        link.close()

    @op("state")
    async def state(self, session: str) -> dict[str, Any]:
        return {"open": session in self.sessions, "pending": None}

    @op("toy.put")
    async def put(self, session: str, key: str, body: Any, timeout_ms: float | None = None) -> dict[str, Any]:
        value = urlsafe_b64encode(body_bytes(body)).decode()
        await self.ask(session, Put((key,), value), Stored, timeout_ms)
        return {"outcome": "acked", "key": key}

    @op("toy.get")
    async def get(self, session: str, key: str, timeout_ms: float | None = None) -> dict[str, Any]:
        found = await self.ask(session, Get(key), Value, timeout_ms)
        if not found.body:
            raise Failure("refused", f"there is no {key}", definite=True)
        return {"text": urlsafe_b64decode(found.body).decode()}

    @op("toy.read")
    async def read(
        self, session: str, sub: str, keys: list[str], on_message: Any, timeout_ms: float | None = None
    ) -> None:
        self.subs[sub] = Subscription(self, sub, "", on_message)
        for key in keys:
            found = await self.ask(session, Get(key), Value, timeout_ms)
            await self.subs[sub].deliver(urlsafe_b64decode(found.body), position=key)

    async def clear(self) -> None:
        for link, _ in self.sessions.values():
            link.abort()


class WithoutHalves(Toy):
    connection = HasNoHalves


class Impatient(Toy):
    patience = 0.5
