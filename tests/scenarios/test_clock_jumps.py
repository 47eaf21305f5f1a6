"""The wall clock jumps by years while brokers and clients talk: what waits, waits as long as without that.

Heartbeats and time-outs count on the clock that only ever passes; the date is told, and nothing else.
"""

from __future__ import annotations

from typing import Any

import pytest

from conformance.clients.mutants.matrix import GOOD, run
from conformance.suite.load import all_scenarios, select
from conformance.suite.scenario import Scenario
from fakebrokers.core import clock
from tests.clock_jumps import YEAR_S, jumps
from tests.judged import JUDGED
from tests.scenarios.proofs import in_memory

#: What is about waiting, by the names of modules.
ABOUT_TIME = ("clocks", "heartbeats", "liveness", "net_liveness", "silence")
#: What is about the date itself, or goes by it where the real broker does.
DATES = {
    "MOL-2.09": "PONG tells when the PING has arrived",
    "PZQ-1.03": "the keys of messages, by which they are ordered, begin with the date",
    "PZQ-2.05": "a delivery tells when it was sent: each later than the one before",
    "PZQ-2.11": "how old a message is, by its key",
}
BRIEF = select(all_scenarios(), which="smoke")
CHOSEN = [
    item
    for item in select(all_scenarios())
    if in_memory(item)
    and item.id not in DATES
    and (item in BRIEF or item.script.__module__.rpartition(".")[2] in ABOUT_TIME)
]


def reported(item: Scenario) -> tuple[Any, ...]:
    """The verdict, and what went over the wire at which moment of virtual time."""
    judged = run(item, None, invariants=True)
    wire = [(record.at, record.connection, record.tap, record.kind) for record in judged.records]
    return judged.verdict in GOOD, judged.criterion, wire


@pytest.mark.parametrize("protocol", [each.name for each in JUDGED])
def test_it_goes_on_as_if_nothing_had_happened(protocol: str) -> None:
    items = [item for item in CHOSEN if item.protocol == protocol]
    assert len(items) > 10
    for item in items:
        as_ever = reported(item)
        with jumps():
            assert abs(clock.wall() - clock.wall()) > YEAR_S
            assert reported(item) == as_ever, item.label
