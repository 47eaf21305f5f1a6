"""Profile 3.10 beside Debian's RabbitMQ: the same seeded commands, and no difference that nobody knows of.

``FAKEBROKERS_SEQUENCES`` sets how many sequences there are.
"""

from __future__ import annotations

import os
from random import Random

import msgspec
import pytest

from conformance.compare.compare import Comparer, fake_for, target_of
from conformance.compare.talk import Heard, talk
from fakebrokers.core.dialect import MARK, Command, Login
from fakebrokers.core.frames import Frame
from fakebrokers.rabbitmq_stream.binary import pack_ids
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.dialect.author import STREAMS
from fakebrokers.rabbitmq_stream.entries import simple_entries
from fakebrokers.rabbitmq_stream.frames import (
    Create,
    CreditResponse,
    DeclarePublisher,
    Deliver,
    PublishConfirm,
    Subscribe,
)
from fakebrokers.rabbitmq_stream.protocol import PROTOCOL, WIRE
from fakebrokers.rabbitmq_stream.publishing import publish
from tests.rabbitmq_stream.bench import HANDSHAKE
from tests.real_rabbitmq import real_rabbitmq, required

SEQUENCES = int(os.environ.get("FAKEBROKERS_SEQUENCES", "50"))
DIALECT = WIRE.load_dialect()


@pytest.mark.full
@pytest.mark.timeout(600 + 4 * SEQUENCES)
def test_beside_the_real_server() -> None:
    required()
    with real_rabbitmq() as real:
        target = target_of(PROTOCOL, real.url)
        with fake_for(PROTOCOL, target, "3.10") as fake:
            comparer = Comparer(DIALECT, (fake.host, fake.port), target.address, target.login)
            result = comparer.run(range(1, SEQUENCES + 1))
    assert (result.sequences, result.unknown) == (SEQUENCES, [])
    assert result.commands > 15 * SEQUENCES


def test_a_seed_gives_the_same_sequence_again() -> None:
    first, again, other = (DIALECT.sequence(Random(seed), Login()) for seed in (1, 1, 2))
    assert first == again != other
    named = [command for command in first if MARK.encode() in (command.data or b"")]
    assert named


@pytest.mark.parametrize("profile", ["3.10", "real"])
def test_a_fake_is_like_itself(profile: str) -> None:
    target = target_of(PROTOCOL, "rabbitmq-stream://someone:s%3Acret@127.0.0.1:1")
    with fake_for(PROTOCOL, target, profile) as one, fake_for(PROTOCOL, target, profile) as two:
        comparer = Comparer(DIALECT, (one.host, one.port), (two.host, two.port), target.login)
        result = comparer.run(range(1, 31))
        # every sequence tidies up behind itself
        assert (result.differences, one.streams, two.streams) == ([], [], [])
        assert {"Deliver", "PublishConfirm", "MetadataUpdate"} <= {record.kind for record in one.journal}


def deliver(subscription: int, first_offset: int, *bodies: bytes) -> Deliver:
    data = simple_entries(bodies)
    chunk = Chunk.build(
        data, entries=len(bodies), records=len(bodies), first_offset=first_offset, timestamp_ms=1
    )
    return Deliver(subscription, chunk)


def joined(*frames: Frame) -> list[str]:
    return [DIALECT.brief(frame) for frame in DIALECT.joined(frames)]


def test_where_a_writer_cuts_does_not_count() -> None:
    whole = [PublishConfirm(1, pack_ids([4, 5])), deliver(1, 0, b"a", b"b"), deliver(2, 0, b"a", b"b")]
    cut = [PublishConfirm(1, pack_ids([4])), deliver(1, 0, b"a"), deliver(2, 0, b"a")]
    cut += [PublishConfirm(1, pack_ids([5])), deliver(1, 1, b"b"), deliver(2, 1, b"b")]
    assert joined(*whole) == joined(*cut)
    assert len(joined(*whole)) == 3


def test_what_is_not_one_stays_apart() -> None:
    answer = CreditResponse(4, 9)
    for apart in (
        [deliver(1, 0, b"a"), deliver(1, 2, b"c")],  # an offset in between
        [PublishConfirm(1, pack_ids([4])), PublishConfirm(2, pack_ids([5]))],
        [deliver(1, 0, b"a"), answer, deliver(1, 1, b"b")],
    ):
        assert len(joined(*apart)) == len(apart)
    damaged = msgspec.structs.replace(deliver(1, 1, b"b").chunk, crc=7)
    assert len(joined(deliver(1, 0, b"a"), Deliver(1, damaged))) == 2


def log_in(client: int) -> list[Command]:
    frames = [StreamCodec("client").encode(frame) for _, frame in HANDSHAKE]
    answers = (1, 1, 2)
    return [
        *[Command(client, data, "log in", answers=n) for data, n in zip(frames, answers, strict=False)],
        Command(client, frames[3] + frames[4], "Tune + Open", len(frames[3]), 1),
    ]


def said(*commands: Command) -> list[Heard]:
    with fake_for(PROTOCOL, target_of(PROTOCOL, "rabbitmq-stream://127.0.0.1:1"), "3.10") as fake:
        return talk(DIALECT, (fake.host, fake.port), Login(), commands)


def test_each_step_of_the_handshake_is_heard_behind_its_command() -> None:
    first, second, third, last, late = said(*log_in(0))
    assert first[0][0].startswith("PeerPropertiesResponse 1 1 cluster_name")
    assert second[0] == ("SaslHandshakeResponse 2 1 ['AMQPLAIN', 'PLAIN']",)
    assert third[0] == ("SaslAuthenticateResponse 3 1 None", "Tune 1048576 60")
    assert last[0] == ("OpenResponse 4 1 advertised_host advertised_port",)
    assert late == {}


def test_who_is_told_to_go_agrees_and_hears_the_end() -> None:
    rubbish = Command(0, b"\0\0\0\4\0\x63\0\1", "key 99")
    *_, closed, late = said(*log_in(0), *log_in(1), rubbish)
    assert (closed, late) == ({0: ("Close 1 13 unknown frame", "end")}, {})


def test_what_writers_say_belongs_to_the_command_behind_which_it_comes() -> None:
    encode = StreamCodec("client").encode
    stream = STREAMS[0]
    frames = [
        *(
            Create(9, stream, {}),
            DeclarePublisher(10, 1, "r", stream),
            Subscribe(11, 1, stream, 1, None, 9, None),
        ),
        publish(1, [(5, b"hello")]),
    ]
    *_, published, late = said(*log_in(0), *[Command(0, encode(frame), "") for frame in frames])
    assert published == {
        0: ("PublishConfirm 1 [5]", "Deliver 1 0: type 0 epoch 1 1 entries 1 records [b'hello']")
    }
    assert late == {}
