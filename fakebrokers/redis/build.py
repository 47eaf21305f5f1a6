"""The faults that only Redis has, in one line of Python each.

    evict("session:7", kind="Command", nth=5)

See `fakebrokers.faults.build`.
"""

from __future__ import annotations

from typing import Unpack

from fakebrokers.faults.making import FaultArgs, builder
from fakebrokers.faults.plan import Fault
from fakebrokers.redis.faults import Evict


@builder(Evict)
def evict(key: str, **fault: Unpack[FaultArgs]) -> Fault:
    """The server gives up a key, as it may where memory is short."""
