"""The reference client of MQTT."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from conformance.clients.adapter import kit
from conformance.clients.reference.kit import DEFAULT_TIMEOUT_S, ClientError, Runtime, WaitQueue
from conformance.clients.reference.mqtt.exchanges import Exchanges
from conformance.clients.reference.mqtt.link import NOT_NOW, Link
from conformance.clients.reference.mqtt.subscriptions import Subscriptions
from conformance.clients.reference.mqtt.topics import is_name
from fakebrokers.core.frames import Frame
from fakebrokers.errors import WireError
from fakebrokers.mqtt.codec import MqttCodec
from fakebrokers.mqtt.frames import Connect, Puback, Pubcomp, Publish, Pubrec, Pubrel, Will

ATTEMPT_S = 5.0  #: what a reconnect may take
LASTING_S = 0.2  #: a connection that has lasted so long was a success
LARGEST = 268_435_455  #: bytes of a packet without its head (2.2.3)
QUEUED_MAX = 100  #: messages that wait for a connection
CLOSED = "the client is closed"


def packet_of(options: Mapping[str, Any], client_id: str) -> Connect:
    """CONNECT as the application has ordered it."""
    given, will = options.get("will"), None
    if given is not None:
        flags = given.get("qos", 0), given.get("retain", False)
        will = Will(given["target"], kit.body_bytes(given["body"]), *flags)
    password = options.get("password")
    packet = Connect(
        options.get("client_id", client_id),
        int(options.get("keep_alive_s", 60)),
        options.get("clean", True),
        will,
        options.get("user"),
        None if password is None else password.encode(),
    )
    try:
        MqttCodec().encode(packet)
    except WireError as error:
        raise ClientError("invalid", str(error)) from None
    return packet


class MqttClient:
    """A session.

    Attributes:
        link: The connection, if there is one.
        waiting: Who waits for the outcome of a message, by packet id.
    """

    def __init__(self, runtime: Runtime, endpoints: list[str], options: Mapping[str, Any]) -> None:
        self.runtime = runtime
        self.endpoints = endpoints
        self.connecting = packet_of(options, f"reference-{runtime.random.getrandbits(48):012x}")
        self.reconnects = bool(options.get("auto_reconnect", True))
        self.link: Link | None = None
        self.exchanges = runtime.part(Exchanges)()
        self.subscriptions = runtime.part(Subscriptions)(self)
        self.pauses = runtime.backoff(0.4, 5.0)
        self.waiting: dict[int, asyncio.Future[None]] = {}
        self._dialled: Link | None = None
        self._connected = asyncio.Event()
        self._line = WaitQueue()
        self._queued = 0

    @property
    def lasts(self) -> bool:
        """Whether the server is asked to remember the client."""
        return not self.connecting.clean

    # life

    async def connect(self, timeout: float | None) -> None:
        """Connect. Raises `ClientError`."""
        try:
            link = await self.dial(DEFAULT_TIMEOUT_S if timeout is None else timeout)
        except BaseException:
            self.finish(ClientError("closed", "it never was connected"))
            raise
        self.runtime.callbacks.report("connected")
        self.resumed(link)

    async def dial(self, timeout: float) -> Link:
        """Make a connection, to the first address that works. Raises `ClientError`, of the last one."""
        deadline, last = self.runtime.clock.deadline(timeout), len(self.endpoints) - 1
        for number, endpoint in enumerate(self.endpoints):
            link = self._dialled = self.runtime.part(Link)(self, self.connecting)
            left_s = (deadline - self.runtime.clock.now()) / (last - number + 1)
            try:
                await link.open(endpoint, left_s)
                break
            except ClientError as error:
                if number == last or self.is_final(error):
                    raise
        if self.runtime.is_closed:
            link.end(ClientError("closed", CLOSED))
            raise ClientError("closed", CLOSED)
        if link.state == "ended":  # between the answer and here
            raise ClientError("connection", "the connection ended as it began")
        self.link = link
        self._connected.set()
        return link

    def resumed(self, link: Link) -> None:
        """A connection is there: go on where the last one ended, if the server remembers that."""
        if not link.session_present:
            self.forget(ClientError("connection", "the server has forgotten the session", definite=False))
            return
        for frame in self.exchanges.again():
            link.send(frame)

    def forget(self, error: ClientError) -> None:
        """What is under way ends, with an unknown outcome."""
        self.exchanges.forget()
        waiting, self.waiting = self.waiting, {}
        for answer in waiting.values():
            if not answer.done():
                answer.set_exception(error)

    def link_ended(self, link: Link, error: ClientError) -> None:
        """A connection is over."""
        if link is not self.link:
            return
        self.link = None
        self._connected.clear()
        goes_on = self.reconnects and not self.runtime.is_closed
        if not goes_on or not self.lasts:
            self.forget(ClientError(error.kind, error.text, definite=False))
        if self.runtime.is_closed:
            return
        self.runtime.callbacks.report("connection_lost", error.text)
        if self.runtime.clock.now() - link.opened_at >= LASTING_S:
            self.pauses.reset()
        if self.reconnects:
            self.runtime.tasks.spawn(self.reconnect())

    async def reconnect(self) -> None:
        """Come back, and subscribe again."""
        try:
            link = await self.pauses.retry(lambda: self.dial(ATTEMPT_S), self.is_final)
        except ClientError as error:
            self.reconnects = False
            self._connected.set()  # those who wait learn that none comes
            self.forget(ClientError("connection", error.text, definite=False))
            self.runtime.callbacks.report("disconnected", error.text, error.code)
            return
        self.resumed(link)
        self.runtime.callbacks.report("reconnected")
        try:
            await self.subscriptions.restore(link)
        except ClientError as error:
            self.runtime.callbacks.note(f"lost again while subscriptions were made: {error.text}")

    def is_final(self, error: ClientError) -> bool:
        """Whether it makes no sense to try again."""
        return error.kind in ("auth", "closed") or (error.kind == "refused" and error.code != NOT_NOW)

    async def close(self, timeout: float | None = None) -> None:
        """Say DISCONNECT and end the connection. May be called twice."""
        self.runtime.is_closed = True
        error = ClientError("closed", "the client was closed", definite=False)
        if self.link is not None:
            self.link.part(error)
        self.finish(error)
        await asyncio.sleep(0)  # those who wait learn it first

    def finish(self, error: ClientError) -> None:
        """Nothing is sent or comes any more; a callback that runs goes on."""
        self.runtime.is_closed = True
        for link in (self.link, self._dialled):
            if link is not None:
                link.end(error)
        self._connected.set()
        self.forget(ClientError(error.kind, error.text, definite=False))
        self.runtime.tasks.end()
        self.subscriptions.early.clear()
        self.subscriptions.feed.clear()
        self.subscriptions.feed.end()

    def abort(self) -> None:
        """Drop everything at once."""
        self.finish(ClientError("closed", "the client was dropped", definite=False))
        self.runtime.end()

    # messages

    async def publish(
        self, topic: str, payload: bytes, qos: int, *, retain: bool, timeout: float
    ) -> int | None:
        """Publish; with QoS 1 and 2 wait for the last step. Returns the packet id.

        Raises:
            ClientError: ``connection`` (definite: it was not sent; else nobody knows), ``timeout``,
                ``closed``, ``invalid``.
        """
        if not is_name(topic) or qos not in (0, 1, 2):
            raise ClientError("invalid", f"no message: {topic!r} with QoS {qos}")
        if len(payload) + len(topic.encode()) + 4 > LARGEST:
            raise ClientError("invalid", f"a packet has at most {LARGEST} bytes")
        deadline = self.runtime.clock.deadline(timeout)
        link = await self.available(deadline)
        frame = self.exchanges.publish(topic, payload, qos, retain=retain)
        if not qos:
            link.send(frame)
            return None
        answer = self.waiting[frame.packet_id] = asyncio.get_running_loop().create_future()
        link.send(frame)
        try:
            async with asyncio.timeout_at(deadline):
                await answer
        except TimeoutError:
            raise ClientError("timeout", f"not acknowledged after {timeout} s") from None
        finally:
            if self.waiting.get(frame.packet_id) is answer:  # the exchange goes on without us
                del self.waiting[frame.packet_id]
            if answer.done() and not answer.cancelled():
                answer.exception()
        return frame.packet_id

    async def available(self, deadline: float) -> Link:
        """The connection, or the next one; who began first goes on first.

        Raises `ClientError`, definite: ``timeout``, ``closed``, ``connection`` (none comes, too many wait).
        """
        self.check_open()
        if self.is_open and not self._queued:
            return self.usable()
        if not self.reconnects or self._queued >= QUEUED_MAX:
            raise ClientError("connection", "there is no connection", definite=True)
        self._queued += 1
        try:
            async with asyncio.timeout_at(deadline):
                await self._line.after(self._connected.wait())
        except TimeoutError:
            raise ClientError("timeout", "there is no connection", definite=True) from None
        finally:
            self._queued -= 1
        return self.usable()

    def came(self, link: Link, frame: Any) -> None:
        """A packet about messages came."""
        match frame:
            case Publish():
                self.answer(link, *self.exchanges.on_publish(frame))
            case Pubrel():
                self.answer(link, *self.exchanges.on_pubrel(frame))
            case Pubrec():
                self.answer(link, None, self.exchanges.on_pubrec(frame))
            case Puback() | Pubcomp():
                self.acknowledged(frame)

    def answer(self, link: Link, message: Publish | None, answer: Frame | None) -> None:
        """Deliver a message, send an answer, or both."""
        if answer is not None:
            link.send(answer)
        if message is not None:
            self.subscriptions.take(link, message)

    def acknowledged(self, frame: Puback | Pubcomp) -> None:
        """The server has a message for good."""
        if not self.exchanges.acknowledged(frame):
            self.runtime.callbacks.note(f"an acknowledgement of {frame.packet_id}, which waits for none")
            return
        answer = self.waiting.pop(frame.packet_id, None)
        if answer is not None and not answer.done():
            answer.set_result(None)

    # what the parts ask

    def check_open(self) -> None:
        """Raise `ClientError` (closed) if it is not."""
        if self.runtime.is_closed:
            raise ClientError("closed", CLOSED, definite=True)

    def usable(self) -> Link:
        """The connection. Raises `ClientError` (closed, connection)."""
        self.check_open()
        if self.link is None or self.link.state != "open":
            raise ClientError("connection", "there is no connection", definite=True)
        return self.link

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return not self.runtime.is_closed and self.link is not None and self.link.state == "open"

    @property
    def pending(self) -> int:
        """Requests and messages that somebody waits for."""
        asked = self.link.asking if self.link is not None else 0
        return asked + len(self.waiting)

    @property
    def buffered_bytes(self) -> int:
        """Of messages that are kept here, in both directions."""
        sent = sum(each.size for each in self.exchanges.outgoing.values())
        return sent + self.subscriptions.buffered_bytes

    @property
    def timers(self) -> int:
        """One for each op that waits, and that of the keep alive."""
        return self.pending + int(self.is_open and self.connecting.keep_alive > 0)
