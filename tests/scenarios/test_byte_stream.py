"""What NET-1 lets pass, no wider than it is meant."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.suite.expect import Inconclusive, Violated
from fakebrokers import Narconi
from fakebrokers.core import virtual
from scenarios.net.byte_stream import excuse_unspoken, fails_again, many_connections

TAKE = b"DELETE /v2/test/queues/q/messages HTTP/1.1\r\nHost: h\r\n\r\n"


def test_a_fault_is_excused_where_nobody_has_said_anything() -> None:
    excused: dict[str, str] = {}
    expect: Any = SimpleNamespace(may_not_fire=excused.__setitem__)

    async def main() -> None:
        async with Narconi() as broker:
            subject: Any = SimpleNamespace(wire=broker)
            writers = [(await asyncio.open_connection(broker.host, broker.port))[1] for _ in range(3)]
            await broker.wait_for_async(kind="accepted", count=3)
            excuse_unspoken(subject, expect, "c{} cut at *")
            assert excused == {}, "a client that says nothing at all is another matter"
            writers[1].write(TAKE)
            await broker.wait_for_async(kind="HttpConsume")
            excuse_unspoken(subject, expect, "c{} cut at *")
            for writer in writers:
                writer.close()

    asyncio.run(main())
    assert excused.keys() == {"c1 cut at *", "c3 cut at *"}


class Session:
    """In place of a subject: each session has two connections, and fails where a fault of a bad key waits."""

    slow_s, width, ways, turns = 1.0, 1, 2, 1

    def __init__(self, bad: int | None = None, fails_once: str = "", most: int = 100) -> None:
        self.bad = bad
        self.most = most  #: connections that the client can have
        self.fails_once = fails_once
        self.count = 0
        self.waiting: list[tuple[int, int]] = []
        self.met: list[list[int]] = []
        self.faults: Any = SimpleNamespace(clear=self.waiting.clear, names=[])
        journal = SimpleNamespace(last_seq=0, select=lambda since, **_: [None] * (self.count - since))
        self.wire: Any = SimpleNamespace(journal=journal)

    def add(self, number: int, key: int) -> None:
        self.waiting.append((number, key))
        self.faults.names.append(f"c{number} cut at {key}")

    def accepted(self) -> list[float]:
        return [0.0] * self.count

    async def run(self, session: str, *, timeout: float, turns: int) -> None:
        mine = [key for number, key in self.waiting if number - self.count in (1, 2)]
        self.count += 2
        self.wire.journal.last_seq = self.count
        self.met.append(mine)
        if self.bad in mine or session == self.fails_once or self.count > self.most:
            raise Violated("connect works", "it does not", id="connect-works")


@pytest.mark.parametrize(
    ("bad", "fails", "met"), [(7, True, [[5, 5], [7, 7]]), (9, False, [[5, 5], [7, 7], [8, 8]])]
)
def test_suspects_are_tried_alone_and_once_each(bad: int, fails: bool, met: list[list[int]]) -> None:
    session: Any = Session(bad)
    session.add(1, 9)  # is left over, and not a suspect
    assert virtual.run(fails_again(session, [5, 7, 5, 8], "cut", session.add)) is fails
    assert session.met == met


def test_what_fails_by_its_fault_is_blamed_and_what_fails_once_is_not() -> None:
    session: Any = Session(bad=3)
    with pytest.raises(Violated) as blamed:
        virtual.run(many_connections(session, [1, 1, 2, 2, 3, 3, 4, 4], "cut", session.add))
    assert (blamed.value.criterion, blamed.value.id) == (
        "c5 cut at 3 or c6 cut at 3: connect works",
        "c5-cut-at-n-or-c6-cut-at-n-connect-works",
    )
    assert session.met[-2:] == [[3, 3], []], "it was tried again, and without a fault"
    assert "without such a fault" not in str(blamed.value)
    session = Session(fails_once="cut-1")
    with pytest.raises(Inconclusive, match="the same faults again changed nothing") as unsure:
        virtual.run(many_connections(session, [1, 1, 2, 2, 3, 3], "cut", session.add))
    assert unsure.value.id == "not-by-the-cut"


def test_what_fails_without_a_fault_too_is_told_so() -> None:
    session: Any = Session(most=5)
    with pytest.raises(Violated, match="and so does a session without such a fault") as told:
        virtual.run(many_connections(session, [1, 1, 2, 2, 3, 3, 4, 4], "cut", session.add))
    assert told.value.id == "c5-cut-at-n-or-c6-cut-at-n-connect-works"
