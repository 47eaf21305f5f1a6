"""The embedded servers beside Debian's: the same seeded commands, and no difference that nobody knows of.

``FAKEBROKERS_SEQUENCES`` sets how many sequences there are for each.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from conformance.compare.compare import Comparer, Comparison, fake_for, target_of
from fakebrokers.core.dialect import MARK, Login
from fakebrokers.moleculer.nats.frames import Hmsg, Msg
from fakebrokers.moleculer.protocol import PROTOCOL
from tests.real_buses import SERVERS, real_bus, required

SEQUENCES = int(os.environ.get("FAKEBROKERS_SEQUENCES", "50"))


@pytest.mark.full
@pytest.mark.timeout(600 + 4 * SEQUENCES)
@pytest.mark.parametrize("transporter", SERVERS)
def test_beside_the_real_server(transporter: str) -> None:
    required(transporter)
    with real_bus(transporter) as url:
        target = target_of(PROTOCOL, url)
        dialect = PROTOCOL.wire(target.wire).load_dialect()
        with fake_for(PROTOCOL, target, "real") as fake:
            comparer = Comparer(dialect, (fake.host, fake.port), target.address, target.login)
            result = comparer.run(range(1, SEQUENCES + 1))
    assert (result.sequences, result.unknown) == (SEQUENCES, [])
    assert result.commands > 5 * SEQUENCES


@pytest.mark.parametrize("transporter", SERVERS)
def test_a_seed_gives_the_same_sequence_again(transporter: str) -> None:
    dialect = PROTOCOL.wire(transporter).load_dialect()
    first, again, other = (dialect.sequence(Random(seed), Login()) for seed in (1, 1, 2))
    assert first == again != other
    named = [command for command in first if MARK.encode() in (command.data or b"")]
    assert named


def compared(transporter: str, *seeds: int) -> Comparison:
    """Two fakes; what differs is drawn by chance."""
    dialect = PROTOCOL.wire(transporter).load_dialect()
    target = target_of(PROTOCOL, f"{transporter}://127.0.0.1:1")
    with fake_for(PROTOCOL, target, "real") as one, fake_for(PROTOCOL, target, "real") as two:
        comparer = Comparer(dialect, (one.host, one.port), (two.host, two.port), Login())
        return comparer.run(seeds)


@pytest.mark.parametrize("transporter", SERVERS)
def test_a_fake_is_like_itself(transporter: str) -> None:
    assert compared(transporter, *range(1, 6)).differences == []


def test_which_member_of_a_group_gets_a_message_does_not_count() -> None:
    """Nor whether it is one of those that know headers; for other listeners that counts."""
    dialect = PROTOCOL.wire("nats").load_dialect()
    head = b"NATS/1.0\r\n\r\n"
    bare, full = Msg("a", "q1", b"x"), Hmsg("a", "q2", head, b"x")
    assert dialect.is_drawn(bare) and dialect.is_drawn(full)
    assert dialect.brief(bare) == dialect.brief(full) != dialect.brief(Msg("a", "q1", b"y"))
    assert dialect.brief(Msg("a", "1", b"x")) != dialect.brief(Hmsg("a", "1", head, b"x"))
    assert dialect.brief(Hmsg("a", "1", head, b"x")) != dialect.brief(Hmsg("a", "1", b"", b"x"))
