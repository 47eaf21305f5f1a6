"""One toy client on a bare engine: no loop, no sockets, and the time is what the test says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from fakebrokers.core.connection import Connection
from fakebrokers.core.engine import Engine
from fakebrokers.core.host import Host
from fakebrokers.core.listeners import Listeners
from fakebrokers.core.session import HangUp
from fakebrokers.core.wire import frames_of
from fakebrokers.faults import Fault, Plan
from fakebrokers.faults.injector import Injector
from fakebrokers.journal import Journal, Record, Tap
from tests.toy import WIRE, ToyBroker, ToyCodec, ToySession


class Recorder:
    """A transport that keeps every write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.ended: HangUp | None = None
        self.reading = True

    def write(self, units: list[Any]) -> None:
        self.writes.append(b"".join(units))

    def hang_up(self, how: HangUp) -> None:
        self.ended = how

    def end_output(self) -> None:
        self.writes.append(b"<fin>")

    def stop_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


class Listening:
    """Listeners that keep what is done to them."""

    def __init__(self) -> None:
        self.done: list[tuple[Any, ...]] = []

    def refuse(self, reason: str, for_s: float | None, *, after_step: bool = False) -> None:
        self.done.append(("down" if after_step else "refuse", for_s, reason))

    def black_hole(self, reason: str, for_s: float | None) -> None:
        self.done.append(("black_hole", for_s, reason))

    def open(self, reason: str) -> None:
        self.done.append(("open", None, reason))


class Talk:
    """An engine with toy connections; `send` and `at` return what the client got meanwhile."""

    def __init__(self, *faults: Fault, seed: int = 0, hello: bool = True) -> None:
        self.broker = ToyBroker()
        injector = Injector([WIRE], plan=Plan(seed=seed, faults=faults))
        self.engine = Engine(self.broker, injector, Journal(frames_of([WIRE])))
        self.journal = self.engine.journal
        self.now = 0.0
        self.wires: list[Recorder] = []
        self.links: list[Connection] = []
        self.listening = Listening()
        Host(self.engine, cast(Listeners, self.listening), self)
        self.connect(hello=hello)

    @property
    def wire(self) -> Recorder:
        return self.wires[-1]

    @property
    def link(self) -> Connection:
        return self.links[-1]

    def connect(self, hello: bool = True) -> Recorder:
        self.wires.append(Recorder())
        session = ToySession(self.broker)
        self.links.append(self.engine.accept(WIRE, session, ToyCodec(), self.wire, self.now))
        self.engine.flush(self.now)
        if hello:
            self.send(b"hello me")
        self.wire.writes.clear()
        return self.wire

    def send(self, *lines: bytes, to: int = -1) -> list[bytes]:
        """The client writes these lines at once."""
        return self.feed(b"".join(line + b"\n" for line in lines), to=to)

    def feed(self, data: bytes, to: int = -1) -> list[bytes]:
        self.engine.receive(self.links[to], data, self.now)
        self.engine.flush(self.now)
        return self._take(to)

    def at(self, now: float, to: int = -1) -> list[bytes]:
        """Time passes up to `now`; every timer that becomes due on the way runs at its own time."""
        while (deadline := self.engine.next_deadline()) <= now:
            self.now = max(self.now, deadline)
            self.engine.handle_timers(self.now)
            self.engine.flush(self.now)
        self.now = now
        self.engine.handle_timers(now)
        self.engine.flush(now)
        return self._take(to)

    def release(self, name: str) -> list[bytes]:
        self.engine.release(name, self.now)
        self.engine.flush(self.now)
        return self._take(-1)

    def _take(self, to: int) -> list[bytes]:
        """What the client got, without the broker's beats."""
        writes, self.wires[to].writes = self.wires[to].writes, []
        without = [write.replace(b"beat\n", b"") for write in writes]
        return [write for write in without if write]

    def seen(self, *taps: Tap) -> list[tuple[str, str, tuple[Any, ...]]]:
        """(tap, kind, keys) of the journal, of these taps only."""
        return [
            (record.tap.label, record.kind, record.keys)
            for record in self.journal
            if any(record.tap & tap for tap in taps)
        ]

    def records(self, *kinds: str) -> Sequence[Record]:
        return [record for record in self.journal if record.kind in kinds]
