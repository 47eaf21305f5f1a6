"""The five protocols: their names, server classes and default ports. Loads no server until asked."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from fakebrokers.errors import UsageError

if TYPE_CHECKING:
    from fakebrokers.server import FakeServer


class ProtocolInfo(NamedTuple):
    """What is known about a protocol before its server is loaded.

    Attributes:
        name: On the command line and in results, such as ``rabbitmq-stream``.
        server: Name of the server class; the package ``fakebrokers`` has it as an attribute.
        port: TCP port of a real installation.
        about: One line for people who choose.
    """

    name: str
    server: str
    port: int
    about: str

    @property
    def fixture(self) -> str:
        """Name of the pytest fixture, and of the package with the fake."""
        return self.name.replace("-", "_")

    @property
    def module(self) -> str:
        """Where the server class is."""
        return f"fakebrokers.{self.fixture}.server"

    @property
    def available(self) -> bool:
        """Whether this version has the server."""
        try:
            return find_spec(self.module) is not None
        except ModuleNotFoundError:  # the package around the module is not there either
            return False

    def load(self) -> type[FakeServer]:
        """The server class.

        Raises:
            UsageError: This version has no server for the protocol.
        """
        if not self.available:
            there = ", ".join(info.name for info in PROTOCOLS.values() if info.available)
            raise UsageError(
                f"this version of fakebrokers cannot fake {self.name}; it can: {there or 'nothing'}"
            )
        server: type[FakeServer] = getattr(import_module(self.module), self.server)
        return server


PROTOCOLS = {
    info.name: info
    for info in [
        ProtocolInfo("rabbitmq-stream", "RabbitMQStream", 5552, "RabbitMQ's stream protocol"),
        ProtocolInfo("blazingmq", "BlazingMQ", 30114, "BlazingMQ, as its client libraries see it"),
        ProtocolInfo("pzq", "PZQ", 11131, "PZQ store-and-forward queue over ZeroMQ"),
        ProtocolInfo("narconi", "Narconi", 8080, "Narconi queues over HTTP and WebSocket"),
        ProtocolInfo("moleculer", "Moleculer", 4222, "Moleculer nodes over NATS, Redis, MQTT or TCP"),
    ]
}


def find_protocol(name: str) -> ProtocolInfo:
    """The protocol of that name.

    Raises:
        UsageError: There is none; the message says what is valid, and the closest.
    """
    try:
        return PROTOCOLS[name]
    except KeyError:
        raise UsageError(f"there is no protocol {name!r}{instead_of(name, PROTOCOLS)}") from None


def instead_of(word: str, valid: Iterable[str]) -> str:
    """The end of a message about a wrong word: what is valid, and what was probably meant."""
    from difflib import get_close_matches

    words = list(valid)
    close = get_close_matches(word.lower().replace("_", "-"), words, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return f"{hint} Choose from: {', '.join(words)}"
