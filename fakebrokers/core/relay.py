"""What reads both directions of a connection that somebody else passes on (a proxy)."""

from __future__ import annotations

from importlib import import_module

from fakebrokers.core.frames import Frame
from fakebrokers.core.session import Codec
from fakebrokers.core.wire import Wire
from fakebrokers.errors import UsageError


class Relay:
    """One connection between a client and a server. A wire names its own (`Wire.relay`).

    Attributes:
        from_client: Reads what the client says.
        from_server: Reads what the server says.

    Each codec also writes the frames of its direction, for those that a fault has changed.
    """

    def __init__(self, from_client: Codec, from_server: Codec) -> None:
        self.from_client = from_client
        self.from_server = from_server

    def heard(self, frame: Frame) -> None:
        """A frame of the client goes to the server now, after all faults."""

    def prompt(self, frame: Frame) -> Frame | None:
        """What to say to the client at once, so that it sends the rest of what it has begun."""
        return None

    def refusal(self, frame: Frame, code: int) -> Frame | None:
        """The server's answer to `frame` that carries the error `code`, or None if it has no answer."""
        return None

    def readdressed(self, frame: Frame, host: str, port: int) -> Frame:
        """A frame of the server with this address where it names its own; else `frame` itself."""
        return frame


def new_relay(wire: Wire) -> Relay:
    """The relay of a new connection.

    Raises:
        UsageError: There is none for this wire.
    """
    if not wire.relay:
        why = "a library owns its bytes" if not wire.stream else "nothing reads its server's side"
        raise UsageError(f"the wire {wire.name!r} cannot be read between a client and a server: {why}")
    module, _, name = wire.relay.partition(":")
    relay: Relay = getattr(import_module(module), name)()
    return relay
