"""The fake beside a real broker: the same seeded commands, and no difference that nobody knows of.

``FAKEBROKERS_BLAZINGMQ`` is the address of a broker that has the domains of `DOMAINS`;
``FAKEBROKERS_SEQUENCES`` sets how many sequences there are.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from conformance.compare.compare import Comparer, fake_for, target_of
from fakebrokers.blazingmq.dialect.author import DOMAINS, QUEUES
from fakebrokers.blazingmq.protocol import PROTOCOL, WIRE
from fakebrokers.core.dialect import MARK, Login

SEQUENCES = int(os.environ.get("FAKEBROKERS_SEQUENCES", "50"))
REAL = os.environ.get("FAKEBROKERS_BLAZINGMQ", "")
DIALECT = WIRE.load_dialect()
TARGET = target_of(PROTOCOL, "blazingmq://127.0.0.1:1")


@pytest.mark.full
@pytest.mark.timeout(60 + 10 * SEQUENCES)
@pytest.mark.skipif(not REAL, reason="no address of a real broker in FAKEBROKERS_BLAZINGMQ")
def test_beside_the_real_broker() -> None:
    target = target_of(PROTOCOL, REAL)
    with fake_for(PROTOCOL, target, "real") as fake:
        comparer = Comparer(DIALECT, (fake.host, fake.port), target.address, target.login)
        result = comparer.run(range(1, SEQUENCES + 1))
    assert (result.sequences, result.unknown) == (SEQUENCES, [])
    assert result.commands > 10 * SEQUENCES


def test_a_seed_gives_the_same_sequence_again() -> None:
    first, again, other = (DIALECT.sequence(Random(seed), Login()) for seed in (1, 1, 2))
    assert first == again != other
    assert [command for command in first if MARK.encode() in (command.data or b"")]


def test_a_fake_is_like_itself() -> None:
    with fake_for(PROTOCOL, TARGET, "real") as one, fake_for(PROTOCOL, TARGET, "real") as two:
        comparer = Comparer(DIALECT, (one.host, one.port), (two.host, two.port), Login())
        result = comparer.run(range(1, 11))
        kinds = {record.kind for record in one.journal}
    assert result.differences == []
    assert {"PUSH", "ACK", "CONFIRM", "openQueueResponse", "status", "configureStreamResponse"} <= kinds


def test_what_is_done_reaches_every_mode() -> None:
    said = b"".join(
        command.data or b"" for seed in range(40) for command in DIALECT.sequence(Random(seed), Login())
    )
    assert all(queue.encode() in said for queue in QUEUES)
    assert {"priority", "fanout", "broadcast"} == {domain.mode for domain in DOMAINS.values()}


def test_a_broker_that_differs_is_found() -> None:
    """With the fewest commands that show it."""
    with fake_for(PROTOCOL, TARGET, "real") as one, fake_for(PROTOCOL, TARGET, "real") as two:
        two.configure_domain("bmq.test.mem.priority", mode="broadcast")
        comparer = Comparer(DIALECT, (one.host, one.port), (two.host, two.port), Login())
        seed = next(seed for seed in range(1, 50) if QUEUES[0].encode() in _said(seed))
        (found,) = comparer.run([seed]).unknown
    assert len(found.commands) <= 3
    assert ("flags=2" in found.fake, "flags=7" in found.real) == (True, True)


def _said(seed: int) -> bytes:
    """What the clients of a sequence open at first."""
    commands = DIALECT.sequence(Random(seed), Login())
    return b"".join(each.data or b"" for each in commands[:2])
