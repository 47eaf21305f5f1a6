"""Wrong behaviours of Redis alone; the general ones are in `fakebrokers.mutate.behaviours`."""

from __future__ import annotations

from fakebrokers.faults import reply
from fakebrokers.mutate.behaviours import ONCE, Behaviour
from fakebrokers.redis.faults import other_count

BEHAVIOURS = (
    Behaviour("refused-command", "A command fails.", reply(1, kind="Command", **ONCE)),
    Behaviour("refused-publish", "A message is refused.", reply(1, role="publish", **ONCE)),
    Behaviour("nobody-listens", "PUBLISH reports that no client got the message.", other_count(0, **ONCE)),
)
