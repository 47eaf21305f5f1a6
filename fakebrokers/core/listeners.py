"""The listeners of one fake: what a listener is, and whether new connections are let in.

A listener is a TCP socket (`tcp`), an address in memory (`memory`), what a library listens with, or a UDP
socket; nothing here knows which. Connections that the fake opens itself are `tcp.TcpDialler`'s.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, NamedTuple, Protocol

from fakebrokers.core.session import Codec, Session
from fakebrokers.core.wire import Wire
from fakebrokers.journal import Journal


class Endpoint(NamedTuple):
    """An address of a fake, before anything listens there.

    Attributes:
        wire: What is spoken there.
        new_session: Makes session and codec for a connection; gets its transport, of which it may ask
            ``get_extra_info`` (``peername``, ``peercert``).
        port: TCP port; 0 for any free one.
        tls: The server's side of TLS, if it is spoken there.
        quick_acks: Whether the kernel acknowledges each read at once (Linux), for clients that keep so few
            bytes in flight that each delayed acknowledgement stops them for 40 ms.
        node: Which node of a cluster listens there, from 0; in a simulation each has a host of its own.
    """

    wire: Wire
    new_session: Callable[[Any], tuple[Session, Codec]]
    port: int = 0
    tls: ssl.SSLContext | None = None
    quick_acks: bool = False
    node: int = 0


class Listener(Protocol):
    """Something that clients connect to. All methods but `bind` on the fake's own thread."""

    @property
    def port(self) -> int:
        """The port, once it is bound; 0 where there are none."""

    def bind(self) -> None:
        """Take the address, so that clients can begin to connect. Any thread.

        Raises:
            OSError: It is in use.
        """

    async def serve(self) -> None:
        """Accept connections from now on."""

    def refuse(self, *, after_step: bool = False) -> None:
        """Refuse new connections, and keep the address for `serve`.

        Args:
            after_step: What is being said in this step must still leave (the broker dies).
        """

    def black_hole(self) -> None:
        """Let new connects hang instead of refusing or accepting them."""

    def close(self) -> None:
        """Give the address back and cut every connection, without telling the engine."""

    def client_holds(self, connection: str, address: str) -> bool | None:
        """Whether the client still holds its end of a connection; None where that cannot be told."""


class EngineLog(Protocol):
    """What listeners need of their engine: the time, and where events and errors go."""

    @property
    def now(self) -> float:
        """When what happens now happens, monotonic seconds."""

    @property
    def journal(self) -> Journal:
        """Where it is written down."""

    def keep_error(self, error: BaseException, where: str) -> None:
        """Keep an error inside the fake for the test."""


class Listeners:
    """All listeners of one fake, as faults and tests see them.

    Several reasons may keep them shut at the same time; they open when the last one is gone.
    """

    def __init__(self, engine: EngineLog) -> None:
        self._engine = engine
        self._items: list[Listener] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reasons: dict[str, asyncio.TimerHandle | None] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __iter__(self) -> Iterator[Listener]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, number: int) -> Listener:
        return self._items[number]

    def bind(self, items: list[Listener], loop: asyncio.AbstractEventLoop) -> None:
        """Take all addresses; `serve` comes next. Any thread. `OSError` if one is in use."""
        self._items = items
        self._loop = loop
        for listener in items:
            listener.bind()

    def add(self, listener: Listener) -> None:
        """One more address, from now on. On the loop."""
        listener.bind()
        self._items.append(listener)
        if not self._reasons:
            _run_at_once(listener.serve())

    async def serve(self) -> None:
        """Let everybody in, whatever the reasons were."""
        for reason in tuple(self._reasons):
            self._drop(reason)
        for listener in self._items:
            await listener.serve()

    def refuse(self, reason: str, for_s: float | None, *, after_step: bool = False) -> None:
        """Refuse new connections for `for_s` seconds; None until `open`."""
        for listener in self._items:
            listener.refuse(after_step=after_step)
        self._note(reason, for_s)

    def black_hole(self, reason: str, for_s: float | None) -> None:
        """Let new connects hang for `for_s` seconds; None until `open`."""
        for listener in self._items:
            listener.black_hole()
        self._note(reason, for_s)

    def open(self, reason: str) -> None:
        """This reason is over. On the loop."""
        if self._drop(reason) and not self._reasons and self._loop is not None:
            task = self._loop.create_task(self.reopen())
            self._tasks.add(task)
            task.add_done_callback(self._reopened)

    async def reopen(self) -> None:
        """Let everybody in again, and write that down."""
        await self.serve()
        # the engine's time is that of the last thing on the wire, which may be long ago
        now = self._engine.now if self._loop is None else self._loop.time()
        self._engine.journal.state(now, "", "listening")

    def close(self) -> None:
        """The fake stops: give all addresses back, cut all connections."""
        for reason in tuple(self._reasons):
            self._drop(reason)
        for task in self._tasks:
            task.cancel()
        for listener in self._items:
            listener.close()

    def client_holds(self, connection: str, address: str) -> bool | None:
        """Whether the client still holds its end of a connection; None where that cannot be told."""
        answers = [listener.client_holds(connection, address) for listener in self._items]
        known = [answer for answer in answers if answer is not None]
        return any(known) if known else None

    def _note(self, reason: str, for_s: float | None) -> None:
        self._drop(reason)
        timer = None
        if for_s is not None and self._loop is not None:
            timer = self._loop.call_later(for_s, self.open, reason)
        self._reasons[reason] = timer

    def _drop(self, reason: str) -> bool:
        known = reason in self._reasons
        timer = self._reasons.pop(reason, None)
        if timer is not None:
            timer.cancel()
        return known

    def _reopened(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self._engine.keep_error(error, "when its listeners were opened again")


def _run_at_once(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration:
        return
    work.close()
    raise RuntimeError("this listener waits for something before it serves")
