"""A small PZQ client on pyzmq and asyncio, written from the protocol document alone.

producer = Producer("tcp://127.0.0.1:11131")
await producer.produce([b"hello"], timeout=5.0)

consumer = Consumer("tcp://127.0.0.1:11132", on_message)   # await consumer.ack(message)
await Monitor("tcp://127.0.0.1:11133").figures(timeout=1.0)
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import zmq
import zmq.asyncio

LINGER_MS = 1000  #: `close` lets what was sent leave for so long, in the background
WAITING_MAX = 100  #: messages that libzmq keeps while the broker is away or slow; others wait outside


class PzqError(Exception):
    """Base of all errors of this client."""


class NotStored(PzqError):
    """The broker refused a message."""

    def __init__(self, status: bytes, texts: Sequence[bytes]) -> None:
        self.status = status.decode(errors="replace")
        reason = "; ".join(text.decode(errors="replace") for text in texts)
        super().__init__(reason or f"status {self.status!r}")


class NoAnswer(PzqError):
    """Nothing came in time. A message may be stored all the same."""


class Closed(PzqError):
    """The socket was closed meanwhile, or before."""


class ProtocolError(PzqError):
    """A message that the document does not describe."""


def _connect(kind: int, endpoint: str) -> zmq.asyncio.Socket:
    socket = zmq.asyncio.Context.instance().socket(kind)
    socket.linger = LINGER_MS
    if kind != zmq.ROUTER:  # which drops what is above the mark: then acknowledgements would be lost
        socket.sndhwm = WAITING_MAX
    socket.connect(endpoint)
    return socket


class Producer:
    """Sends messages; any number may wait for their acknowledgement at the same time."""

    def __init__(self, endpoint: str) -> None:
        self._socket = _connect(zmq.DEALER, endpoint)
        self._waiting: dict[bytes, asyncio.Future[list[bytes]]] = {}
        self._prefix = os.urandom(6).hex()
        self._numbers = itertools.count(1)
        self._reading = asyncio.create_task(self._read())

    @property
    def pending(self) -> int:
        """Messages that wait for their acknowledgement."""
        return len(self._waiting)

    async def produce(
        self, body: Sequence[bytes], *, id: bytes | None = None, timeout: float | None = None
    ) -> tuple[bytes, list[bytes]]:
        """Send a message; returns its id and the broker's texts as soon as it is stored.

        Raises:
            NotStored, NoAnswer, Closed, ProtocolError: as they say.
            ValueError: a body without parts, or an id that is in use.
        """
        if self._socket.closed:
            raise Closed("the producer is closed")
        if not body:
            raise ValueError("a message has one body part or more")
        id = f"{self._prefix}-{next(self._numbers)}".encode() if id is None else id
        if id in self._waiting:
            raise ValueError(f"a message with the id {id!r} waits for its acknowledgement")
        answer = self._waiting[id] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout):
                await self._socket.send_multipart([id, b"", *body])
                status, *rest = await answer
        except TimeoutError:
            raise NoAnswer(f"no acknowledgement within {timeout} s") from None
        finally:
            del self._waiting[id]
        if b"" not in rest:
            raise ProtocolError("an acknowledgement without delimiter")
        texts = rest[rest.index(b"") + 1 :]
        if status != b"1":
            raise NotStored(status, texts)
        return id, texts

    async def _read(self) -> None:
        while True:
            id, *rest = await self._socket.recv_multipart()
            answer = self._waiting.get(id)
            if answer is None or answer.done():
                continue  # late, or not ours
            if rest:
                answer.set_result(rest)
            else:
                answer.set_exception(ProtocolError("an acknowledgement without a status"))

    def close(self) -> None:
        """Never waits; what was not acknowledged ends with `Closed`."""
        self._reading.cancel()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(Closed("closed before the acknowledgement"))
        self._socket.close()


@dataclass(frozen=True)
class Message:
    """What a consumer got. Times in microseconds; None where the broker sent no number."""

    pzq_id: bytes
    id: bytes
    sent_us: int | None
    timeout_us: int | None
    body: list[bytes]

    @property
    def is_expired(self) -> bool:
        """The broker will send it again, or has done so."""
        if self.sent_us is None or self.timeout_us is None:
            return False
        return time.time_ns() // 1000 > self.sent_us + self.timeout_us


class Consumer:
    """Calls `on_message` for one message after the other. Where that raises, the message goes back.

    Args:
        skip_expired: Leave out what the broker will send again anyhow.
        on_error: Gets what went wrong with a delivery.
    """

    def __init__(
        self,
        endpoint: str,
        on_message: Callable[[Message], Awaitable[None]],
        *,
        skip_expired: bool = False,
        on_error: Callable[[Exception], None] = lambda _: None,
    ) -> None:
        self._socket = _connect(zmq.ROUTER, endpoint)
        self._on_message = on_message
        self._skip_expired = skip_expired
        self._on_error = on_error
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while True:
            parts = await self._socket.recv_multipart()
            try:
                message = _message(parts)
            except ProtocolError as error:
                self._on_error(error)
                continue
            if self._skip_expired and message.is_expired:
                continue
            try:
                await self._on_message(message)
            except Exception as error:
                self._on_error(error)
                await self.reject(message)

    async def ack(self, message: Message) -> None:
        """Processed: the broker deletes it."""
        await self._settle(message, b"1")

    async def reject(self, message: Message) -> None:
        """Not processed: the broker sends it again at once."""
        await self._settle(message, b"0")

    async def _settle(self, message: Message, status: bytes) -> None:
        if self._socket.closed:
            raise Closed("the consumer is closed")
        await self._socket.send_multipart([message.pzq_id, message.id, status])

    def close(self) -> None:
        """Never waits; what was not acknowledged comes again to another consumer."""
        self._reading.cancel()
        self._socket.close()


def _message(parts: list[bytes]) -> Message:
    try:
        delimiter = parts.index(b"", 2)
    except ValueError:
        raise ProtocolError(f"a delivery of {len(parts)} parts without delimiter") from None
    body = parts[delimiter + 1 :]
    if delimiter < 4 or not body:
        raise ProtocolError("a delivery without times or without body")
    return Message(parts[0], parts[1], _number(parts[2]), _number(parts[3]), body)


def _number(part: bytes) -> int | None:
    return int(part) if part.isdigit() else None


class Monitor:
    """Asks for the broker's figures, each time on a socket of its own: a question may stay unanswered."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._asking: set[asyncio.Task[bytes]] = set()
        self._closed = False

    async def figures(self, *, timeout: float | None = None) -> dict[str, int | str]:
        """The broker's figures by name. Raises `NoAnswer`, `Closed` or `ProtocolError`."""
        if self._closed:
            raise Closed("the monitor is closed")
        question = asyncio.create_task(self._ask())
        self._asking.add(question)
        question.add_done_callback(self._asking.discard)
        try:
            async with asyncio.timeout(timeout):
                return _figures(await question)
        except TimeoutError:
            raise NoAnswer(f"the monitor did not answer within {timeout} s") from None
        except asyncio.CancelledError:
            if self._closed:
                raise Closed("closed before the monitor answered") from None
            raise

    async def _ask(self) -> bytes:
        socket = _connect(zmq.REQ, self._endpoint)
        try:
            await socket.send(b"MONITOR")
            text: bytes = (await socket.recv_multipart())[0]
            return text
        finally:
            socket.close(linger=0)

    def close(self) -> None:
        """Never waits; questions without an answer end with `Closed`."""
        self._closed = True
        for question in self._asking:
            question.cancel()


def _figures(text: bytes) -> dict[str, int | str]:
    lines = [line.partition(":") for line in text.decode(errors="replace").split("\n") if ":" in line]
    values = {key.strip(): _figure(value.strip()) for key, _, value in lines if key.strip()}
    if not values:
        raise ProtocolError(f"not a monitor's reply: {text[:80]!r}")
    return values


def _figure(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() else text
