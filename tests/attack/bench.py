"""Any fake without sockets or clocks: bytes in, bytes out, at one moment.

bench = Bench(protocol, protocol.wires[0])
client = bench.connect()
client.say(b"PING\\r\\n")
assert client.heard == b"PONG\\r\\n"
"""

from __future__ import annotations

from typing import Any

from fakebrokers.core.engine import Engine
from fakebrokers.core.session import HangUp
from fakebrokers.protocol import Protocol


class Client:
    """The client's end of a connection; implements `send_path.Transport` for the fake.

    Attributes:
        heard: All bytes that have come.
        ended: How the fake hung up; None: it has not.
    """

    def __init__(self, bench: Bench) -> None:
        self.heard = b""
        self.ended: HangUp | None = None
        self._bench = bench
        engine, endpoint = bench.engine, bench.fake._endpoints()[0]
        session, codec = endpoint.new_session(self)
        address = f"127.0.0.1:{50000 + engine.accepted}"
        self._connection = engine.accept(endpoint.wire, session, codec, self, bench.now, address)
        engine.flush(bench.now)

    # Transport

    def write(self, units: list[Any]) -> None:
        self.heard += b"".join(units)

    def hang_up(self, how: HangUp) -> None:
        self.ended = how

    def stop_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    # the client

    def say(self, segment: bytes) -> None:
        """Say something in a segment of its own."""
        if self.ended is None:
            self._bench.engine.receive(self._connection, segment, self._bench.now)
            self._bench.engine.flush(self._bench.now)


class Bench:
    """One fake.

    Attributes:
        now: Monotonic seconds.
    """

    now = 0.0

    def __init__(self, protocol: Protocol, **options: Any) -> None:
        self.fake = protocol.load()(**options)
        self.engine: Engine = self.fake.engine

    def connect(self) -> Client:
        """A client connects."""
        return Client(self)

    def check(self) -> None:
        """Raise what went wrong inside the fake."""
        self.fake.check()
