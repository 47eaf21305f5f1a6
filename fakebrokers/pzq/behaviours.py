"""Wrong behaviours of PZQ alone; the general ones are in `fakebrokers.mutate.behaviours`."""

from __future__ import annotations

from fakebrokers.mutate.behaviours import ONCE, Behaviour
from fakebrokers.pzq.build import corrupt_part, expire_now, store_failure

BEHAVIOURS = (
    Behaviour(
        "refused-publish",
        "A message is not stored: the disk is full.",
        store_failure("disk full", role="publish", **ONCE),
    ),
    Behaviour(
        "damaged-delivery",
        "A byte of a delivery is another one.",
        corrupt_part(role="deliver", **ONCE),
    ),
    Behaviour(
        "early-redelivery",
        "All deliveries expire at a delivery, and come again.",
        expire_now(role="deliver", **ONCE),
    ),
)
