"""What many mutants share: a reader that dies silently, as readers of real clients do."""

from __future__ import annotations

from conformance.clients.reference.rabbitmq_stream.connection import Connection
from fakebrokers.core.frames import Frame


class DeafConnection(Connection):
    """From `go_deaf` on frames are not read any more, though bytes still count as a sign of life."""

    is_deaf = False

    def go_deaf(self) -> None:
        """The reader ends and reports nothing."""
        self.is_deaf = True

    def receive(self, data: bytes, now: float) -> None:
        if not self.is_deaf:
            super().receive(data, now)
        self.last_received = now

    def handle(self, frame: Frame) -> None:
        if not self.is_deaf:
            super().handle(frame)
