"""One app of a queue: what it has still to get, and who gets it (docs/protocols/blazingmq.md, 9).

A queue that is no fanout has one app, `codes.DEFAULT_APP`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from fakebrokers.blazingmq.routing import Outcome, Router
from fakebrokers.blazingmq.stream import Stream, Subscriber

if TYPE_CHECKING:
    from fakebrokers.blazingmq.flow import Flow
    from fakebrokers.blazingmq.host import Host
    from fakebrokers.blazingmq.message import Message
    from fakebrokers.blazingmq.routing import Group
    from fakebrokers.blazingmq.store import Store


class Waiting:
    """Messages that wait, in order. Those that no subscription wants are tried again after `touch` only."""

    def __init__(self) -> None:
        self._all: dict[bytes, Message] = {}
        self._tried: dict[bytes, Message] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._all.values())

    def add(self, message: Message) -> None:
        """One more, the last in turn."""
        self._all[message.guid] = self._tried[message.guid] = message

    def touch(self) -> None:
        """Subscriptions have changed."""
        if len(self._tried) < len(self._all):
            self._tried = dict(self._all)

    def keep(self, app: str) -> None:
        """Forget those that the app need not get any more."""
        for guid in [guid for guid, each in self._all.items() if app not in each.waiting]:
            del self._all[guid]
            self._tried.pop(guid, None)

    def deliver(self, attempt: Callable[[Message], Outcome]) -> None:
        """Try them in turn, until nobody takes anything or the next one has to wait."""
        done: list[bytes] = []
        unwanted: list[bytes] = []
        for guid, message in self._tried.items():
            outcome = attempt(message)
            if outcome in (Outcome.ALL_FULL, Outcome.HELD_BACK):
                break
            if outcome in (Outcome.SENT, Outcome.GONE):
                done.append(guid)
            elif outcome is Outcome.UNWANTED:
                unwanted.append(guid)
        for guid in done:
            del self._all[guid]
        for guid in done + unwanted:
            del self._tried[guid]


class App:
    """Delivers in the order in which messages came, but what comes back is first, and keeps others waiting.

    Args:
        advance: Gives all apps of the queue their turn with what came.

    Attributes:
        authorised: False for an app that the domain does not list: it may be opened, and gets nothing.
        streams: Of all handles that read it, in the order in which they were opened.
        redelivery: What came back.
    """

    def __init__(
        self, name: str, store: Store, host: Host, advance: Callable[[], None], authorised: bool = True
    ) -> None:
        self.name = name
        self.authorised = authorised
        self.streams: list[Stream] = []
        self.redelivery = Waiting()
        self._store = store
        self._host = host
        self._advance = advance
        self._router = Router()
        self._aside = Waiting()  # wanted by somebody who was full, or by nobody
        self._behind: deque[Message] = deque()  # other apps have had their turn, this one has not
        self._stop = b""  # the message at which it has stopped: it has to catch up before it goes on
        self._hold = host.timers.new(self._held_long_enough)

    @property
    def groups(self) -> Sequence[Group]:
        """Who may take messages."""
        return self._router.groups

    @property
    def undelivered(self) -> int:
        """Messages that nobody has."""
        lists = (self.redelivery, self._aside, self._behind, self._store.ahead)
        return sum(self.name in message.waiting for each in lists for message in each)

    # who takes messages

    def rebuild(self) -> None:
        """Subscriptions have changed: those of all streams are put together anew."""
        self._router = Router(self.streams, self.groups)
        self.redelivery.touch()
        self._aside.touch()

    def usable(self, flow: Flow | None = None) -> None:
        """A subscription that was full takes messages again; None: any may."""
        if self._router.reopen(flow):
            self.deliver()

    def confirmed(self, stream: Stream, guid: bytes) -> None:
        """A consumer is done with a message; if others are held back because of it, they need not wait."""
        if self._hold.is_set and self._router.forgive(stream, guid):
            self._hold.set(self._host.now)

    # messages

    def offer(self, message: Message) -> Subscriber | Outcome:
        """Who gets a message whose turn it is; `Outcome.ALL_FULL`: the app stops there."""
        if self.redelivery or self._stop or not self.authorised:
            if self.authorised and not self._stop:
                self._stop = message.guid
            return Outcome.ALL_FULL
        if self.name not in message.waiting:
            return Outcome.GONE
        chosen = self._router.choose(message)
        if chosen is Outcome.ALL_FULL:
            self._stop = message.guid
        elif isinstance(chosen, Outcome):
            self._aside.add(message)
        return chosen

    def fall_behind(self, message: Message) -> None:
        """The app has stopped at a message, and others have not."""
        if self.authorised:
            self._behind.append(message)

    def everybody(self, message: Message) -> Iterable[Subscriber]:
        """Who gets a message of a broadcast queue."""
        return self._router.everybody(message)

    def take_back(self, messages: Iterable[Message]) -> None:
        """A consumer is gone, and these come again, after what came back before."""
        for message in messages:
            if self.name in message.waiting:
                self.redelivery.add(message)

    def forget_gone(self) -> None:
        """Hold on to no message that was purged or has expired."""
        self.redelivery.keep(self.name)
        self._aside.keep(self.name)
        self._behind = deque([each for each in self._behind if self.name in each.waiting])

    def deliver(self) -> None:
        """Hand out what waits, as far as there are takers."""
        if not self.authorised or not self._router:
            return
        self._hold.cancel()
        self.redelivery.deliver(self._try)
        if not self._hold.is_set:
            self._aside.deliver(self._try)
        if self.redelivery:
            return
        self._catch_up()
        if not self._stop:
            self._advance()

    def _catch_up(self) -> None:
        """Go on where it has stopped.

        Where a client has confirmed the message at which it has stopped, which no client has had, it begins
        again with the first that is not confirmed, whoever has that. Where a client has confirmed the queue's
        next message, it does not end there: it takes all that there are, and in their turn they come again.
        """
        if not self._stop:
            return
        stop, turn = self._store.messages.get(self._stop), self._store.turn
        if stop is not None and self.name not in stop.waiting:
            stop = None
        if stop is None or (turn is not None and self.name not in turn.waiting):
            self._behind = deque(self._store.unconfirmed(self.name, stop, turn))
        self._stop = b""
        while self._behind:
            outcome = self._try(self._behind[0])
            if outcome is Outcome.ALL_FULL:
                self._stop = self._behind[0].guid
                return
            message = self._behind.popleft()
            if outcome not in (Outcome.SENT, Outcome.GONE):
                self._aside.add(message)

    def _try(self, message: Message) -> Outcome:
        if self.name not in message.waiting:
            return Outcome.GONE
        delay = self._delay_of(message)
        chosen: Subscriber | Outcome | float
        if delay:
            chosen = self._router.choose_patiently(message, delay, self._host.now)
        else:
            chosen = self._router.choose(message)
        if isinstance(chosen, float):
            self._hold.set(self._host.now + chosen)
            return Outcome.HELD_BACK
        if isinstance(chosen, Subscriber):
            chosen.stream.deliver(message, [chosen], out_of_order=True)
            self._router.sent(chosen.stream, message.guid, self._host.now)
            return Outcome.SENT
        return chosen

    def _delay_of(self, message: Message) -> float:
        """How long a consumer's last message keeps one back that clients were lost with, seconds."""
        left = message.failed_attempts_left(self.name)
        if left is None:
            return 0.0
        return next((delay for most, delay in self._host.profile.poison_delays_s if left <= most), 0.0)

    def _held_long_enough(self, now: float) -> None:
        self._host.now = now
        self.deliver()
        self._host.flush()
