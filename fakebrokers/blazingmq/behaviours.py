"""Wrong behaviours of BlazingMQ alone; the general ones are in `fakebrokers.mutate.behaviours`."""

from __future__ import annotations

from fakebrokers.blazingmq.build import bad_crc, foreign_guid, other_subscription
from fakebrokers.faults import drop, reply
from fakebrokers.mutate.behaviours import ONCE, Behaviour

BEHAVIOURS = (
    Behaviour(
        "refused-login", "A client is not let in: category -1.", reply(-1, kind="clientIdentity", **ONCE)
    ),
    Behaviour("refused-publish", "A message is not stored: status -1.", reply(-1, role="publish", **ONCE)),
    Behaviour("refused-queue", "A queue cannot be opened: category -1.", reply(-1, kind="openQueue", **ONCE)),
    Behaviour(
        "lost-queue-answer",
        "A queue is open, and the answer to its opening is lost.",
        drop(kind="openQueueResponse", **ONCE),
    ),
    Behaviour(
        "wrong-confirm",
        "A confirm is for a message that was never sent.",
        foreign_guid(role="confirm", **ONCE),
    ),
    Behaviour(
        "damaged-publish",
        "A message reaches the broker with another checksum than that of its data.",
        bad_crc(role="publish", **ONCE),
    ),
    Behaviour(
        "stray-delivery",
        "A delivery is for a subscription that the client does not have.",
        other_subscription(role="deliver", **ONCE),
    ),
)
