"""Connections to a fake without sockets or clocks: bytes in, bytes out, time by hand.

bench = Bench(NATS())
client = bench.connect()
assert client.say(b"PING\r\n") == b"PONG\r\n"
"""

from __future__ import annotations

from typing import Any

from fakebrokers.core.engine import Engine
from fakebrokers.core.session import HangUp
from fakebrokers.server import FakeServer

#: What a client has heard once the server has hung up.
EOF = "EOF"


class Client:
    """The client's end of a connection; implements `send_path.Transport` for the fake."""

    def __init__(self, bench: Bench, number: int = 0) -> None:
        self.bench = bench
        self.heard = b""
        self.ended: HangUp | None = None
        endpoint = bench.fake._endpoints()[number]
        session, codec = endpoint.new_session(self)
        self.session: Any = session
        self.connection = bench.engine.accept(
            endpoint.wire, session, codec, self, bench.now, f"127.0.0.1:{50000 + bench.engine.accepted}"
        )
        bench.engine.flush(bench.now)

    # Transport

    def write(self, units: list[Any]) -> None:
        self.heard += b"".join(units)

    def hang_up(self, how: HangUp) -> None:
        self.ended = how

    def stop_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    # the client

    def say(self, *segments: bytes) -> bytes:
        """Say something in as many segments; what came back, here."""
        for segment in segments:
            self.bench.engine.receive(self.connection, segment, self.bench.now)
            self.bench.engine.flush(self.bench.now)
        return self.take()

    def take(self) -> bytes:
        """What has come since the last look."""
        heard, self.heard = self.heard, b""
        return heard

    def leave(self) -> None:
        """Close the connection."""
        self.bench.engine.lost(self.connection, self.bench.now)
        self.bench.engine.flush(self.bench.now)


class Bench:
    """One fake; `now` is monotonic seconds."""

    def __init__(self, fake: FakeServer) -> None:
        self.now = 0.0
        self.fake: Any = fake
        self.engine: Engine = fake.engine

    def connect(self, endpoint: int = 0) -> Client:
        """A client connects; it has not taken what the server says first."""
        return Client(self, endpoint)

    def advance(self, seconds: float) -> None:
        """Let time pass, timer by timer."""
        end = self.now + seconds
        while (due := self.engine.next_deadline()) <= end:
            self.now = max(self.now, due)
            self.engine.handle_timers(self.now)
            self.engine.flush(self.now)
        self.now = end

    def check(self) -> None:
        """Raise what went wrong inside the fake."""
        self.fake.check()
