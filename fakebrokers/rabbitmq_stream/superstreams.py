"""Super streams: an exchange, partitions and their bindings (docs/protocols/rabbitmq-stream.md, 9)."""

from __future__ import annotations

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
        order: Its place among all that were declared; it stays when others are deleted.
    """

    partition: str
    key: str
    order: int


class SuperStream:
    """One super stream.

    Attributes:
        virtual_host: The one it belongs to.
        name: Its name.
        bindings: In the order of the partitions.
    """

    def __init__(self, virtual_host: str, name: str, bindings: Sequence[Binding]) -> None:
        self.virtual_host = virtual_host
        self.name = name
        self.bindings = list(bindings)

    @property
    def partitions(self) -> list[str]:
        """Names of the partitions, in order, each once."""
        return list(dict.fromkeys(binding.partition for binding in self.bindings))

    def route(self, key: str) -> list[str]:
        """Partitions for exactly this key."""
        return [binding.partition for binding in self.bindings if binding.key == key]

    def index(self, partition: str) -> int | None:
        """Place with which a partition was declared; None: it is none of this super stream."""
        return next((binding.order for binding in self.bindings if binding.partition == partition), None)

    def unbind(self, partition: str) -> None:
        """Remove the bindings of a partition that was deleted."""
        self.bindings = [binding for binding in self.bindings if binding.partition != partition]


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
