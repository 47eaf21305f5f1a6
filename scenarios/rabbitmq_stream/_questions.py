"""Requests with answers of their own, whichever of them a client offers."""

from __future__ import annotations

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect
from conformance.suite.expect import Unsupported, slug
from fakebrokers import RabbitMQStream
from fakebrokers.journal import Record
from scenarios.rabbitmq_stream._steps import STREAM, answered

OFFSETS = {"a": 11, "b": 22, "c": 33}
PRECONDITION_FAILED = 17


class Questions:
    """QueryOffset for the references a, b and c, or Create for streams of these names.

    Only a can be created: b and c exist with other arguments, which is refused with 17.
    """

    def __init__(self, broker: RabbitMQStream, client: Client, op: str | None = None) -> None:
        self._broker = broker
        self._client = client
        self.op = op or next(iter(askable(client)), "")
        if not self.op:
            raise Unsupported("the adapter declares neither rmqs.query_offset nor rmqs.create")
        self.kind = "QueryOffset" if self.op == "rmqs.query_offset" else "Create"
        if self.kind == "Create":
            for name in ("b", "c"):
                broker.create_stream(name, max_length_bytes=1000)
            return
        broker.create_stream(STREAM)
        for name, offset in OFFSETS.items():
            broker.store_offset(STREAM, name, offset)

    @property
    def answer(self) -> str:
        """The kind of the answers' frames."""
        return f"{self.kind}Response"

    def ask(self, name: str, timeout: float = 3.0, session: str = "s1") -> Call:
        """Begin the op with this name."""
        args = {"target": STREAM, "name": name} if self.kind == "QueryOffset" else {"target": name}
        return self._client.begin(self.op, timeout, session=session, **args)

    def answers(self, name: str, since: int) -> list[Record]:
        """The requests about `name` that came since then and were answered on their connection."""
        field = "reference" if self.kind == "QueryOffset" else "stream"
        found = answered(self._broker, self.kind, since)
        return [record for record in found if getattr(record.frame, field, None) == name]

    def ended_by_loss(
        self, expect: Expect, result: Result, name: str, what: str, *, since: int, lost_s: float
    ) -> None:
        """Demand that a loss ended the question in time, or that it was answered anew since then.

        Args:
            since: The journal's last record before the loss.
            lost_s: When the connection was lost, or when the question was asked after the loss.
        """
        if result.ok or result.code == PRECONDITION_FAILED:
            criterion = f"{what} ends as connection or closed, or with an answer from a new connection"
            expect.that(
                self.answers(name, since),
                criterion,
                f"{result}, but nothing was answered",
                id=slug("{}-ends-as-connection-or-closed-or-with-an-answer-from-a-new-connection", what),
            )
            self.answered(
                expect,
                result,
                name,
                f"{what}, repeated on a new connection, gets its own answer",
                id=slug("{}-repeated-on-a-new-connection-gets-its-own-answer", what),
            )
            return
        expect.failed(
            result,
            ("connection", "closed"),
            f"{what} ends as connection or closed",
            id=slug("{}-ends-as-connection-or-closed", what),
        )
        expect.within(
            result.ended_ns / 1e9 - lost_s,
            1.0,
            f"{what} ends within 1 s of the loss",
            id=slug("{}-ends-within-n-s-of-the-loss", what),
        )

    def answered(self, expect: Expect, result: Result, name: str, criterion: str, *, id: str) -> None:
        """Demand that the question about `name` got its own answer."""
        if self.kind == "QueryOffset":
            value = expect.ok(result, criterion, id=id)
            expect.equal(int(value["offset"]), OFFSETS[name], criterion, id=id)
        elif name == "a":
            expect.ok(result, criterion, id=id)
        else:
            expect.failed(result, ("refused",), criterion, code=PRECONDITION_FAILED, id=id)


def askable(client: Client) -> list[str]:
    """The ops that can be used, the better one first."""
    return [op for op in ("rmqs.query_offset", "rmqs.create") if client.has(op)]
