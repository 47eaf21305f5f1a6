"""What a protocol is, and which there are by name. What is loaded of it is in `protocol`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fakebrokers.errors import UsageError, instead_of

if TYPE_CHECKING:
    from fakebrokers.core.wire import Wire
    from fakebrokers.faults.effect import Effect

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

#: Clients of theirs are modules of that name, which a fixture would hide.
_NAMES_OF_OTHERS = frozenset({"nats", "redis", "mqtt"})

#: First part of the second name of each fixture, and of the only one of those.
ALIAS = "fake_"


@dataclass(frozen=True, kw_only=True)
class Description:
    """What a protocol is, as plain values and the places of what belongs to it.

    Attributes:
        name: On the command line and in results, such as ``rabbitmq-stream``.
        about: One line for people who choose.
        server: Where the server class is: ``module:Class``.
        wires: What its connections speak; the first one is the usual one.
        variants: Names of which a fake speaks one at a time (transporters), each the name of a wire; empty
            where there is no choice.
        effects: Effects that exist here only, or where they are: ``module:NAME`` of a sequence.
        default_port: TCP port of a real installation; that of the first wire if not given.
        ordered: Whether its logs have an order, and positions are offsets in it.
        answers_in_order: Whether answers are distinguished by their order alone: where one is lost, the next
            one is taken for it.
        confirms: Whether each message that is published gets a confirm of its own, and is delivered at least
            once. Otherwise no frame shows what became of a message.
        control: Where it is written down what its fakes can be asked to do from outside the process, and with
            which options they are made: ``module:NAME`` of a `fakebrokers.control.describe.Control`. Without
            one they can be asked to do what all fakes can.
        behaviours: Where the wrong behaviours are that it has besides the general ones, for
            ``pytest --fakebrokers-mutate``: ``module:NAME`` of a sequence of
            `fakebrokers.mutate.behaviours.Behaviour`.
        model: Where it is written down how the page of a run derives what the broker knows:
            ``module:NAME`` of a `fakebrokers.viewer.model.BrokerModel`. Without one the page does not show
            it.
        judge: The package of what the suite has to know to judge its clients; default: the one in
            ``scenarios`` of its name.
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
    confirms: bool = True
    control: str = ""
    behaviours: str = ""
    model: str = ""
    judge: str = ""

    @property
    def folder(self) -> str:
        """Its name as Python can have it: of its packages, and of what makes one of its fakes."""
        return folder_name(self.name)

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
        there: Sequence[type[Effect]] = found(self.effects) if isinstance(self.effects, str) else self.effects
        return tuple(there)

    def wire(self, name: str) -> Wire:
        """The wire of that name.

        Raises:
            UsageError: There is none; the message says which there are.
        """
        for wire in self.wires:
            if wire.name == name:
                return wire
        raise UsageError(f"{self.name} has no wire {name!r}{instead_of(name, [w.name for w in self.wires])}")


def found(place: str) -> Any:
    """What is at ``module:NAME``; nothing of it is loaded before."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def folder_name(protocol: str) -> str:
    """The name of a protocol as Python can have it, such as ``rabbitmq_stream``."""
    return protocol.replace("-", "_")


def fixture_name(protocol: str) -> str:
    """What the pytest fixture of a protocol is called."""
    return f"{ALIAS if protocol in _NAMES_OF_OTHERS else ''}{folder_name(protocol)}"


def fixture_names(protocol: str) -> tuple[str, ...]:
    """All names of it: there is a second one unless the first is as long."""
    name = fixture_name(protocol)
    return (name,) if name.startswith(ALIAS) else (name, f"{ALIAS}{name}")


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


def module_of(name: str) -> ModuleType:
    """The module that describes a protocol.

    Raises:
        UsageError: There is none, or none in this version; the message says what is valid, and the closest.
    """
    if not is_available(known_name(name)):
        there = ", ".join(each for each in _REGISTERED if is_available(each))
        raise UsageError(f"this version of fakebrokers cannot fake {name}; it can: {there or 'nothing'}")
    return import_module(_REGISTERED[name])


def available_names() -> list[str]:
    """The protocols that this version has."""
    return [name for name in _REGISTERED if is_available(name)]


def find_description(name: str) -> Description:
    """What the protocol of that name is. Raises `UsageError` as `module_of` does."""
    description: Description = module_of(name).PROTOCOL
    return description


def descriptions() -> list[Description]:
    """What all protocols are that this version has."""
    return [find_description(name) for name in available_names()]
