"""One app of a queue: what it has still to get, and who gets it (docs/protocols/blazingmq.md, 9).

A queue that is no fanout has one app, `codes.DEFAULT_APP`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from fakebrokers.blazingmq.routing import Outcome, Router, Subscriber

if TYPE_CHECKING:
    from fakebrokers.blazingmq.handle import Stream
    from fakebrokers.blazingmq.message import Message

Waiting = dict[bytes, "Message"]


class App:
    """Delivers in the order in which messages came, but what comes back is first.

    A message that came back and that no subscription wants any more does not keep the others waiting, as it
    does in the broker (mqbblp_queueengineutil, `RedeliveryList`), where they wait until subscriptions change.

    Attributes:
        authorised: False for an app that the domain does not list: it may be opened, and gets nothing.
        streams: Of all handles that read it, in the order in which they were opened.
        redelivery: What came back.
    """

    def __init__(self, name: str, authorised: bool = True) -> None:
        self.name = name
        self.authorised = authorised
        self.streams: list[Stream] = []
        self.redelivery: Waiting = {}
        self._router = Router()
        self._aside: Waiting = {}  # wanted by somebody who was full
        self._unwanted: Waiting = {}  # by any subscription there is
        self._fresh: deque[Message] = deque()  # never tried

    @property
    def undelivered(self) -> int:
        """Messages that nobody has."""
        lists = (self.redelivery.values(), self._aside.values(), self._unwanted.values(), self._fresh)
        return sum(self.name in message.waiting for each in lists for message in each)

    # who takes messages

    def rebuild(self) -> None:
        """Subscriptions have changed: those of all streams are put together anew."""
        self._router = Router(self.streams)
        self._aside = {**self._unwanted, **self._aside} if self._unwanted else self._aside
        self._unwanted = {}

    def usable(self) -> None:
        """Somebody who was full takes messages again."""
        self._router.reopen()
        self.deliver()

    # messages

    def choose_at_once(self, message: Message) -> Subscriber | None:
        """Who gets a message that has just come; it waits if nobody does."""
        if not self.authorised:
            return None
        if not self._router or self.redelivery or self._fresh:
            self._fresh.append(message)
            return None
        chosen = self._router.choose(message)
        if isinstance(chosen, Subscriber):
            return chosen
        self._put_aside(message, chosen)
        return None

    def everybody(self, message: Message) -> Iterable[Subscriber]:
        """Who gets a message of a broadcast queue."""
        return self._router.everybody(message)

    def take_back(self, messages: Iterable[Message]) -> None:
        """A consumer is gone, and these come again, behind what came back before."""
        self.redelivery.update({each.guid: each for each in messages if self.name in each.waiting})

    def forget_gone(self) -> None:
        """Hold on to no message that was purged or has expired."""
        self.redelivery = self._still_waiting(self.redelivery)
        self._aside = self._still_waiting(self._aside)
        self._unwanted = self._still_waiting(self._unwanted)
        self._fresh = deque([each for each in self._fresh if self.name in each.waiting])

    def _still_waiting(self, waiting: Waiting) -> Waiting:
        return {guid: each for guid, each in waiting.items() if self.name in each.waiting}

    def deliver(self) -> None:
        """Hand out what waits, as far as there are takers."""
        if not self.authorised or not self._router:
            return
        self.redelivery = self._deliver_waiting(self.redelivery)
        self._aside = self._deliver_waiting(self._aside)
        if not self.redelivery:
            self._catch_up()

    def _deliver_waiting(self, waiting: Waiting) -> Waiting:
        left: Waiting = {}
        outcome = Outcome.GONE
        for guid, message in waiting.items():
            if outcome is not Outcome.ALL_FULL:
                outcome = self._try(message)
            if outcome is Outcome.UNWANTED:
                self._unwanted[guid] = message
            elif outcome not in (Outcome.SENT, Outcome.GONE):
                left[guid] = message
        return left

    def _catch_up(self) -> None:
        while self._fresh:
            outcome = self._try(self._fresh[0])
            if outcome is Outcome.ALL_FULL:
                return
            message = self._fresh.popleft()
            if outcome not in (Outcome.SENT, Outcome.GONE):
                self._put_aside(message, outcome)

    def _try(self, message: Message) -> Outcome:
        if self.name not in message.waiting:
            return Outcome.GONE
        chosen = self._router.choose(message)
        if isinstance(chosen, Outcome):
            return chosen
        chosen.stream.deliver(message, [chosen], out_of_order=True)
        return Outcome.SENT

    def _put_aside(self, message: Message, outcome: Outcome) -> None:
        if outcome is Outcome.ALL_FULL:
            self._fresh.append(message)
        else:
            (self._unwanted if outcome is Outcome.UNWANTED else self._aside)[message.guid] = message
