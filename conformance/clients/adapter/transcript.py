"""The whole exchange with an adapter, and waiting for things to turn up in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from conformance.clients.adapter.messages import INLINE_BYTES_MAX, Event, Message, report_body

SECRETS = frozenset({"password", "token", "secret"})
#: The `way` of the runner's own remark that messages did not come, where it began to wait for them.
WAITED = "waited"


class TranscriptLine(msgspec.Struct, frozen=True):
    """One line of the exchange, as it was.

    Attributes:
        at_ns: The runner's monotonic clock.
        way: ``out`` to the adapter, ``in`` from it, or `WAITED`.
        line: The object, or bytes that were none.
    """

    at_ns: int
    way: str
    line: Mapping[str, Any] | bytes

    @property
    def value(self) -> Any:
        """What the line says; text if it is not JSON."""
        return _object(self.line)


class Transcript:
    """Every line in order, kept as values and written as JSON lines."""

    def __init__(self) -> None:
        self.lines: list[TranscriptLine] = []

    def add(self, at_ns: int, way: str, line: Mapping[str, Any] | bytes) -> None:
        """Append one line."""
        self.lines.append(TranscriptLine(at_ns, way, line))

    def dump(self) -> Iterator[bytes]:
        """JSON lines. Credentials are blotted out, long bodies replaced by their digest."""
        for line in self.lines:
            shown = {"at_ns": line.at_ns, "way": line.way, "line": _presentable(line.value)}
            yield msgspec.json.encode(shown) + b"\n"


def _object(line: Mapping[str, Any] | bytes) -> Any:
    """What the line says; text if it is not JSON."""
    if not isinstance(line, bytes):
        return line
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return line.decode(errors="replace")


def _presentable(value: Any) -> Any:
    if isinstance(value, Mapping):
        text = value.get("text")
        if isinstance(text, str) and len(text) > INLINE_BYTES_MAX:
            return report_body(text.encode())
        return {key: "***" if key in SECRETS else _presentable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_presentable(item) for item in value]
    if isinstance(value, str) and len(value) > 2 * INLINE_BYTES_MAX:
        return f"{value[:64]}... ({len(value)} characters)"
    return value


class Inbox:
    """Events and messages of an adapter since the last `clear`, and a way to wait for more."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.closed = False
        self._by_sub: dict[str, list[Message]] = {}
        self._waiting: dict[asyncio.Future[None], None] = {}  # in the order in which they came

    def clear(self) -> None:
        """Forget everything."""
        self.events = []
        self._by_sub = {}

    def add(self, event: Event) -> None:
        """Take in an event. Raises `msgspec.ValidationError` for a ``message`` event without a message."""
        if event.event == "message":
            self.add_message(event.message)
        self.events.append(event)
        self._wake()

    def add_message(self, message: Message) -> None:
        """Take in a message that came with ``next``."""
        self._by_sub.setdefault(message.sub, []).append(message)
        self._wake()

    def close(self) -> None:
        """Nothing more will come: those that wait go on at once."""
        self.closed = True
        self._wake()

    def messages(self, sub: str) -> list[Message]:
        """The messages of a subscription so far, in the order in which the client delivered them."""
        return list(self._by_sub.get(sub, ()))

    def find(
        self, name: str, where: Callable[[Event], bool] | None = None, *, after: int = 0, **fields: Any
    ) -> Event | None:
        """The first event of that name after position `after` whose members equal `fields`."""
        for event in self.events[after:]:
            fits = event.event == name and all(event[key] == value for key, value in fields.items())
            if fits and (where is None or where(event)):
                return event
        return None

    async def event(
        self,
        name: str,
        where: Callable[[Event], bool] | None = None,
        *,
        timeout_s: float,
        after: int = 0,
        **fields: Any,
    ) -> Event | None:
        """The first event that fits (see `find`), waiting up to `timeout_s` for it, or None."""

        def found() -> Event | None:
            return self.find(name, where, after=after, **fields)

        await self.until(lambda: found() is not None, timeout_s)
        return found()

    async def until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until `condition` holds, looking after every arrival; False if it still does not."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while not condition():
            left = deadline - loop.time()
            if left <= 0 or self.closed:
                return False
            arrival = loop.create_future()
            self._waiting[arrival] = None
            try:
                await asyncio.wait({arrival}, timeout=left)
            finally:
                self._waiting.pop(arrival, None)
                arrival.cancel()
        return True

    def _wake(self) -> None:
        for arrival in self._waiting:
            if not arrival.done():
                arrival.set_result(None)
