"""One object describes a protocol. Whatever serves all of them reads it, and nothing else.

A protocol is a package with the modules ``frames codec session broker server faults profile``, and
``protocol``, which joins them in a `Protocol` called ``PROTOCOL``. It is registered by one line in
`description`, or, from another project, by `register`::

    register("echo", "my_fakes.echo.protocol")

Fixtures, command line, doctor, fault plans, journal and checkers then know it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fakebrokers.description import (
    Description,
    available_names,
    fixture_name,
    folder_name,
    found,
    is_available,
    known_name,
    module_of,
    protocol_names,
    register,
)

if TYPE_CHECKING:
    from fakebrokers.control.describe import Control
    from fakebrokers.mutate.behaviours import Behaviour
    from fakebrokers.server import FakeServer

__all__ = [
    "Protocol",
    "find_protocol",
    "fixture_name",
    "folder_name",
    "is_available",
    "known_name",
    "load_behaviours",
    "load_control",
    "load_server",
    "protocol_names",
    "protocols",
    "register",
    "server_named",
]


@dataclass(frozen=True, kw_only=True)
class Protocol(Description):
    """A protocol: what it is, see `Description`, and how the rest of it is loaded."""

    def load_control(self) -> Control:
        """What its fakes can be told, and their options."""
        return load_control(self)

    def load_behaviours(self) -> Sequence[Behaviour]:
        """The wrong behaviours that it has besides the general ones."""
        return load_behaviours(self)

    def load(self) -> type[FakeServer]:
        """The server class."""
        return load_server(self)


def load_control(protocol: Description) -> Control:
    """What the fakes of a protocol can be told, and their options."""
    from fakebrokers.control.describe import Control

    control: Control = found(protocol.control) if protocol.control else Control()
    return control


def load_behaviours(protocol: Description) -> Sequence[Behaviour]:
    """The wrong behaviours that a protocol has besides the general ones."""
    behaviours: Sequence[Behaviour] = found(protocol.behaviours) if protocol.behaviours else ()
    return behaviours


def load_server(protocol: Description) -> type[FakeServer]:
    """The server class of a protocol."""
    server: type[FakeServer] = found(protocol.server)
    return server


def protocols() -> list[Protocol]:
    """All protocols that this version has."""
    return [find_protocol(name) for name in available_names()]


def server_named(class_name: str) -> type[FakeServer] | None:
    """The server class of that name, such as ``RabbitMQStream``; None if no protocol has it.

    Protocols that are called alike are asked first: whoever imports one fake pays for no other.
    """
    word = class_name.lower()
    for name in sorted(protocol_names(), key=lambda name: name.replace("-", "") != word):
        if is_available(name) and (protocol := find_protocol(name)).server_name == class_name:
            return protocol.load()
    return None


def find_protocol(name: str) -> Protocol:
    """The protocol of that name.

    Raises:
        UsageError: There is none, or none in this version; the message says what is valid, and the closest.
    """
    protocol: Protocol = module_of(name).PROTOCOL
    return protocol
