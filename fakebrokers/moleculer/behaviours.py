"""Wrong behaviours of Moleculer alone; the general ones are in `fakebrokers.mutate.behaviours`."""

from __future__ import annotations

from fakebrokers.faults import reply
from fakebrokers.moleculer.build import break_packet
from fakebrokers.mutate.behaviours import ONCE, Behaviour

BEHAVIOURS = (
    Behaviour("failed-action", "An action fails with code 500.", reply(500, kind="Request", **ONCE)),
    Behaviour(
        "damaged-delivery",
        "What comes in place of an event is no packet.",
        break_packet(role="deliver", **ONCE),
    ),
)
