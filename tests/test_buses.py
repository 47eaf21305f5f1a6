"""The buses beside Debian's servers: the same seeded commands, and no difference that nobody knows of.

``FAKEBROKERS_SEQUENCES`` sets how many sequences there are for each.
"""

from __future__ import annotations

import os

import pytest

from conformance.compare.compare import Comparer, fake_for, target_of
from fakebrokers.protocol import find_protocol
from tests.real_buses import real_bus, required

SEQUENCES = int(os.environ.get("FAKEBROKERS_SEQUENCES", "50"))
BUSES = ["nats", "redis", "mqtt"]


@pytest.mark.full
@pytest.mark.timeout(600 + 4 * SEQUENCES)
@pytest.mark.parametrize("bus", BUSES)
def test_beside_the_real_server(bus: str) -> None:
    required(bus)
    protocol = find_protocol(bus)
    with real_bus(bus) as url:
        target = target_of(protocol, url)
        dialect = protocol.wire(target.wire).load_dialect()
        with fake_for(protocol, target, "real") as fake:
            comparer = Comparer(dialect, (fake.host, fake.port), target.address, target.login)
            result = comparer.run(range(1, SEQUENCES + 1))
    assert (result.sequences, result.unknown) == (SEQUENCES, [])
    assert result.commands > 5 * SEQUENCES
