"""The echo as scenarios for all protocols see it: clients publish, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import quote, unquote_to_bytes

from conformance.clients.adapter.messages import Message
from fakebrokers.journal import Record, Tap
from scenarios.subjects import Op, Subject
from tests.echo.protocol import Echo


class EchoSubject(Subject):
    """What is published is stored by its name; there is nothing to consume."""

    protocol = "echo"
    roles: ClassVar = {"publisher": "publisher", "consumer": "publisher"}
    publishing = "Put"
    confirm = delivery = "Stored"

    @property
    def fake(self) -> Echo:
        assert isinstance(self.broker, Echo)
        return self.broker

    def add_queue(self, name: str) -> None:
        """There is one."""

    def stored(self, name: str) -> list[bytes]:
        return [unquote_to_bytes(each) for each in self.fake.broker.stored]

    def put(self, name: str, bodies: Sequence[bytes]) -> None:
        self.fake.broker.stored += tuple(map(quote, bodies))

    def established(self, since: int) -> bool:
        return bool(self.broker.journal.select(kind="accepted", tap=Tap.STATE, since=since))

    def subscriptions(self, since: int) -> list[Record]:
        return []

    def ask_to_close(self, connection: str, code: int, reason: str) -> None:
        raise NotImplementedError

    def refuse_publishes(self) -> None:
        self.fake.broker.room = 0

    def malformed(self) -> bytes:
        return b"nonsense\n"

    def bad_delivery(self) -> None:
        raise NotImplementedError

    async def consume(self, queue: str, wanted: Sequence[bytes], **_: Any) -> list[Message]:
        return []

    def ops(self, queue: str, tag: str = "") -> list[Op]:
        args = {"target": queue, "body": {"text": f"pending{tag}"}}
        return [Op("publish", "publish", self.publishing, self.confirm, args)]

    def value_made_for(self, number: int) -> tuple[Op, Any] | None:
        return None

    async def heartbeats(self) -> None:
        """There are none."""


SUBJECT = EchoSubject
