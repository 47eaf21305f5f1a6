"""How an application of the echo publishes."""

from __future__ import annotations

from typing import Any, ClassVar

from conformance.search.random.actions import Actions
from conformance.search.random.context import ChaosContext


class EchoActions(Actions):
    """There is nothing to consume, and a lost connection does not come back."""

    protocol = "echo"
    kinds = ("publish",)
    connecting: ClassVar = {"auto_reconnect": False}
    recover_s = 1.0
    probe = ("state", {})

    def target(self, number: int, *, read: bool) -> str:
        return ""

    async def subscribe(
        self, context: ChaosContext, session: str, sub: str, target: str, params: Any
    ) -> bool:
        return False

    def put(self, context: ChaosContext, target: str, body: str) -> None:
        context.broker.broker.stored += (body,)


ACTIONS = EchoActions()
