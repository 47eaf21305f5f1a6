"""The faults that only MQTT has, in one line of Python each.

    redeliver(role="deliver", nth=3)

See `fakebrokers.faults.build`.
"""

from __future__ import annotations

from typing import Unpack

from fakebrokers.faults.making import FaultArgs, builder
from fakebrokers.faults.plan import Fault
from fakebrokers.mqtt.faults import LoseSession, Redeliver


@builder(LoseSession)
def lose_session(client: str = "", **fault: Unpack[FaultArgs]) -> Fault:
    """The server forgets a client, with its filters and messages; a connected one once it goes."""


@builder(Redeliver)
def redeliver(**fault: Unpack[FaultArgs]) -> Fault:
    """What the client has not acknowledged comes again, with DUP, though its connection has not ended."""
