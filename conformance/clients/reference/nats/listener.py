"""One subscription of the application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from conformance.clients.reference.kit import ClientError, Feed, Runtime
from conformance.clients.reference.nats import wire

Deliver = Callable[[wire.Message], Awaitable[None]]


class Listener:
    """Messages reach the callback one after the other.

    Args:
        limit: Messages after which it ends by itself; 0 for no end.
        pending_limit: Messages that may wait; 0 for no limit.

    Attributes:
        received: Messages so far, on whatever connection.
        is_over: It wants no more.
    """

    def __init__(
        self,
        runtime: Runtime,
        subject: str,
        sid: str,
        deliver: Deliver,
        *,
        queue: str = "",
        limit: int = 0,
        pending_limit: int = 0,
    ) -> None:
        self.runtime = runtime
        self.subject = subject
        self.sid = sid
        self.queue = queue
        self.limit = limit
        self.pending_limit = pending_limit
        self.received = 0
        self.is_over = False
        self._deliver = deliver
        self._is_slow = False
        self.feed: Feed[wire.Message] = Feed(runtime.feeds, self.handle)

    def orders(self) -> bytes:
        """What makes a server send it messages, as many as it still wants."""
        order = wire.subscribe(self.subject, self.sid, self.queue)
        return order + wire.unsubscribe(self.sid, self.left()) if self.limit else order

    def left(self) -> int:
        """How many messages it still wants, where that has an end."""
        return self.limit - self.received

    def take(self, message: wire.Message) -> None:
        """A message has come."""
        if self.is_over:
            self.runtime.callbacks.note(f"a message for {self.subject} after its end was dropped")
            return
        self.received += 1
        if self.pending_limit and len(self.feed) >= self.pending_limit:
            self.overrun()
        else:
            self._is_slow = False
            self.feed.put(message)
        if self.limit and self.received >= self.limit:
            self.end()

    def overrun(self) -> None:
        """The callback is too slow: the message is dropped, which is reported once."""
        if not self._is_slow:
            self._is_slow = True
            text = f"slow consumer of {self.subject}: more than {self.pending_limit} messages wait"
            self.runtime.callbacks.trouble("other", ClientError("internal", text))

    async def handle(self, message: wire.Message) -> None:
        """Call the application back."""
        await self.runtime.callbacks.contain_async("message", lambda: self._deliver(message))

    def end(self) -> None:
        """No more comes; what has come is handed over."""
        self.is_over = True
        self.feed.end()

    def stop(self) -> None:
        """The same, but what waits is forgotten; a callback that runs goes on."""
        self.feed.clear()
        self.end()
