"""One object describes a protocol. Whatever serves all of them reads it, and nothing else.

A protocol is a package with the modules ``frames codec session broker server faults profile``, and
``protocol``, which joins them in a `Protocol` called ``PROTOCOL``. It is registered by one line below, or,
from another project, by `register`::

    register("echo", "my_fakes.echo.protocol")

Fixtures, command line, doctor, fault plans, journal and checkers then know it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fakebrokers.errors import UsageError, instead_of

if TYPE_CHECKING:
    from fakebrokers.control.describe import Control
    from fakebrokers.core.wire import Wire
    from fakebrokers.faults.effect import Effect
    from fakebrokers.mutate.behaviours import Behaviour
    from fakebrokers.server import FakeServer

#: Where each protocol describes itself. Nothing of it is loaded before somebody asks.
_REGISTERED = {
    "rabbitmq-stream": "fakebrokers.rabbitmq_stream.protocol",
    "blazingmq": "fakebrokers.blazingmq.protocol",
    "pzq": "fakebrokers.pzq.protocol",
    "narconi": "fakebrokers.narconi.protocol",
    "moleculer": "fakebrokers.moleculer.protocol",
    "nats": "fakebrokers.nats.protocol",
    "redis": "fakebrokers.redis.protocol",
    "mqtt": "fakebrokers.mqtt.protocol",
}


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """A protocol.

    Attributes:
        name: On the command line and in results, such as ``rabbitmq-stream``.
        about: One line for people who choose.
        server: Where the server class is: ``module:Class``.
        wires: What its connections speak; the first one is the usual one.
        variants: Names of which a fake speaks one at a time (transporters), each the name of a wire; empty
            where there is no choice.
        effects: Effects that exist here only, on any wire, or where they are: ``module:NAME`` of a sequence.
            Those of one wire are named at the wire.
        default_port: TCP port of a real installation; that of the first wire if not given.
        ordered: Whether its logs have an order, and positions are offsets in it.
        answers_in_order: Whether answers are told apart by their order alone: where one is lost, the next one
            stands for it.
        control: Where it is written down what its fakes can be told from outside the process, and with
            which options they are made: ``module:NAME`` of a `fakebrokers.control.describe.Control`. Without
            one they can be told what all fakes can.
        behaviours: Where the wrong behaviours are that it has besides the general ones, for
            ``pytest --fakebrokers-mutate``: ``module:NAME`` of a sequence of
            `fakebrokers.mutate.behaviours.Behaviour`.
        judge: The package of what the suite has to know to judge its clients; default: the one in
            ``scenarios`` that is named like the fixture.
    """

    name: str
    about: str
    server: str
    wires: Sequence[Wire]
    variants: Sequence[str] = ()
    effects: Sequence[type[Effect]] | str = ()
    default_port: int = 0
    ordered: bool = False
    answers_in_order: bool = False
    control: str = ""
    behaviours: str = ""
    judge: str = ""

    @property
    def fixture(self) -> str:
        """Name of the pytest fixture."""
        return fixture_name(self.name)

    @property
    def port(self) -> int:
        """TCP port of a real installation."""
        return self.default_port or self.wires[0].port

    @property
    def server_name(self) -> str:
        """Name of the server class, for people who import it."""
        return self.server.partition(":")[2]

    @cached_property
    def own_effects(self) -> tuple[type[Effect], ...]:
        """All effects that only this protocol has."""
        here: Sequence[type[Effect]] = _found(self.effects) if isinstance(self.effects, str) else self.effects
        return (*here, *(effect for wire in self.wires for effect in wire.effects))

    def wire(self, name: str) -> Wire:
        """The wire of that name.

        Raises:
            UsageError: There is none; the message says which there are.
        """
        for wire in self.wires:
            if wire.name == name:
                return wire
        raise UsageError(f"{self.name} has no wire {name!r}{instead_of(name, [w.name for w in self.wires])}")

    def load_control(self) -> Control:
        """What its fakes can be told, and their options."""
        from fakebrokers.control.describe import Control

        control: Control = _found(self.control) if self.control else Control()
        return control

    def load_behaviours(self) -> Sequence[Behaviour]:
        """The wrong behaviours that it has besides the general ones."""
        behaviours: Sequence[Behaviour] = _found(self.behaviours) if self.behaviours else ()
        return behaviours

    def load(self) -> type[FakeServer]:
        """The server class."""
        server: type[FakeServer] = _found(self.server)
        return server


def _found(place: str) -> Any:
    """What is at ``module:NAME``."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def fixture_name(protocol: str) -> str:
    """What the pytest fixture of a protocol is called."""
    return protocol.replace("-", "_")


def register(name: str, module: str) -> None:
    """Make a protocol known whose module `module` has it as ``PROTOCOL``.

    Raises:
        UsageError: Another one has that name.
    """
    if _REGISTERED.setdefault(name, module) != module:
        raise UsageError(f"there is a protocol {name!r} already, in {_REGISTERED[name]}")


def protocol_names() -> list[str]:
    """All that are registered, whether or not this version has them."""
    return list(_REGISTERED)


def known_name(name: str) -> str:
    """The name, if a protocol of that name is registered.

    Raises:
        UsageError: There is none; the message says what is valid, and the closest.
    """
    if name not in _REGISTERED:
        raise UsageError(f"there is no protocol {name!r}{instead_of(name, _REGISTERED)}")
    return name


def is_available(name: str) -> bool:
    """Whether this version has the protocol."""
    try:
        return find_spec(_REGISTERED[name]) is not None
    except ModuleNotFoundError:  # the package around the module is not there either
        return False


def protocols() -> list[Protocol]:
    """All protocols that this version has."""
    return [find_protocol(name) for name in _REGISTERED if is_available(name)]


def server_named(class_name: str) -> type[FakeServer] | None:
    """The server class of that name, such as ``RabbitMQStream``; None if no protocol has it.

    Protocols that are called alike are asked first: whoever imports one fake pays for no other.
    """
    word = class_name.lower()
    for name in sorted(_REGISTERED, key=lambda name: name.replace("-", "") != word):
        if is_available(name) and (protocol := find_protocol(name)).server_name == class_name:
            return protocol.load()
    return None


def find_protocol(name: str) -> Protocol:
    """The protocol of that name.

    Raises:
        UsageError: There is none, or none in this version; the message says what is valid, and the closest.
    """
    if not is_available(known_name(name)):
        there = ", ".join(each for each in _REGISTERED if is_available(each))
        raise UsageError(f"this version of fakebrokers cannot fake {name}; it can: {there or 'nothing'}")
    protocol: Protocol = import_module(_REGISTERED[name]).PROTOCOL
    return protocol
