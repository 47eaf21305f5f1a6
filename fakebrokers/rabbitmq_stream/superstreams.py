"""Super streams: an exchange, partitions and their bindings (docs/protocols/rabbitmq-stream.md, 9)."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from fakebrokers.rabbitmq_stream.arguments import parse_name
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.refusals import Refused


class Binding(msgspec.Struct, frozen=True):
    """A partition and a routing key that leads to it.

    Attributes:
        partition: The stream.
        key: The routing key.
        order: Its place among all that were declared; it stays when others are deleted. None: the binding
            was made without one, as the management API allows.
    """

    partition: str
    key: str
    order: int | None

    @property
    def index(self) -> int | None:
        """The place that consumers of the partition have; None: none is known.

        A server without the argument takes the number after the last hyphen of the stream's name.
        """
        if self.order is not None:
            return self.order
        number = re.fullmatch(r".*-(\d{1,9})", self.partition, re.ASCII | re.DOTALL)
        return None if number is None else int(number[1])


#: Exchanges that every virtual host has, besides the one without a name.
_TYPES = ("direct", "fanout", "headers", "match", "rabbitmq.trace", "topic")
PREDECLARED = frozenset(f"amq.{name}" for name in _TYPES)


class SuperStream:
    """One super stream.

    Attributes:
        virtual_host: The one it belongs to.
        name: Its name.
        bindings: In the order of the partitions.
        arguments: Of its exchange, as the management API shows them.
    """

    def __init__(self, virtual_host: str, name: str, bindings: Sequence[Binding]) -> None:
        self.virtual_host = virtual_host
        self.name = name
        self.bindings = list(bindings)
        self.arguments: dict[str, object] = {"x-super-stream": True}

    @property
    def partitions(self) -> list[str]:
        """Names of the partitions, in order, each once."""
        return list(dict.fromkeys(binding.partition for binding in self.bindings))

    def route(self, key: str) -> list[str]:
        """Partitions for exactly this key."""
        return [binding.partition for binding in self.bindings if binding.key == key]

    def index(self, partition: str) -> int | None:
        """Place with which a partition was declared; None: it is none of this super stream."""
        return next((binding.index for binding in self.bindings if binding.partition == partition), None)

    def bind(self, binding: Binding) -> None:
        """Add a binding at its place; those without an order come last. One that is there already stays."""
        if any((one.partition, one.key) == (binding.partition, binding.key) for one in self.bindings):
            return
        self.bindings.append(binding)
        self.bindings.sort(key=lambda one: (one.order is None, one.order or 0))

    def unbind(self, partition: str, key: str | None = None) -> bool:
        """Remove the bindings of a partition, or only that with this key; whether there was one."""
        kept = [one for one in self.bindings if one.partition != partition or key not in (None, one.key)]
        found = len(kept) < len(self.bindings)
        self.bindings = kept
        return found


def parse_bindings(partitions: Sequence[str], keys: Sequence[str]) -> list[Binding]:
    """The bindings that CreateSuperStream asks for.

    Raises:
        Refused: The counts differ, or a name comes twice or is not valid: code 17.
    """
    names = [parse_name(partition) for partition in partitions]
    if len(names) != len(keys) or len(set(names)) != len(names):
        raise Refused(Code.PRECONDITION_FAILED)
    pairs = zip(names, keys, strict=True)
    return [Binding(name, key, order) for order, (name, key) in enumerate(pairs)]
