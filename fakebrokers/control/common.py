"""What every fake can be told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakebrokers.control.describe import Operation
from fakebrokers.core.session import HangUp
from fakebrokers.core.tls import Certificate
from fakebrokers.errors import PlanError, UsageError
from fakebrokers.server import FakeServer


def kill(server: FakeServer, connection: str | None = None, how: HangUp = HangUp.FIN) -> None:
    """End one connection (``c1``), or all of them, as an operator or a network would.

    One that has ended by itself meanwhile is left as it is.
    """
    server.kill(connection, how)


def crash(server: FakeServer, how: HangUp = HangUp.RST, keep_state: bool = True) -> None:
    """Die: all connections end, nothing listens until `restart`."""
    server.crash(how, keep_state=keep_state)


def shift_clock(server: FakeServer, seconds: float) -> None:
    """The broker's wall clock jumps by `seconds`, forth or back."""
    if not abs(seconds) <= _CENTURY:
        raise UsageError(f"expected seconds between -{_CENTURY} and {_CENTURY}, got {seconds}")
    server.call(server.engine.shift_clock, seconds, "")


#: A clock that shows a year of five digits breaks more than the client.
_CENTURY = 3_200_000_000


def say(server: FakeServer, connection: str, kind: str, fields: Mapping[str, Any] = {}) -> None:
    """Send a frame that was not asked for on a connection; no fault touches it.

    `kind` is the protocol's name of the frame, `fields` are its fields as fault plans write them.
    """

    def act() -> None:
        link = server.connection(connection)
        frame = link.wire.build(kind, fields, "body")
        try:
            link.codec.encode(frame)
        except Exception as error:  # whatever a codec says of values that its fields cannot hold
            raise PlanError(
                "body.fields", f"expected values that {kind} can hold, got {fields!r}: {error}"
            ) from None
        link.inject(frame)

    server.call(act)


def say_raw(server: FakeServer, connection: str, data: bytes) -> None:
    """Say bytes on a connection; no fault touches them."""
    if not server.call(lambda: server.connection(connection).wire.stream):
        raise UsageError("a library owns this wire: say_raw needs one of bytes")
    server.say_raw(connection, data)


def show_certificate(server: FakeServer, kind: Certificate) -> None:
    """Change the certificate for all TLS handshakes from now on."""
    if server.tls is None:
        raise UsageError("this fake does not listen for TLS: start it with the option tls")
    server.call(server.tls.show, kind)


def client_certificate(server: FakeServer, name: str) -> list[str]:
    """Make a client's certificate with that common name; the paths of certificate and key (PEM)."""
    if server.tls is None:
        raise UsageError("this fake does not listen for TLS: start it with the option tls")
    if not name.isidentifier():
        raise UsageError(f"expected a name of letters, digits and _, got {name!r}")
    return [str(path) for path in server.tls.client_certificate(name)]


COMMON = (
    Operation(kill),
    Operation("refuse"),
    Operation("black_hole"),
    Operation(crash),
    Operation("restart", old="accept"),
    Operation("reset"),
    Operation(shift_clock),
    Operation("client_holds", reads=True),
    Operation(say),
    Operation(say_raw),
    Operation(show_certificate),
    Operation(client_certificate),
)
