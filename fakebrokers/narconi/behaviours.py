"""Wrong behaviours of Narconi alone; the general ones are in `fakebrokers.mutate.behaviours`."""

from __future__ import annotations

from fakebrokers.faults import reply
from fakebrokers.mutate.behaviours import ONCE, Behaviour
from fakebrokers.narconi.build import corrupt_content, fail_instead

BEHAVIOURS = (
    Behaviour("refused-login", "A WebSocket is refused: 401.", reply(401, kind="WsUpgrade", **ONCE)),
    Behaviour("refused-publish", "A message is not stored: 503.", reply(503, role="publish", **ONCE)),
    Behaviour("refused-queue", "A queue is not made: 503.", reply(503, kind="EnsureQueue", **ONCE)),
    Behaviour(
        "failed-delivery",
        "An error comes in place of a delivery.",
        fail_instead(role="deliver", **ONCE),
    ),
    Behaviour(
        "damaged-delivery",
        "A byte of a delivery is another one; all lengths are right.",
        corrupt_content(role="deliver", **ONCE),
    ),
)
