"""Messages on their way to the runner: buffered or reported at once, settled, delayed, refused."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from .bodies import report_body
from .failure import CallbackError, Failure

#: Several parts where the protocol has messages of several parts; a mapping is a body reported already.
Body = bytes | Sequence[bytes] | Mapping[str, Any]


class Reporter(Protocol):
    """What messages go through: an `AdapterBase`."""

    loop: asyncio.AbstractEventLoop

    def next_ref(self) -> str:
        """A new message reference."""

    def emit(self, event: str, **fields: Any) -> None:
        """Write an event line."""

    def trip(self, callback: str) -> None:
        """Raise if this kind of callback is to."""

    async def attempt(self, request: dict[str, Any]) -> dict[str, Any]:
        """Carry out one op."""


def _reported(body: Body) -> Any:
    if isinstance(body, bytes):
        return report_body(body)
    return dict(body) if isinstance(body, Mapping) else [report_body(part) for part in body]


class Subscription:
    """What the script wants done with the messages of one subscription (``on_message``).

    Attributes:
        handle: Whatever the library has for the subscription.
        native: By ref, what the library needs to settle a message; kept, as scripts may settle twice, except
            where `auto_settle` leaves the script nothing to settle.
    """

    def __init__(
        self, adapter: Reporter, sub: str, target: str, on_message: Mapping[str, Any] | None = None
    ) -> None:
        self.sub = sub
        self.target = target
        self.handle: Any = None
        self.native: dict[str, Any] = {}
        self._adapter = adapter
        self._plan = on_message or {}
        self._ordinals = itertools.count(1)
        self._buffer: list[dict[str, Any]] = []
        self._filled = asyncio.Event()

    def record(self, body: Body, *, native: Any = None, **details: Any) -> tuple[str, int]:
        """Report one message, from any thread. Returns its ref and its ordinal, which counts from 1.

        Details are the other members of the message: position, key, headers, redelivered, ts, meta.
        """
        ref, ordinal = self._adapter.next_ref(), next(self._ordinals)
        if native is not None:
            self.native[ref] = native
        message = {
            "ref": ref,
            "sub": self.sub,
            "target": self.target,
            "body": _reported(body),
            "headers": {},
            "redelivered": None,
            "ts": None,
            "position": None,
            "meta": {},
            **details,
        }
        if self._plan.get("mode") == "event":
            self._adapter.emit("message", **message)
        else:
            self._buffer.append(message)
            self._adapter.loop.call_soon_threadsafe(self._filled.set)
        return ref, ordinal

    def native_of(self, ref: str) -> Any:
        """What the library needs to settle a message, or `Failure` (invalid)."""
        if ref not in self.native:
            raise Failure("invalid", f"no message {ref!r} to settle")
        return self.native[ref]

    async def deliver(self, body: Body, *, native: Any = None, **details: Any) -> None:
        """Report one message and do what the script wants; await it inside the library's async callback."""
        ref, ordinal = self.record(body, native=native, **details)
        with self._reported_at_its_end(ref, ordinal):
            seconds = self._sleep_s(ordinal)
            if self._plan.get("block"):
                time.sleep(seconds)  # on the library's thread, because the script asked for just that
            elif seconds:
                await asyncio.sleep(seconds)
            await self._inner_ops(ref)
            self._raise_if_wanted(ordinal)

    def deliver_blocking(self, body: Body, *, native: Any = None, **details: Any) -> None:
        """The same for a library that calls back on a thread of its own."""
        ref, ordinal = self.record(body, native=native, **details)
        with self._reported_at_its_end(ref, ordinal):
            time.sleep(self._sleep_s(ordinal))
            asyncio.run_coroutine_threadsafe(self._inner_ops(ref), self._adapter.loop).result()
            self._raise_if_wanted(ordinal)

    @contextmanager
    def _reported_at_its_end(self, ref: str, ordinal: int) -> Iterator[None]:
        """Report when the callback of a message has ended, if it takes time."""
        raised = False
        try:
            yield
        except CallbackError:
            raised = True
            raise
        finally:
            if self._sleep_s(ordinal) or self._plan.get("do"):
                self._adapter.emit("returned", sub=self.sub, ref=ref, raised=raised)

    def _sleep_s(self, ordinal: int) -> float:
        """How long the callback of this message takes."""
        if ordinal not in self._plan.get("sleep_on", (ordinal,)):
            return 0.0
        return float(self._plan.get("sleep_ms", 0)) / 1000

    async def take(self, limit: int, wait_ms: float) -> list[dict[str, Any]]:
        """Up to `limit` buffered messages: at once if there are any, else when one comes within `wait_ms`."""
        if not self._buffer:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._until_filled(), wait_ms / 1000)
        taken, self._buffer = self._buffer[:limit], self._buffer[limit:]
        return taken

    async def _until_filled(self) -> None:
        while not self._buffer:
            self._filled.clear()
            await self._filled.wait()

    async def _inner_ops(self, ref: str) -> None:
        wanted = list(self._plan.get("do", ()))
        if self._plan.get("auto_settle") == "ack":
            wanted.append({"op": "settle", "args": {"sub": self.sub, "ref": ref, "how": "ack"}})
        for index, inner in enumerate(wanted):
            answer = await self._adapter.attempt(inner)
            self._adapter.emit("done", sub=self.sub, ref=ref, index=index, op=inner["op"], **answer)
        if self._plan.get("auto_settle") == "ack":
            self.native.pop(ref, None)

    def _raise_if_wanted(self, ordinal: int) -> None:
        if ordinal in self._plan.get("raise_on", ()):
            raise CallbackError(f"raise_on {ordinal}")
        self._adapter.trip("message")
