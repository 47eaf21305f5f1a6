"""The fake that `order` sends a burst to: the folder of a protocol's ops has a module ``stage`` with one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Session and target of the burst.
NAME = "order"


class Stage:
    """A fake, how the adapter finds its way to it, and what it got.

    Args:
        broker: Not started yet.
        prepare: Makes what is published to; returns the target.
        stored: The messages that came, in order, whatever the client wraps them in.
        steps: Ops before the first message, with their arguments.
    """

    def __init__(
        self,
        broker: Any,
        prepare: Callable[[], str],
        stored: Callable[[], list[bytes]],
        *steps: tuple[str, dict[str, Any]],
    ) -> None:
        self.broker = broker
        self.prepare = prepare
        self.stored = stored
        self.steps = steps

    def endpoints(self) -> Any:
        """``where`` is the address, or addresses by role."""
        where = self.broker.where
        return [where] if isinstance(where, str) else where
