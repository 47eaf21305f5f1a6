"""One connection: commands go out, answers come back in their order, and pushes besides."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from conformance.clients.reference.kit import DEFAULT_TIMEOUT_S, ClientError, Runtime, Wire
from conformance.clients.reference.redis.resp import ErrorReply, Parser, Push, command

Words = Sequence[bytes]
Answer = asyncio.Future[Any]

MESSAGES = (b"message", b"pmessage", b"smessage")
CHANGES = (b"subscribe", b"psubscribe", b"ssubscribe", b"unsubscribe", b"punsubscribe", b"sunsubscribe")
GRACE_S = 1.0  #: in which an answer may come that nobody waits for any more
#: Errors after which another attempt with the same credentials ends alike.
DENIED = ("NOAUTH", "WRONGPASS", "NOPERM")


class Settings(NamedTuple):
    """Of a session.

    Attributes:
        resp: 2 or 3.
        user, password: None: without a login.
    """

    endpoint: str
    resp: int = 2
    user: str | None = None
    password: str | None = None
    auto_reconnect: bool = False


class Slot:
    """Whoever waits for an answer, and the timer that ends the wait."""

    def __init__(self, words: Words, answer: Answer, timer: asyncio.TimerHandle) -> None:
        self.words = words
        self.answer = answer
        self.timer = timer


class Link(asyncio.Protocol):
    """Answers belong to commands by their order alone. Who is called off, or has no time left, leaves its
    place, and its answer is dropped when it comes. One that is overdue by `GRACE_S`, and whatever cannot be
    read, ends the connection.

    Args:
        lost: Is called once, when the connection has ended by anything but `abort`.
        push: Takes what comes unasked.
        listens: Whether messages come in RESP2, too.
    """

    def __init__(
        self,
        runtime: Runtime,
        lost: Callable[[Link, ClientError], None],
        push: Callable[[Sequence[Any]], None],
        *,
        listens: bool = False,
    ) -> None:
        self.runtime = runtime
        self.on_lost = lost
        self.push = push
        self.listens = listens
        self.parser = runtime.part(Parser)()
        self.waiting: deque[Slot] = deque()
        self.wire: Wire | None = None
        self.is_open = False

    async def open(self, settings: Settings) -> None:
        """Dial and log in. Raises `ClientError` (connection, auth, refused, protocol, closed)."""
        self.check_open()
        try:
            self.wire = await self.runtime.network.dial(settings.endpoint, lambda: self)
        except OSError as error:
            raise ClientError("connection", str(error), definite=True) from None
        self.is_open = True
        try:
            await self.greet(settings)
        except BaseException:
            self.abort(ClientError("closed", "the handshake was given up"))
            raise

    def check_open(self) -> None:
        """Raise `ClientError` (closed) after the end of the session."""
        if self.runtime.is_closed:
            raise ClientError("closed", "the client is closed", definite=True)

    async def greet(self, settings: Settings) -> None:
        """The handshake."""
        words = [b"HELLO", b"%d" % settings.resp]
        if settings.password is not None:
            words += [b"AUTH", (settings.user or "default").encode(), settings.password.encode()]
        await self.ask(words)
        self.parser.resp3 = settings.resp == 3

    def send(self, words: Words, timeout: float | None = None) -> Answer:
        """Say a command; the future ends with its answer, or a `ClientError`."""
        loop = asyncio.get_running_loop()
        answer: Answer = loop.create_future()
        if self.wire is None or not self.is_open:
            answer.set_exception(ClientError("connection", "the connection is gone", definite=True))
            return answer
        seconds = DEFAULT_TIMEOUT_S if timeout is None else timeout
        self.waiting.append(Slot(words, answer, loop.call_later(seconds, self.late, answer)))
        self.wire.write(self.encode(words))
        return answer

    def late(self, answer: Answer) -> None:
        """The time of whoever waits is over."""
        fail(answer, ClientError("timeout", "no answer in time"))
        slot = next(slot for slot in self.waiting if slot.answer is answer)
        slot.timer = asyncio.get_running_loop().call_later(GRACE_S, self.overdue)

    async def ask(self, words: Words, timeout: float | None = None) -> Any:
        """Say a command and wait. Raises `ClientError`, refused or auth for an error of the server."""
        return checked(await self.send(words, timeout))

    def encode(self, words: Words) -> bytes:
        """The bytes of a command."""
        return command(words)

    def overdue(self) -> None:
        """An answer does not come, and those after it cannot be told from it."""
        self.lose(ClientError("connection", "an answer is overdue"))

    # what comes

    def data_received(self, data: bytes) -> None:
        try:
            for value in self.parser.feed(data):
                if not self.is_open:
                    return
                self.take(value)
        except ClientError as error:
            self.runtime.callbacks.trouble("read", error)
            self.lose(error)

    def take(self, value: Any) -> None:
        """One value: a message, or the next answer."""
        kind = value[0] if isinstance(value, list | Push) and value else None
        apart = isinstance(value, Push) or self.listens
        changing = bool(self.waiting) and self.waiting[0].words[0].lower() in CHANGES
        if (apart and kind in MESSAGES) or (isinstance(value, Push) and kind not in CHANGES):
            self.push(value)
        elif not self.waiting or (apart and kind in CHANGES and not changing):
            self.runtime.callbacks.note(f"an answer to no command was dropped: {value!r:.80}")
        else:
            slot = self.waiting[0]
            if changing and not isinstance(value, ErrorReply) and not is_about(value, slot.words):
                raise ClientError("protocol", f"{value!r:.80} does not answer {slot.words!r:.80}")
            self.waiting.popleft().timer.cancel()
            if slot.answer.done():
                self.runtime.callbacks.note("an answer came that nobody waits for any more")
            else:
                slot.answer.set_result(value)

    def connection_lost(self, error: Exception | None) -> None:
        self.lose(ClientError("connection", str(error) if error else "the server has ended it"))

    # the end

    def lose(self, error: ClientError) -> None:
        """The connection is over."""
        if self.is_open:
            self.abort(error)
            self.on_lost(self, error)

    def abort(self, error: ClientError) -> None:
        """End it; what waits gets the error."""
        self.is_open = False
        if self.wire is not None:
            self.wire.abort()
        while self.waiting:
            slot = self.waiting.popleft()
            slot.timer.cancel()
            fail(slot.answer, error)


def is_about(value: Any, words: Words) -> bool:
    """Whether a change of subscriptions is the one that was asked for."""
    wanted = [words[0].lower(), *words[1:2]]
    return isinstance(value, list | Push) and list(value[:2]) == wanted and len(value) == 3


def fail(answer: Answer, error: ClientError) -> None:
    """End what waits, if it does."""
    if not answer.done():
        answer.set_exception(ClientError(error.kind, error.text, code=error.code))
        answer.exception()  # whoever was called off does not ask for it


def checked(value: Any) -> Any:
    """An answer that is no error. Raises `ClientError` (auth, refused) with its first word as code."""
    if isinstance(value, ErrorReply):
        kind = "auth" if value.code in DENIED else "refused"
        raise ClientError(kind, value, code=value.code, definite=True)
    return value
