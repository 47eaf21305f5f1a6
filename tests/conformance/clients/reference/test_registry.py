"""Which reference clients there are, and how they are started."""

from __future__ import annotations

import pytest

from conformance.clients.reference.kit import ReferenceAdapter
from conformance.clients.reference.registry import command, definition, protocols, reference, without_sockets
from fakebrokers.errors import UsageError


@pytest.mark.parametrize("protocol", protocols())
def test_each_says_what_it_is(protocol: str) -> None:
    made = reference(protocol)
    assert made.protocols == (protocol,) == (definition(protocol).protocol,)
    assert issubclass(made, ReferenceAdapter)
    assert not made.is_memory
    memory = without_sockets(made)
    assert issubclass(memory, ReferenceAdapter) and memory.is_memory


def test_the_kit_is_no_protocol() -> None:
    assert "kit" not in protocols()
    for name in ("kit", "kafka"):
        with pytest.raises(UsageError, match="no reference client"):
            command(name)
