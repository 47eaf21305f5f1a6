"""What a page of a run shows of the broker: who listens to what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fakebrokers.viewer.model import BrokerModel, Seen, listeners

if TYPE_CHECKING:
    from fakebrokers.nats.server import NATS


class SubjectModel(BrokerModel):
    """Subscriptions by connection, as the fake tells them."""

    def frame(self, seen: Seen) -> None:
        """Frames tell nothing: of a real server the page shows no subscriptions."""

    @classmethod
    def held(cls, server: NATS) -> Iterator[tuple[str, str]]:
        return listeners(server.broker.subscriptions, "sid ")
