"""One connection to a broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from conformance.clients.reference.blazingmq.frames import Frames
from conformance.clients.reference.blazingmq.handshake import Handshake
from conformance.clients.reference.blazingmq.requests import Requests
from conformance.clients.reference.blazingmq.watchdog import Watchdog
from conformance.clients.reference.kit import ClientError, Wire
from fakebrokers.blazingmq.frames import (
    Ack,
    BrokerResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    Push,
    Response,
)
from fakebrokers.core.frames import Frame, Malformed, kind_of

if TYPE_CHECKING:
    from conformance.clients.reference.blazingmq.client import BlazingClient

NOTES_MAX = 100


class Link(asyncio.Protocol):
    """Belongs to a client.

    Attributes:
        state: ``new``, ``open`` or ``ended``.
        opened_at: When the broker took the client.
    """

    def __init__(self, client: BlazingClient) -> None:
        self.client = client
        self.state = "new"
        self.opened_at = 0.0
        part = client.runtime.part
        self.frames = part(Frames)()
        self.requests = part(Requests)(self)
        self.watchdog = part(Watchdog)(self)
        self.handshake = part(Handshake)(self)
        self._wire: Wire | None = None
        self._notes = 0

    # life

    async def open(self, endpoint: str, timeout: float) -> None:
        """Connect and negotiate. Raises `ClientError`; then nothing is left open."""
        try:
            async with asyncio.timeout(timeout):
                self._wire = await self.client.runtime.network.dial(endpoint, lambda: self)
                self.handshake.start()
                await self.handshake.done
        except TimeoutError:
            raise self.given_up(ClientError("timeout", f"{endpoint}: no session in time")) from None
        except OSError as error:
            raise self.given_up(ClientError("connection", f"{endpoint}: {error}")) from None
        except BaseException:
            self.given_up(ClientError("closed", "the client was closed"))
            raise
        self.opened_at = self.client.runtime.clock.now()

    def given_up(self, error: ClientError) -> ClientError:
        """The connection never was one; what goes wrong besides is in the error already."""
        self.end(error)
        done = self.handshake.done
        if done.done() and not done.cancelled():
            done.exception()
        return error

    def end(self, error: ClientError) -> None:
        """It is over, for whatever reason."""
        if self.state == "ended":
            return
        was_open, self.state = self.state == "open", "ended"
        self.watchdog.end()
        self.release()
        if not self.handshake.done.done():
            self.handshake.done.set_exception(error)
        lost = error if error.kind == "closed" else ClientError("connection", error.text)
        self.requests.end(lost)
        if was_open:
            self.client.link_ended(self, lost)

    def release(self) -> None:
        """Let go of the socket."""
        if self._wire is not None:
            self._wire.abort()

    # bytes

    def send(self, frame: Frame) -> None:
        """Write a frame. Raises `WireError` if it does not fit."""
        self.write(self.frames.encode(frame))

    def write(self, data: bytes) -> None:
        """Write bytes."""
        if self._wire is not None and self.state != "ended":
            self._wire.write(data)

    def data_received(self, data: bytes) -> None:
        self.watchdog.came()
        for frame in self.frames.feed(data):
            if self.state == "ended":
                return
            self.handle(frame)

    def connection_lost(self, error: Exception | None) -> None:
        self.end(ClientError("connection", str(error or "the broker closed the connection")))

    # frames

    def handle(self, frame: Frame) -> None:
        """A frame came."""
        match frame:
            case HeartbeatRequest():
                self.heartbeat()
            case Malformed():
                self.malformed(frame)
            case BrokerResponse() if self.state == "new":
                self.handshake.answered(frame)
            case _ if self.state == "new":
                self.handshake.other(frame)
            case Response():
                self.requests.answered(frame)
            case Ack():
                self.client.posts.acknowledged(frame)
            case Push():
                self.client.deliveries.pushed(frame)
            case _:
                self.other(frame)

    def heartbeat(self) -> None:
        """The broker wants a sign of life."""
        self.send(HeartbeatResponse())

    def malformed(self, frame: Malformed) -> None:
        """Nobody knows where the next event begins, or one event cannot be read."""
        error = ClientError("protocol", frame.problem)
        if self.state == "new":
            self.handshake.fail(error)
        elif frame.code in ("framing", "too-large"):
            self.trouble(error)
            self.end(error)
        else:
            self.trouble(error)

    def other(self, frame: Frame) -> None:
        """An event that clients do nothing with."""
        self.note(f"a {kind_of(frame)}")

    def note(self, text: str) -> None:
        """Something came that nobody waits for."""
        self._notes += 1
        if self._notes <= NOTES_MAX:
            self.client.runtime.callbacks.note(text)

    def trouble(self, error: ClientError) -> None:
        """Something came that cannot be read."""
        self.client.runtime.callbacks.trouble("decode", error)
