"""Wrong behaviours of RabbitMQ Stream alone; the general ones are in `fakebrokers.mutate.behaviours`."""

from __future__ import annotations

from fakebrokers.faults import drop, reply, rewrite
from fakebrokers.mutate.behaviours import ONCE, Behaviour

BEHAVIOURS = (
    Behaviour("refused-login", "A login fails with code 8.", reply(8, kind="SaslAuthenticate", **ONCE)),
    Behaviour("refused-publish", "A message is not stored: code 18.", reply(18, role="publish", **ONCE)),
    Behaviour(
        "refused-publisher",
        "A publisher cannot be declared: the stream is not available, code 6.",
        reply(6, kind="DeclarePublisher", **ONCE),
    ),
    Behaviour(
        "refused-subscription",
        "A subscription fails: the stream is not available, code 6.",
        reply(6, kind="Subscribe", **ONCE),
    ),
    Behaviour(
        "lost-subscription-answer",
        "A subscription begins, and the answer to it is lost.",
        drop(kind="SubscribeResponse", **ONCE),
    ),
    Behaviour(
        "wrong-offset",
        "A delivery says that its messages are ten offsets later than they are.",
        rewrite({"chunk.first_offset": {"add": 10}}, kind="Deliver", **ONCE),
    ),
)
