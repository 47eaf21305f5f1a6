"""The queue itself: what is stored, what is in flight, who gets what next. Knows no frames.

Rules: docs/protocols/pzq.md, "Producer", "Consumer" and "Restart". The daemon's loop handles one message
and then delivers as many as fit; here every event is followed by such a `turn`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor
from random import Random
from typing import NamedTuple, Protocol
from uuid import UUID

from fakebrokers.core.session import Broker
from fakebrokers.pzq.frames import Parts
from fakebrokers.pzq.inflight import InFlight
from fakebrokers.pzq.profile import REAL, Options, Profile
from fakebrokers.pzq.store import Message, Store, StoreError
from fakebrokers.pzq.walk import Rhythm, Walk

EMPTY = "Trying to save empty message"

_BLOCK = 256  #: the daemon's file grows in steps
_TICK = 2e-6  #: a mark expires when it is older than the timeout by a whole microsecond, however it rounds


class Consumer(Protocol):
    """Where messages go: a consumer, or a socket that deals them out to several."""

    @property
    def ready(self) -> bool:
        """Whether it takes a message now."""

    def deliver(self, message: Message, sent: int, timeout: int) -> None:
        """Take a message; `sent` (since 1970) and `timeout` in microseconds."""


class Statistics(NamedTuple):
    """What the monitor tells, in its order. Sizes in bytes."""

    messages: int
    in_flight: int
    db_size: int
    in_flight_size: int
    syncs: int
    expired: int


class PzqBroker(Broker):
    """One PZQ daemon without its sockets.

    Args:
        profile: Which PZQ it is.
        options: The daemon's settings.
        store: Where messages are kept; what it holds already is delivered.
        wall: The clock that it reports: seconds since 1970 for a monotonic `now`.
        seed: What the UUIDs in the keys are drawn from; None: they are never the same.
    """

    def __init__(
        self,
        profile: Profile = REAL,
        options: Options | None = None,
        store: Store | None = None,
        *,
        wall: Callable[[float], float] = float,
        seed: int | None = None,
    ) -> None:
        self.profile = profile
        self.options = options = options or Options()
        self.store = store if store is not None else Store()
        self.expired = 0  #: expiries since the start
        self._timeout = options.ack_timeout / 1e6
        frequency = options.reaper_frequency
        self._period = (profile.reaper_frequency if frequency is None else frequency) / 1e6
        self._wall = wall
        self._epoch = wall(0.0)
        self._last_stamp = 0
        self._random = Random(seed)
        self._in_flight = InFlight(options.inflight_size)
        self._walk = Walk()
        self._rhythm = Rhythm()
        self._consumers: list[Consumer] = []
        self._turning = False
        self._again: float | None = None
        self._reap_at: float | None = None
        self._timer = self.timers.new(self._look)
        self._queue_all()

    # producers

    def put(self, body: Parts, now: float, *, id: bytes = b"", replica: bool = False) -> bytes:
        """Store a message; it goes out with the next `turn`. Returns its key.

        Args:
            body: Its parts.
            now: Monotonic seconds.
            id: The producer's id; only echoed by the daemon, the key in the document's letter.
            replica: It is the copy of another node's message, and `id` is its key there.

        Raises:
            StoreError: It was not stored; the text is for the producer.
        """
        if not body:
            raise StoreError(EMPTY)
        key = place = self._new_key(now)
        if id and (replica or self.profile.producer_ids):
            old = self.store.get(id)
            if replica:
                key = place = id
                body = (*old.body, *body) if old else body  # the daemon appends to the record
            elif old is None:
                key = id
        known = self.store.get(key) is not None
        self.store.put(Message(key, place, body))
        if not known:
            self._walk.add(place, key)
        return key

    def _new_key(self, now: float) -> bytes:
        """Microseconds since 1970, ``|`` and a UUID; no two keys share a microsecond."""
        epoch = self._wall(0.0)
        if epoch != self._epoch:  # somebody set the clock: the stamps may go back
            self._epoch, self._last_stamp = epoch, 0
        self._last_stamp = stamp = max(self._last_stamp + 1, self.microseconds(now))
        uuid = UUID(int=self._random.getrandbits(128), version=4)
        return f"{stamp}|{uuid}".encode()

    # consumers

    def attach(self, consumer: Consumer) -> None:
        """A consumer came. It gets messages from the next `turn` on."""
        self._consumers.append(consumer)

    def detach(self, consumer: Consumer) -> None:
        """A consumer went. What it holds stays in flight until it expires."""
        self._consumers.remove(consumer)

    def acknowledge(self, key: bytes, status: bytes) -> bool:
        """A consumer has processed a message, or has failed to; False if that changed nothing."""
        message = self.store.get(key)
        if message is None:
            return False
        in_flight = self._in_flight.remove(key)
        self._set_timer()
        if status in self.profile.positive:
            if in_flight or self.profile.late_acks:
                self.store.remove(key)
                return True
        elif in_flight:
            self._walk.add(message.place, key)
            return True
        return False

    # delivery

    def turn(self, now: float) -> None:
        """Walk over what waits and deliver as long as a consumer takes it.

        One walk hands out a message once at most. If something waits after it that could go out, another
        turn follows at once.
        """
        if self._turning:
            return  # a consumer answered while it was handed a message; the walk goes on anyhow
        self._turning = True
        try:
            self._again = now if self._walk_over(now) else None
        finally:
            self._turning = False
            self._set_timer()

    def _walk_over(self, now: float) -> bool:
        """One walk; True if something still waits and a consumer would take it."""
        consumer = self._next_consumer() if self._walk else None
        if consumer is None:
            return False
        skipping = self.options.order == "skip"
        if self._expire(now) or not skipping:
            self._walk.rewind()
        while consumer is not None and (waiting := self._walk.step()) is not None:
            place, key = waiting
            if skipping and self._rhythm.full():
                self._walk.add(place, key)
                break
            message = self.store.get(key)
            if message is not None and key not in self._in_flight:
                self._deliver(message, consumer, now)
                consumer = self._next_consumer()
        if not self._walk:
            self._rhythm.reset()
            return False
        return consumer is not None

    def _deliver(self, message: Message, consumer: Consumer, now: float) -> None:
        if not self._in_flight:
            self._reap_at = self._tick_after(now)
        lost = self._in_flight.add(message.key, now)
        if lost is not None:
            self._queue(lost)
        self._consumers.remove(consumer)  # to the end of the line
        self._consumers.append(consumer)
        consumer.deliver(message, self.microseconds(now), self.options.ack_timeout)

    def _next_consumer(self) -> Consumer | None:
        """The first in line that takes a message."""
        return next((consumer for consumer in self._consumers if consumer.ready), None)

    # time

    def microseconds(self, now: float) -> int:
        """The broker's wall clock: microseconds since 1970."""
        return floor(self._wall(now) * 1e6)

    def _set_timer(self) -> None:
        if self._again is not None or not self._in_flight:
            self._timer.set(self._again)
        else:
            self._timer.set(self._reap_at if self._period else self._in_flight.oldest + self._timeout + _TICK)

    def _look(self, now: float) -> None:
        due = self._reap_at if self._period else now
        if self._in_flight and due is not None and now >= due:
            self._reap_at = self._tick_after(now)
            if self._expire(now):
                self._walk.rewind()
        self.turn(now)

    def expire_now(self, now: float) -> None:
        """All that is in flight expires at this moment."""
        for key in self._in_flight:
            self._queue(key)
        self.expired += len(self._in_flight)
        self._in_flight.clear()
        self._walk.rewind()
        self.turn(now)

    def _tick_after(self, now: float) -> float | None:
        """When the reaper looks next. It looks at whole multiples of its period."""
        if not self._period:
            return None
        tick = (floor(now / self._period) + 1) * self._period
        return tick if tick > now else tick + self._period  # 16.2 / 0.2 is below 81

    def _expire(self, now: float) -> bool:
        expired = self._in_flight.expire(now, self._timeout)
        for key in expired:
            self._queue(key)
        self.expired += len(expired)
        return bool(expired)

    def _queue(self, key: bytes) -> None:
        message = self.store.get(key)
        if message is not None:
            self._walk.add(message.place, key)

    # the whole

    def statistics(self) -> Statistics:
        """The monitor's numbers."""
        return Statistics(
            len(self.store),
            len(self._in_flight),
            self.profile.empty_db_size + self.store.size // _BLOCK * _BLOCK,
            self.profile.empty_inflight_size + self._in_flight.size,
            0,  # the daemon never counts its syncs
            self.expired,
        )

    @property
    def in_flight(self) -> list[bytes]:
        """Keys of the messages that were delivered and neither acknowledged nor expired."""
        return list(self._in_flight)

    @property
    def waiting(self) -> int:
        """Messages that would go out if a consumer took them."""
        return len(self._walk)

    def reset(self) -> None:
        self.store.clear()
        self.restarted(0.0)

    def restarted(self, now: float) -> None:
        """Stored messages survive, marks do not: everything is delivered again."""
        self.expired = 0
        self._in_flight.clear()
        self._walk.clear()
        self._rhythm.reset()
        self._again = None
        self._set_timer()
        self._queue_all()

    def _queue_all(self) -> None:
        for message in self.store:
            self._walk.add(message.place, message.key)
