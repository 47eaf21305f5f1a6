"""The fake that a self-test connects to: the folder of a protocol's ops has a module ``check_fixture`` with
one.

`order` sends a burst of messages to it, `roles` tries one op of each role.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

#: Session and target of the burst.
NAME = "order"
#: An op and its arguments.
Op = tuple[str, dict[str, Any]]


def consume(target: str) -> tuple[Op, ...]:
    """What consumers of most protocols begin with."""
    plan = {"mode": "event", "auto_settle": "none"}
    args = {"session": NAME, "sub": NAME, "target": target, "options": {}, "on_message": plan}
    return (("subscribe", args),)


def publish(target: str) -> tuple[Op, ...]:
    """What publishers of most protocols begin with."""
    return (("publish", {"session": NAME, "target": target, "body": {"text": "one"}}),)


class CheckFixture:
    """A fake, how the adapter finds its way to it, and what it got.

    Args:
        broker: Not started yet.
        prepare: Makes what is published to; returns the target.
        stored: The messages that came, in order, whatever the client wraps them in.
        steps: Ops before the first message, with their arguments.
        tries: By role, the ops that show whether a client has it; made for the target.
        options: Those of connect.
    """

    def __init__(
        self,
        broker: Any,
        prepare: Callable[[], str],
        stored: Callable[[], list[bytes]],
        *steps: Op,
        tries: Mapping[str, Callable[[str], Sequence[Op]]],
        options: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        self.broker = broker
        self.prepare = prepare
        self.stored = stored
        self.steps = steps
        self.tries = tries
        self.options = options

    def endpoints(self) -> Any:
        """``where`` is the address, or addresses by role."""
        where = self.broker.where
        return [where] if isinstance(where, str) else where
