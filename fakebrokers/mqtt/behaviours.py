"""Wrong behaviours of MQTT alone; the general ones are in `fakebrokers.mutate.behaviours`."""

from __future__ import annotations

from fakebrokers.faults import fault
from fakebrokers.mqtt.build import redeliver
from fakebrokers.mqtt.faults import LoseSession, refuse_subscription
from fakebrokers.mutate.behaviours import ONCE, Behaviour

BEHAVIOURS = (
    Behaviour("refused-subscription", "A subscription is refused.", refuse_subscription(**ONCE)),
    Behaviour(
        "redelivered-message",
        "What is not acknowledged yet comes again.",
        redeliver(kind="Publish", direction="out", where={"qos": [1, 2]}, **ONCE),
    ),
    Behaviour(
        "lost-session",
        "The server has forgotten a client that comes back.",
        fault(LoseSession(), kind="Connect", **ONCE),
    ),
)
