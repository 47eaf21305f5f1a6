"""One connection to a message server, driven with asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from conformance.clients.reference.kit import ClientError, Runtime, Wire
from conformance.clients.reference.moleculer.codecs import (
    CODECS,
    Broken,
    Codec,
    Granted,
    Message,
    Ready,
    Write,
)
from conformance.clients.reference.moleculer.settings import Settings

TOPIC_MAX = 2048  #: bytes; a server takes no line of more than 4096


class Bus(asyncio.Protocol):
    """Open it once; a lost one is replaced by another.

    Args:
        heard: Gets topic and payload of each message.
        lost: Called when the connection ends without `close`, once it is the node's.

    Attributes:
        is_joined: Whether it is the node's: before that, its end is a matter of who opens it.
    """

    def __init__(
        self,
        runtime: Runtime,
        settings: Settings,
        heard: Callable[[str, bytes], None],
        lost: Callable[[str], None],
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._heard = heard
        self._lost = lost
        self.codec: Codec = runtime.part(CODECS[settings.transporter])()
        self.is_open = False
        self.is_joined = False
        self._wire: Wire | None = None
        self._is_ended = False
        self._failure: ClientError | None = None
        self._news = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._granted = 0

    async def open(self) -> None:
        """Connect and be taken in. Raises `ClientError`, `OSError`."""
        self._wire = await self._dial()
        self._wire.write(self.codec.hello())
        await self._until(lambda: self.is_open)

    async def _dial(self) -> Wire:
        """To the first server of the list that can be reached. Raises `OSError`."""
        *others, last = self._settings.endpoints
        for endpoint in others:
            with suppress(OSError):
                return await self._runtime.network.dial(endpoint, lambda: self)
        return await self._runtime.network.dial(last, lambda: self)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            if self._is_ended:
                raise self._failure or ClientError("connection", "the server closed the connection")
            self._news.clear()
            await self._news.wait()

    # what is sent

    def write(self, data: bytes) -> None:
        """Send bytes. Raises `ClientError` (connection, definite)."""
        if self._is_ended or self._wire is None:
            raise ClientError("connection", "there is no connection", definite=True)
        self._wire.write(data)

    def publish(self, topic: str, payload: bytes) -> None:
        """Send a message. Raises `ClientError` (connection, invalid), definite."""
        most = self.codec.max_payload
        if most is not None and len(payload) > most:
            raise ClientError("invalid", f"{len(payload)} bytes are more than the server takes ({most})")
        if len(topic.encode()) > TOPIC_MAX:
            raise ClientError("invalid", f"a topic of {len(topic)} characters", definite=True)
        self.write(self.codec.publish(topic, payload))

    async def subscribe(self, topics: list[tuple[str, str]]) -> None:
        """Listen to topics, each with its group or ""; back when the server has granted them."""
        for topic, queue in topics:
            self.write(self.codec.subscribe(topic, queue))
        await self.synced()

    async def synced(self) -> None:
        """The server has taken in what was sent."""
        self.write(self.codec.sync())
        wanted = self.codec.waits_for
        await self._until(lambda: self._granted >= wanted)

    async def drained(self) -> None:
        """What was sent is on its way, so that more can follow."""
        await self._writable.wait()

    def close(self) -> None:
        """Leave, with what the server's protocol has for it."""
        if self._wire is not None and not self._is_ended:
            self._is_ended = True
            self._wire.write(self.codec.close_frame())
            self._wire.close()

    def abort(self) -> None:
        """Drop it."""
        self._is_ended = True
        self._writable.set()
        self._news.set()
        if self._wire is not None:
            self._wire.abort()

    # asyncio

    def data_received(self, data: bytes) -> None:
        try:
            for came in self.codec.feed(data):
                match came:
                    case Message(topic, payload):
                        self._heard(topic, payload)
                    case Ready():
                        self.is_open = True
                    case Granted():
                        self._granted += 1
                    case Write(answer):
                        self.write(answer)
                    case Broken(error):
                        raise error
        except ClientError as error:
            self._failure = error
            self._runtime.callbacks.trouble("read", error)
            if self._wire is not None:
                self._wire.abort()
        self._news.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        was_open = self.is_joined and not self._is_ended
        self._is_ended = True
        self.is_open = False
        self._writable.set()
        self._news.set()
        if was_open:
            self._lost(str(exc or "the server closed the connection"))
