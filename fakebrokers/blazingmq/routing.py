"""Which consumer gets a message (docs/protocols/blazingmq.md, 9; mqbblp_routers).

Subscriptions with the same expression are a group. In a group only those with the highest priority count, in
turn; groups are asked by their priorities, highest first, and of one priority in the order of their
subscriptions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto
from typing import TYPE_CHECKING

from fakebrokers.blazingmq.expressions import BadExpression, Properties, compile_expression
from fakebrokers.blazingmq.stream import Stream, Subscriber

if TYPE_CHECKING:
    from fakebrokers.blazingmq.flow import Flow
    from fakebrokers.blazingmq.message import Message


class Outcome(Enum):
    """What became of a message."""

    SENT = auto()
    NO_CAPACITY = auto()  #: those that want it are full; others may want the next one
    ALL_FULL = auto()  #: nobody takes anything
    UNWANTED = auto()  #: no subscription matches
    GONE = auto()  #: confirmed, expired or purged meanwhile
    HELD_BACK = auto()  #: clients were lost with it, and its next one has just got another


class Group:
    """Subscribers with one expression and one priority.

    Attributes:
        identity: Stays the same as long as anybody has the expression.
        open: False once all were full, until `reopen`.
    """

    def __init__(self, expression: str, priority: int, identity: object) -> None:
        self.expression = expression
        self.priority = priority
        self.identity = identity
        self.subscribers: list[Subscriber] = []
        self.open = True
        self._matches = _compiled(expression)

    def wants(self, message: Message) -> bool:
        """Whether the expression holds."""
        return self._matches is None or self._matches(message.values)

    def next(self) -> Subscriber | None:
        """Who gets the next message; the turn moves on."""
        for place, subscriber in enumerate(self.subscribers):
            if subscriber.can_take:
                if subscriber.taken():
                    self.subscribers.append(self.subscribers.pop(place))
                return subscriber
        self.open = False
        return None


def _compiled(expression: str) -> Callable[[Properties], bool] | None:
    """None: everything matches. A broker takes what it cannot compile for that, too."""
    if not expression:
        return None
    try:
        return compile_expression(expression)
    except BadExpression:
        return None


class Router:
    """All groups of an app.

    Args:
        before: The groups that there were.
    """

    def __init__(self, streams: Iterable[Stream] = (), before: Iterable[Group] = ()) -> None:
        best: dict[str, Group] = {}
        known = {group.expression: group.identity for group in before}
        everybody = [(stream, consumer) for stream in streams for consumer in stream.consumers]
        for stream, consumer in sorted(everybody, key=lambda one: -one[1].priority):
            group = best.get(consumer.expression)
            if group is None:
                identity = known.setdefault(consumer.expression, object())
                group = Group(consumer.expression, consumer.priority, identity)
                best[consumer.expression] = group
            if group.priority == consumer.priority:
                flow = stream.flow(consumer)
                flow.group = group.identity
                group.subscribers.append(Subscriber(stream, consumer, flow))
        self.groups = list(best.values())
        self._last: dict[Stream, tuple[bytes, float]] = {}  # what each got out of turn, and when

    def __bool__(self) -> bool:
        return bool(self.groups)

    def reopen(self, flow: Flow | None = None) -> bool:
        """A subscription has room again; None: any may have. Its group is asked again, others are not.

        That is so even if the subscription is gone. False: nobody has its expression any more.
        """
        groups = [group for group in self.groups if flow is None or flow.group is group.identity]
        for group in groups:
            group.open = True
        return bool(groups)

    def choose(self, message: Message) -> Subscriber | Outcome:
        """Who gets a message, or why nobody does. Groups that were found full are passed over unasked."""
        all_full, full, priority = True, False, None
        for group in self.groups:
            if full and group.priority != priority:
                break
            if not group.open:
                continue
            if not group.wants(message):
                all_full = False
                continue
            subscriber = group.next()
            if subscriber is not None:
                return subscriber
            full, priority = True, group.priority
        if all_full:
            return Outcome.ALL_FULL
        return Outcome.NO_CAPACITY if full else Outcome.UNWANTED

    def choose_patiently(self, message: Message, delay: float, now: float) -> Subscriber | Outcome | float:
        """Who gets a message that clients were lost with, or the seconds until somebody may.

        Args:
            delay: Seconds since a consumer got its last message out of turn.
        """
        left = []
        for subscriber in self._matching(message):
            _, at = self._last.get(subscriber.stream, (b"", -math.inf))
            if at + delay <= now:
                return subscriber
            left.append(at + delay - now)
        return min(left, default=Outcome.HELD_BACK)

    def sent(self, stream: Stream, guid: bytes, now: float) -> None:
        """A stream got a message out of turn."""
        self._last[stream] = guid, now

    def forgive(self, stream: Stream, guid: bytes) -> bool:
        """A message is confirmed; whether it was the last one that its consumer got out of turn."""
        if self._last.get(stream, (b"", 0.0))[0] != guid:
            return False
        del self._last[stream]
        return True

    def _matching(self, message: Message) -> Iterator[Subscriber]:
        """Whoever may take a message, one of each stream."""
        served = set()
        for group in self.groups:
            if group.wants(message):
                for subscriber in group.subscribers:
                    if subscriber.stream not in served and subscriber.can_take:
                        served.add(subscriber.stream)
                        yield subscriber

    def everybody(self, message: Message) -> Iterable[Subscriber]:
        """One subscriber of each stream that matches, in broadcast mode."""
        served = set()
        for group in self.groups:
            if group.wants(message):
                for subscriber in group.subscribers:
                    handle = subscriber.stream.handle
                    if handle not in served and not subscriber.flow.full:
                        served.add(handle)
                        yield subscriber
