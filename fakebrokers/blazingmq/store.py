"""What a queue holds."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakebrokers.blazingmq.host import Usage
    from fakebrokers.blazingmq.message import Message


class Store:
    """Messages, and how far apps are with them.

    Attributes:
        messages: What is stored, by GUID, in the order in which it came.
        bytes: The size of all that.
        ahead: What no app has had its turn with.
        usage: What all queues of the domain hold.
    """

    def __init__(self, usage: Usage) -> None:
        self.messages: dict[bytes, Message] = {}
        self.bytes = 0
        self.ahead: deque[Message] = deque()
        self.usage = usage

    def add(self, message: Message) -> None:
        """One more, the last in turn."""
        self.messages[message.guid] = message
        self._count(message, 1)

    def remove(self, message: Message) -> None:
        """Nobody has to confirm it any more."""
        message.waiting = frozenset()
        del self.messages[message.guid]
        self._count(message, -1)

    def _count(self, message: Message, sign: int) -> None:
        self.bytes += sign * message.size
        self.usage.bytes += sign * message.size
        self.usage.messages += sign

    @property
    def turn(self) -> Message | None:
        """The next message that apps have not had their turn with."""
        return next((each for each in self.ahead if each.waiting), None)

    def unconfirmed(self, app: str, since: Message | None, until: Message | None) -> Iterator[Message]:
        """What an app has still to confirm, in order.

        Args:
            since: The first one; None: from the beginning.
            until: The one before which they end; to the end if None, or if the app has confirmed that one.
        """
        waits = (each for each in self.messages.values() if app in each.waiting)
        begun = dropwhile(lambda each: since is not None and each is not since, waits)
        return takewhile(lambda each: each is not until, begun)
