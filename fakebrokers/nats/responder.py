"""Who answers requests where a test does: a listener without a connection."""

from __future__ import annotations

from collections.abc import Callable

from fakebrokers.core.subscriptions import Subscription
from fakebrokers.nats.broker import NatsBroker

#: The subject and the payload of a request; what it returns is the answer, None is none.
Answer = Callable[[str, bytes], bytes | None]


class Responder:
    """Answers what is published with a reply subject; see `fakebrokers.nats.server.NATS.respond`."""

    echo = False  #: it hears nothing of itself

    def __init__(self, broker: NatsBroker, answer: Answer, headers: bytes) -> None:
        self._broker = broker
        self._answer = answer
        self._headers = headers

    def deliver(
        self, subscription: Subscription, subject: str, reply: str, headers: bytes, payload: bytes
    ) -> None:
        """A message has come."""
        found = self._answer(subject, payload)
        if found is not None and reply:
            self._broker.route(self, reply, "", self._headers, found)

    def end_subscription(self, subscription: Subscription) -> None:
        """It listens no more."""
        self._broker.subscriptions.remove(subscription)
