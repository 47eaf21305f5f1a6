"""A PZQ daemon without sockets: sessions on links that a test reads and writes, and a clock that it moves."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fakebrokers.core.frames import Frame
from fakebrokers.core.session import HangUp, Session
from fakebrokers.core.timers import Timer
from fakebrokers.pzq.broker import PzqBroker
from fakebrokers.pzq.codec import MonitorCodec, PzqCodec, ReceiveCodec, SendCodec
from fakebrokers.pzq.frames import Parts
from fakebrokers.pzq.profile import PROFILES, Options
from fakebrokers.pzq.session import MonitorSession, ReceiveSession, SendSession

WALL = 1_795_188_491.0  #: seconds since 1970 at now = 0


class Peer:
    """A client's socket, and the broker's link to it."""

    def __init__(self, daemon: Daemon, codec: PzqCodec, session: Session) -> None:
        self.name = "c1"
        self.address = ""
        self.capacity = math.inf
        self.inbox: deque[Parts] = deque()
        self._daemon = daemon
        self._codec = codec
        self.session = session
        session.link = self
        session.opened(daemon.now)

    # session.Link

    def say(self, frame: Frame) -> None:
        self.inbox.append(self._codec.encode(frame))

    def hang_up(self, how: HangUp = HangUp.FIN) -> None:
        raise AssertionError("PZQ never hangs up")

    def ready(self) -> None: ...

    def identify(self, peer: str) -> None: ...

    def session_timer(self, act: Callable[[float], None]) -> Timer:
        raise AssertionError("PZQ's connections have no timers")

    def stop_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    @property
    def writable(self) -> bool:
        return len(self.inbox) < self.capacity

    # the client

    def send(self, *parts: bytes) -> None:
        for frame, _ in self._codec.feed(parts):
            self.session.handle(frame, self._daemon.now)

    def take(self) -> list[Parts]:
        """Everything that came; makes room, as a client does that reads."""
        units = list(self.inbox)
        self.inbox.clear()
        self.session.writable(self._daemon.now)
        return units

    def close(self) -> None:
        self.session.closed(self._daemon.now)


class Daemon:
    """A broker with its sessions and its clock."""

    def __init__(self, profile: str = "real", **options: Any) -> None:
        self.now = 100.0
        store = options.pop("store", None)
        self.broker = PzqBroker(PROFILES[profile], Options(**options), store, wall=self.wall)

    def wall(self, now: float) -> float:
        return WALL + now

    def producer(self) -> Peer:
        return Peer(self, ReceiveCodec(), ReceiveSession(self.broker))

    def consumer(self) -> Peer:
        return Peer(self, SendCodec(), SendSession(self.broker))

    def monitor(self) -> Peer:
        return Peer(self, MonitorCodec(), MonitorSession(self.broker))

    def report(self) -> dict[str, int]:
        """What the monitor says now."""
        peer = self.monitor()
        peer.send(b"", b"MONITOR")
        ((_, text),) = peer.inbox
        rows = [row.split(": ") for row in text.decode().splitlines()]
        return {key: int(value) for key, value in rows}

    def advance(self, seconds: float, until: Callable[[], object] = lambda: False) -> float:
        """Let time go on, timers included, at most until something is true; returns the time it took."""
        start, end = self.now, self.now + seconds
        for _ in range(100_000):
            due = self.broker.timers.next_due
            if until() or due > end:
                break
            self.now = max(self.now, due)
            self.broker.timers.run(self.now)
        else:
            raise AssertionError("the broker does not come to rest")
        if not until():
            self.now = end
        return self.now - start

    def restart(self) -> None:
        self.broker.restarted(self.now)


@pytest.fixture
def make_daemon() -> Iterator[type[Daemon]]:
    yield Daemon
