"""The toy protocol as scenarios for all protocols see it: a caller's protocol without subscriptions."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any, ClassVar

from conformance.clients.adapter.base import Call
from conformance.suite.client import Body, as_body
from fakebrokers.journal import Record, Tap
from scenarios.subjects import Op, Subject
from tests import toy


class ToySubject(Subject):
    """A queue is the beginning of a key; a publish stores a value, and consuming asks for all of them."""

    protocol = "toy"
    judged_by = ("NET-1.01", "NET-1.03", "NET-3.03")
    roles: ClassVar = {"publisher": "caller", "consumer": "service"}
    rows: ClassVar = {
        "": {"server": {"body_limit": 4096}},
        "NET-1": {"timeout_s": 20.0},
        "NET-1.03": {"variants": ("plain",), "ops": ("toy.read",)},
    }
    variants: ClassVar = {"plain": {}, "seeded": {"seed": 7}}
    publishing = "Put"
    confirm = "Stored"
    delivery = "Value"
    close_frame = close_answer = "Bye"

    def _values(self, queue: str) -> dict[str, str]:
        fake = self.broker
        assert isinstance(fake, toy.Toy)
        return {key: body for key, body in fake.broker.values.items() if key.startswith(f"{queue}/")}

    def add_queue(self, name: str) -> None:
        """Whoever stores something makes it."""

    def stored(self, name: str) -> list[bytes]:
        return [urlsafe_b64decode(body) for body in self._values(name).values()]

    def put(self, name: str, bodies: Sequence[bytes]) -> None:
        fake = self.broker
        assert isinstance(fake, toy.Toy)
        for number, body in enumerate(bodies, len(self._values(name))):
            fake.broker.values[f"{name}/{number}"] = urlsafe_b64encode(body).decode()

    def established(self, since: int) -> bool:
        return bool(self.broker.journal.select(kind="Welcome", tap=Tap.SENT, since=since))

    def subscriptions(self, since: int) -> list[Record]:
        return []

    def ask_to_close(self, connection: str, code: int, reason: str) -> None:
        self.broker.say(connection, toy.Bye())

    def refuse_publishes(self) -> None:
        raise NotImplementedError

    def malformed(self) -> bytes:
        return b"nonsense\n"

    def bad_delivery(self) -> None:
        raise NotImplementedError

    def begin_publish(
        self,
        queue: str,
        body: Body = b"hello",
        *,
        session: str = "s1",
        timeout: float = 5.0,
        wait: bool = True,
    ) -> Call:
        self.number = getattr(self, "number", 0) + 1
        key = f"{queue}/{self.number}"
        return self.client.begin("toy.put", timeout, session=session, key=key, body=as_body(body))

    def subscribe(
        self, queue: str, sub: str = "c1", session: str = "s1", timeout: float = 5.0, **options: Any
    ) -> Call:
        keys = list(self._values(queue))
        on_message = {"mode": "event"}
        return self.client.begin(
            "toy.read", timeout, session=session, sub=sub, keys=keys, on_message=on_message
        )

    def ops(self, queue: str, tag: str = "") -> list[Op]:
        self.put(f"{queue}-ops", [b"there"])
        put = {"key": f"{queue}/{tag}", "body": {"text": "pending"}}
        return [
            Op("put", "toy.put", "Put", "Stored", put),
            Op("get", "toy.get", "Get", "Value", {"key": f"{queue}-ops/0"}),
        ]

    def value_made_for(self, number: int) -> tuple[Op, Any] | None:
        return None

    async def heartbeats(self) -> None:
        """Only the server beats."""


SUBJECT = ToySubject
