"""One connection through the proxy: the client's half is a `Session`, the server's an `Upstream`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from fakebrokers.core.frames import Frame
from fakebrokers.core.session import Broker, Codec, HangUp, Session
from fakebrokers.proxy.frames import ClientBytes, ServerBytes


class Upstream(Protocol):
    """The connection to the server (implemented by `upstream.UpstreamSocket`)."""

    def write(self, data: bytes) -> None:
        """Send to the server; `ProxySession.server_writable` tells when too much is waiting."""

    def end_output(self) -> None:
        """FIN to the server, after what was written; its bytes still come."""

    def close(self) -> None:
        """End the connection to the server, after what was written."""

    def stop_reading(self) -> None:
        """Leave the server's bytes in its socket."""

    def resume_reading(self) -> None:
        """Read the server's bytes again."""


class ProxyCodec(Codec):
    """Each read is one frame, with its offset in the direction."""

    def __init__(self) -> None:
        self._seen = 0

    def feed(self, unit: bytes) -> Iterable[tuple[Frame, int]]:
        yield ClientBytes(self._seen, bytes(unit)), len(unit)
        self._seen += len(unit)

    def encode(self, frame: Frame) -> bytes:
        assert isinstance(frame, ClientBytes | ServerBytes)
        return frame.data


class ProxySession(Session):
    """Reads nothing from the client until the connection to the server stands.

    The two directions end one by one: FIN of one side reaches the other side as FIN, and what that one still
    has to say passes.

    Args:
        dial: Begins to connect to the server, and calls `connected` or `failed` later.
        linger: Gives the seconds by which the server's FIN reaches the client late; asked when it comes.
        name: Of the server, if there are several.

    Attributes:
        codec: Of this connection.
    """

    half_closes = True

    codec: Codec

    def __init__(
        self, *, dial: Callable[[ProxySession], None], linger: Callable[[], float], name: str = ""
    ) -> None:
        self.codec = ProxyCodec()
        self._dial = dial
        self._input_over = self._server_over = False
        self._linger = linger
        self._name = name
        self._upstream: Upstream | None = None
        self._from_server = 0

    def opened(self, now: float) -> None:
        self._end_timer = self.link.session_timer(self._pass_servers_end)
        self.state = "connecting"
        self.link.stop_reading()
        self._dial(self)

    def connected(self, upstream: Upstream) -> None:
        """The connection to the server stands: read from the client from now on."""
        if self.state == "closed":
            upstream.close()
            return
        self.state = "open"
        self._upstream = upstream
        self.link.ready()
        self.link.resume_reading()

    def failed(self) -> None:
        """The server cannot be reached: hang up on the client."""
        if self.state != "closed":
            self.link.hang_up()

    def handle(self, frame: Frame, now: float) -> None:
        if isinstance(frame, ClientBytes) and self._upstream is not None:
            self._upstream.write(frame.data)

    def from_server(self, data: bytes) -> None:
        """Pass bytes of the server on; stop reading from it while the client reads too slowly."""
        self.link.say(ServerBytes(self._from_server, data))
        self._from_server += len(data)
        self._watch_client()

    def _watch_client(self) -> None:
        if not self.link.writable and self._upstream is not None:
            self._upstream.stop_reading()

    def writable(self, now: float) -> None:
        if self._upstream is not None:
            self._upstream.resume_reading()

    def server_writable(self, writable: bool) -> None:
        """Read from the client only while the server takes what is sent."""
        if writable:
            self.link.resume_reading()
        else:
            self.link.stop_reading()

    def input_ended(self, now: float) -> None:
        self._input_over = True
        if self._server_over:
            self.link.hang_up()
        elif self._upstream is not None:
            self._upstream.end_output()

    def server_ended(self, now: float) -> None:
        """The server has sent FIN, and may still read."""
        linger = self._linger()
        if linger:
            self._end_timer.set(now + linger)
        else:
            self._pass_servers_end(now)

    def _pass_servers_end(self, now: float) -> None:
        self._server_over = True
        if self._input_over:
            self.link.hang_up()
        else:
            self.link.end_output()

    def server_gone(self, how: HangUp) -> None:
        """The connection to the server has broken: end the client's in the same way."""
        self._upstream = None
        self.link.hang_up(how)

    def closed(self, now: float) -> None:
        self.state = "closed"
        if self._upstream is not None:
            self._upstream.close()
            self._upstream = None

    def describe(self) -> dict[str, Any]:
        named = {"upstream": self._name} if self._name else {}
        return {"state": self.state, "from_server_bytes": self._from_server, **named}


class NoBroker(Broker):
    """A proxy has no state that connections share."""

    def reset(self) -> None:
        pass
