"""The library of the walk-throughs in the guide: everything stays in memory, and every message comes back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

__version__ = "1.0"

Callback = Callable[[Any], Awaitable[Any]]


class Refused(Exception):
    """The peer said no."""

    code = 404


class RemoteError(Exception):
    """What an action has thrown."""

    def __init__(self, message: str = "", code: int = 500, type: str = "", **more: Any) -> None:
        super().__init__(message)
        self.code, self.type = code, type


class Message(SimpleNamespace):
    """What consumers of all protocols get."""

    async def answer(self, good: bool) -> None:
        """PZQ."""

    async def settle(self, good: bool) -> None:
        """Narconi."""


class Sent:
    """What an MQTT client has handed over."""

    packet_id = 7

    async def acknowledged(self, timeout: float | None) -> None:
        """At once."""


class Client:
    """Of PZQ, BlazingMQ, Narconi, Redis, NATS and MQTT."""

    def __init__(self) -> None:
        self.kept: list[bytes] = []
        self.callback: Callback | None = None

    async def close(self) -> None:
        """Also `stop`, of a session or a consumer."""

    stop = close

    async def _came(self, *parts: bytes) -> str:
        self.kept.append(parts[0])
        message = Message(
            parts=parts, data=parts[0], key=b"k1", id="7", guid="g1", uri="bmq://x", headers={},
            properties={}, first_part=b"pzq", sent_us=12, subject="q", topic="q", qos=1, retain=False,
            dup=False,
        )  # fmt: skip
        if self.callback is not None:
            await self.callback(message)
        return "7"

    async def send(self, parts: tuple[bytes, ...], key: bytes | None, timeout: float) -> bytes:
        await self._came(*parts)
        return key or b"\xff1"

    async def publish(self, target: str, data: bytes, headers: Any) -> str:
        return await self._came(data)

    async def post(self, target: str, data: bytes, headers: Any = None, *, properties: Any = None) -> str:
        return await self._came(data)

    async def consume(self, *args: Any, ack: bool = True) -> Client:
        self.callback = args[-1]
        return self

    def on_message(self, target: str, callback: Callback | None) -> None:
        self.callback = callback

    async def confirm(self, target: str, guid: str) -> None:
        """BlazingMQ."""

    async def open(self, target: str, uri: str, *, read: bool, write: bool, options: Any) -> None:
        """BlazingMQ."""

    async def close_queue(self, target: str) -> None:
        """BlazingMQ."""

    async def ensure_queue(self, target: str) -> None:
        """Narconi."""

    delete_queue = ensure_queue

    async def take(self, target: str) -> Message | None:
        return Message(data=self.kept.pop(), headers={}, id="7") if self.kept else None

    async def call(self, words: list[bytes]) -> list[Any]:
        """Redis."""
        return [words[0], len(words), None]

    async def request(self, target: str, data: bytes, timeout: float) -> Message:
        """NATS."""
        return Message(data=data)

    async def flush(self, timeout: float) -> None:
        """NATS."""

    async def hand_over(self, target: str, data: bytes, *, qos: int, retain: bool) -> Sent:
        """MQTT."""
        await self._came(data)
        return Sent()

    async def monitor(self) -> dict[str, Any]:
        return {"messages": 0}


async def connect(*addresses: str, **options: Any) -> Client:
    return Client()


class Node:
    """Of Moleculer; it is its own peer."""

    def __init__(self, node_id: str | None, url: str, *, heartbeat_s: float) -> None:
        self.id, self.is_running = node_id, False
        self.actions: dict[str, Callback] = {}
        self.listeners: dict[str, Callback] = {}

    async def start(self) -> None:
        self.is_running = True

    async def stop(self) -> None:
        self.is_running = False

    async def call(self, action: str, params: Any, *, meta: Any, timeout: float | None) -> Any:
        data = await self.actions[action](SimpleNamespace(params=params))
        return SimpleNamespace(data=data, meta=meta or {}, node_id=self.id)

    async def serve(self, service: str, actions: dict[str, Callback]) -> None:
        self.actions |= {f"{service}.{name}": action for name, action in actions.items()}

    async def emit(self, event: str, data: Any) -> None:
        ctx = SimpleNamespace(event=event, data=data, groups=None, node_id=self.id)
        await self.listeners[event](ctx)

    broadcast = emit

    async def listen(self, event: str, callback: Callback, *, group: str | None) -> None:
        self.listeners[event] = callback
