"""One connection to a server: CONNECT, requests, and whether the server lives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from conformance.clients.reference.kit import ClientError, Runtime, Wire
from conformance.clients.reference.mqtt.exchanges import Exchanges
from conformance.clients.reference.mqtt.topics import is_name
from fakebrokers.core.frames import Frame, Malformed, kind_of
from fakebrokers.mqtt.codec import MqttCodec
from fakebrokers.mqtt.frames import (
    Connack,
    Connect,
    Disconnect,
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
)

CODES = {1: "its protocol", 2: "its id", 3: "it is not available", 4: "its login", 5: "it is not authorized"}
LOGIN = (4, 5)
NOT_NOW = 3
ASK_SHARE = 0.75  #: of the keep alive: silence of either side after which the client asks for a sign of life
NOTES_MAX = 100
FROM_SERVER = (Connack, Publish, Puback, Pubrec, Pubrel, Pubcomp, Suback, Unsuback, Pingresp)

Request = Callable[[int], Subscribe | Unsubscribe]


class Owner(Protocol):
    """Whose connection it is."""

    runtime: Runtime
    exchanges: Exchanges

    def came(self, link: Link, frame: Any) -> None:
        """A packet about messages."""

    def link_ended(self, link: Link, error: ClientError) -> None:
        """A connection that was open is over."""


class Link(asyncio.Protocol):
    """Belongs to a client.

    Attributes:
        state: ``new``, ``open`` or ``ended``.
        opened_at: When the server let the client in.
        session_present: The server remembers the client.
        waiting: Requests without an answer, by packet id.
    """

    def __init__(self, owner: Owner, connect: Connect) -> None:
        self.owner = owner
        self.connect = connect
        self.state = "new"
        self.opened_at = self.sent_at = self.heard_at = 0.0
        self.session_present = False
        self.waiting: dict[int, tuple[type[Frame], asyncio.Future[Any]]] = {}
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.codec = MqttCodec()
        self._asking = self._notes = 0
        self._wire: Wire | None = None

    # life

    async def open(self, endpoint: str, timeout: float) -> None:
        """Connect, and be let in. Raises `ClientError`; then nothing is left open."""
        try:
            async with asyncio.timeout(timeout):
                self._wire = await self.owner.runtime.network.dial(endpoint, lambda: self)
                self.send(self.connect)
                await self.done
        except TimeoutError:
            raise self.given_up(ClientError("timeout", f"{endpoint}: no CONNACK in time")) from None
        except OSError as error:
            raise self.given_up(ClientError("connection", f"{endpoint}: {error}")) from None
        except BaseException:
            self.given_up(ClientError("closed", "the client was closed"))
            raise
        self.owner.runtime.tasks.spawn(self.watch(self.connect.keep_alive))

    def given_up(self, error: ClientError) -> ClientError:
        """There never was a session on it."""
        self.end(error)
        if self.done.done() and not self.done.cancelled():
            self.done.exception()
        return error

    def end(self, error: ClientError) -> None:
        """It is over, for whatever reason."""
        if self.state == "ended":
            return
        was_open, self.state = self.state == "open", "ended"
        if self._wire is not None:
            self._wire.abort()
        if not self.done.done():
            self.done.set_exception(error)
        lost = error if error.kind == "closed" else ClientError("connection", error.text)
        for number, (_, answer) in self.waiting.items():
            self.owner.exchanges.asked.discard(number)
            if not answer.done():
                answer.set_exception(ClientError(lost.kind, lost.text, definite=False))
        if was_open:
            self.owner.link_ended(self, lost)

    def part(self, error: ClientError) -> None:
        """Say DISCONNECT, and end it."""
        if self.state == "open":
            self.send(Disconnect())
            if self._wire is not None:
                self._wire.close()
        self.end(error)

    async def watch(self, keep_alive: float) -> None:
        """Give a sign of life in each keep alive, ask a silent server for one, and give it up (3.1.2.10)."""
        now, asked_at = self.owner.runtime.clock.now, 0.0
        while keep_alive and self.state == "open":
            if asked_at and self.heard_at < asked_at and now() >= asked_at + keep_alive:
                self.end(ClientError("connection", f"no PINGRESP in {keep_alive} s"))
                return
            quiet_since = min(self.sent_at, self.heard_at)
            if not (asked_at and self.heard_at < asked_at) and now() - quiet_since >= keep_alive * ASK_SHARE:
                asked_at = now()
                self.ping()
            await asyncio.sleep(keep_alive / 8)

    def ping(self) -> None:
        """Ask for a sign of life."""
        self.send(Pingreq())

    # requests

    async def ask(self, make: Request, timeout: float, late: Callable[[Any], None] | None = None) -> Any:
        """Send a request and wait for its answer. Raises `ClientError`.

        Args:
            late: What to do with an answer that comes when nobody waits any more.
        """
        if self.state != "open":
            raise ClientError("connection", "the connection is gone", definite=True)
        number = self.owner.exchanges.next_id()
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        request = make(number)
        kind = Suback if isinstance(request, Subscribe) else Unsuback
        self.waiting[number] = kind, answer
        self.owner.exchanges.asked.add(number)
        self._asking += 1
        self.send(request)
        try:
            async with asyncio.timeout(max(0.0, timeout)):
                return await asyncio.shield(answer)
        except (TimeoutError, asyncio.CancelledError) as error:
            if late is not None:
                answer.add_done_callback(lambda done: done.exception() or late(done.result()))
            else:
                answer.add_done_callback(lambda done: done.exception())
            if isinstance(error, asyncio.CancelledError):
                raise
            raise ClientError("timeout", f"no answer after {timeout:.3f} s") from None
        finally:
            self._asking -= 1

    def answered(self, frame: Suback | Unsuback) -> None:
        """An answer came: to the request of its packet id, if it is of its kind."""
        kind, answer = self.waiting.get(frame.packet_id, (None, None))
        if answer is None or not isinstance(frame, kind or type(None)):
            self.note(f"a {kind_of(frame)} for request {frame.packet_id}, which does not wait")
            return
        del self.waiting[frame.packet_id]
        self.owner.exchanges.asked.discard(frame.packet_id)
        if not answer.done():
            answer.set_result(frame)

    @property
    def asking(self) -> int:
        """Requests that somebody waits for."""
        return self._asking

    # bytes and packets

    def send(self, frame: Frame) -> None:
        """Write a packet."""
        if self._wire is not None and self.state != "ended":
            self.sent_at = self.owner.runtime.clock.now()
            self._wire.write(self.codec.encode(frame))

    def data_received(self, data: bytes) -> None:
        self.heard_at = self.owner.runtime.clock.now()
        for frame, _ in self.codec.feed(data):
            if self.state == "ended":
                return
            self.handle(frame)

    def connection_lost(self, error: Exception | None) -> None:
        self.end(ClientError("connection", str(error or "the server closed the connection")))

    def handle(self, frame: Frame) -> None:
        """A packet came; what no server may send ends the connection (4.8)."""
        if isinstance(frame, Malformed):
            self.broken(frame.problem)
        elif self.state == "new" and not isinstance(frame, Connack):
            self.broken(f"a {kind_of(frame)} before CONNACK")
        elif self.state == "open" and isinstance(frame, Connack):
            self.note("a second CONNACK")
        elif not isinstance(frame, FROM_SERVER):
            self.broken(f"a {kind_of(frame)} from a server")
        elif isinstance(frame, Connack):
            self.let_in(frame)
        elif isinstance(frame, Suback | Unsuback):
            self.answered(frame)
        elif isinstance(frame, Publish) and not is_name(frame.topic):
            self.broken(f"a message to {frame.topic!r}")
        elif not isinstance(frame, Pingresp):
            self.owner.came(self, frame)

    def let_in(self, frame: Connack) -> None:
        """The server says whether the client may come in."""
        if frame.code:
            reason = CODES.get(frame.code, f"code {frame.code}")
            kind = "auth" if frame.code in LOGIN else "refused"
            self.end(ClientError(kind, f"the server refused the client: {reason}", code=frame.code))
            return
        self.session_present = frame.session_present
        self.state = "open"
        self.opened_at = self.owner.runtime.clock.now()
        if not self.done.done():
            self.done.set_result(None)

    def broken(self, text: str) -> None:
        """The server breaks the protocol."""
        error = ClientError("protocol", text)
        if self.state == "open":
            self.owner.runtime.callbacks.trouble("decode", error)
        self.end(error)

    def note(self, text: str) -> None:
        """Something came that nobody waits for."""
        self._notes += 1
        if self._notes <= NOTES_MAX:
            self.owner.runtime.callbacks.note(text)
