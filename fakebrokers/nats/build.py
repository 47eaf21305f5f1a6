"""The faults that only NATS has, in one line of Python each.

    lame_duck(role="publish", nth=10)

See `fakebrokers.faults.build`.
"""

from __future__ import annotations

from typing import Unpack

from fakebrokers.faults.making import FaultArgs, builder
from fakebrokers.faults.plan import Fault
from fakebrokers.nats.faults import LameDuck, SayError


@builder(LameDuck)
def lame_duck(node: int = 0, **fault: Unpack[FaultArgs]) -> Fault:
    """A server takes no new clients, warns those that it has, and ends them some seconds later."""


@builder(SayError)
def say_error(text: str, **fault: Unpack[FaultArgs]) -> Fault:
    """``-ERR``, and the end of the connection, as after a slow consumer or at the end of a login."""
