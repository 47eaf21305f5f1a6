"""Whether a client does one op of each of its roles, at a fake broker that does everything right."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.check_fixture import NAME, CheckFixture, Op
from conformance.clients.adapter.messages import Kind
from conformance.clients.adapter.order import find_check_fixture
from conformance.clients.adapter.profile import late_capability
from conformance.clients.adapter.result import Result
from fakebrokers.journal import Tap

DEADLINE_MS = 5000.0
CONNECT = ""  #: among the roles
#: A client may learn a moment after `connect` whom it can call.
TRIES, PAUSE_S = 20, 0.1
PRETENDS = "nothing reached the fake broker: does the adapter still run on its PretendClient?"


class Tried(NamedTuple):
    """What came of it.

    Attributes:
        failed: The op that did not work, and how it ended; empty if all did.
        left: What was not tried, and why; one part of a sentence each.
    """

    failed: str = ""
    left: tuple[str, ...] = ()


async def tried(adapter: Adapter) -> Tried:
    """Connect to the fake of the protocol, and do one op of each declared role."""
    fixture = find_check_fixture(adapter.protocol)
    if fixture is None:
        return Tried(left=(f"there is no fake broker for {adapter.protocol} to connect to",))
    async with fixture.broker:
        target = fixture.prepare()
        failed, left = await _tried(adapter, fixture, target)
        await adapter.reset()
        reached = any(record.tap & Tap.RECEIVED for record in fixture.broker.journal.records())
    if not failed and not reached:
        return Tried(left=(PRETENDS,))
    return Tried(failed, tuple(left))


async def _tried(adapter: Adapter, fixture: CheckFixture, target: str) -> tuple[str, list[str]]:
    left: list[str] = []
    connect = ("connect", {"session": NAME, "endpoints": fixture.endpoints(), "options": fixture.options()})
    steps = fixture.steps
    for role in _connect_in_its_place(adapter, fixture, target):
        if role == CONNECT:
            result = await _done(adapter, connect)
            if not result.ok:
                return f"connect: {result}", left
            continue
        if role not in fixture.tries:
            left.append(f"{role}: no op is known to try it with")
            continue
        for op in (*steps, *fixture.tries[role](target)):
            result = await _done(adapter, op)
            if result.kind is Kind.UNSUPPORTED:
                left.append(f"{role}: {result.error.text if result.error else op[0]}")
                break
            if not result.ok:
                return f"{role}, {result}", left
        steps = ()  # once is enough
    return "", left


def _connect_in_its_place(adapter: Adapter, fixture: CheckFixture, target: str) -> list[str]:
    """The roles in the order in which they are tried, and `CONNECT`, which comes after those of `Op.late`."""
    roles = adapter.hello.roles
    ops = {role: [op for op, _ in fixture.tries[role](target)] for role in roles if role in fixture.tries}
    late = [(role, late_capability(op)) for role, found in ops.items() for op in found]
    early = [role for role, capability in late if capability and not adapter.hello.can(capability)]
    return [*early, CONNECT, *(role for role in roles if role not in early)]


async def _done(adapter: Adapter, op: Op) -> Result:
    result = await adapter.call(*op, DEADLINE_MS)
    for _ in range(TRIES if op[0] == "mol.call" else 0):
        if result.ok or result.kind is Kind.UNSUPPORTED:
            break
        await asyncio.sleep(PAUSE_S)
        result = await adapter.call(*op, DEADLINE_MS)
    return result
