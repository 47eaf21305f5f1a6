"""Wrong behaviours of NATS alone; the general ones are in `fakebrokers.mutate.behaviours`."""

from __future__ import annotations

from fakebrokers.faults import reply
from fakebrokers.mutate.behaviours import ONCE, Behaviour
from fakebrokers.nats.build import say_error

BEHAVIOURS = (
    Behaviour(
        "refused-publish",
        "A message is not passed on; who asks gets no responders.",
        reply(503, role="publish", **ONCE),
    ),
    Behaviour(
        "expired-login",
        "The login of a client expires: an error, and the end of the connection.",
        say_error("User Authentication Expired", role="publish", **ONCE),
    ),
)
