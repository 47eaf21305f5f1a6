"""The golden vectors of the notes, both ways and by both readers, and the table of what they have to hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import pytest

from conformance.decoders import Decoder
from conformance.decoders.blazingmq import BlazingDecoder
from conformance.decoders.nats import NatsDecoder
from conformance.decoders.rabbitmq_stream import StreamDecoder
from fakebrokers.blazingmq import frames as bmq
from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.codes import Encoding
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.session import Codec
from fakebrokers.moleculer.nats import codec as packets
from fakebrokers.moleculer.nats import frames as packet_frames
from fakebrokers.nats import frames as nats
from fakebrokers.nats.codec import NatsCodec
from fakebrokers.rabbitmq_stream import frames as rabbitmq
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from tests.blazingmq import layouts as bmq_layouts
from tests.blazingmq import layouts_control
from tests.conformance.decoders.alike import nothing_of, otherwise
from tests.examples import Limit, Side, Vector, Wanted, gaps
from tests.nats import layouts as nats_layouts
from tests.rabbitmq_stream import layouts as rabbitmq_layouts

SHORT = 120  #: bytes of a vector that is cut everywhere


class Suite(NamedTuple):
    """A wire.

    Attributes:
        vectors: All of them.
        codec, decoder: What reads what a side is sent.
        writer: The fake's codec that writes a vector.
        kinds: The classes of the frames.
        wanted, never: See `gaps`; which are left, and why.
        limited: What lies at limits.
        limited_codec, limited_decoder: Those that have them.
        lost_codec, lost_decoder: Codes of `Malformed` after which nothing is read.
        cut: Words in the names of vectors that are cut; where sizes come first, one of each frame will do.
    """

    vectors: Callable[[], Iterable[Vector]]
    codec: Callable[[Side], Codec]
    decoder: Callable[[Side], Decoder]
    writer: Callable[[Vector], Codec]
    kinds: tuple[type[Frame], ...]
    wanted: Wanted
    never: Mapping[str, str]
    limited: tuple[Limit, ...]
    limited_codec: Callable[[Side], Codec]
    limited_decoder: Callable[[Side], Decoder]
    lost_codec: tuple[str, ...]
    lost_decoder: tuple[str, ...]
    cut: tuple[str, ...] = (": usual 0",)


def _of_packets() -> Iterable[Vector]:
    """NATS under packets of Moleculer: the same bytes, and frames of its own."""
    own = {kind.__base__: kind for kind in packet_frames.KINDS}
    for each in nats_layouts.by_the_notes():
        fields = {name: getattr(each.frame, name) for name in each.frame.__struct_fields__}
        yield each._replace(frame=own.get(type(each.frame), type(each.frame))(**fields))


NATS = Suite(
    nats_layouts.by_the_notes,
    lambda side: NatsCodec(side, 0),
    NatsDecoder,
    lambda vector: NatsCodec(),
    tuple([kind for kind in nats.FRAMES if kind is not Malformed]),
    nats_layouts.WANTED,
    nats_layouts.NEVER,
    nats_layouts.LIMITED,
    lambda side: NatsCodec(side, nats_layouts.LARGEST),
    NatsDecoder,
    ("unknown", "parse", "payload", "control-line"),
    ("garbage",),
    cut=(": usual", ".payload", ".headers", ".options", ".text", ": tabs"),
)
SUITES = {
    "nats": NATS,
    "nats under moleculer": NATS._replace(
        vectors=_of_packets,
        codec=lambda side: packets.NatsCodec(side, 0),
        decoder=lambda side: NatsDecoder(side, packet_frames.KINDS),
        writer=lambda vector: packets.NatsCodec(),
        kinds=(),
        never={},
        limited=(),
        cut=(": usual",),
    ),
    "rabbitmq-stream": Suite(
        rabbitmq_layouts.by_the_notes,
        StreamCodec,
        StreamDecoder,
        lambda vector: StreamCodec("client" if vector.reader == "server" else "server"),
        tuple([kind for kind in rabbitmq.FRAMES if kind is not Malformed]),
        rabbitmq_layouts.WANTED,
        rabbitmq_layouts.NEVER,
        rabbitmq_layouts.LIMITED,
        lambda side: StreamCodec(side, rabbitmq_layouts.LARGEST),
        lambda side: StreamDecoder(side, rabbitmq_layouts.LARGEST),
        ("too-large",),
        ("too-large",),
    ),
    "blazingmq": Suite(
        lambda: [*bmq_layouts.by_the_notes(), *layouts_control.by_the_notes()],
        lambda side: BlazingCodec(),
        lambda side: BlazingDecoder(),
        lambda vector: BlazingCodec(Encoding(vector.wire[6] >> 5)),
        (*bmq.EVENT_FRAMES, *bmq.CONTROL_FRAMES),
        {**bmq_layouts.WANTED, **layouts_control.WANTED},
        bmq_layouts.NEVER,
        (*bmq_layouts.LIMITED, *layouts_control.limited()),
        lambda side: BlazingCodec(),
        lambda side: BlazingDecoder(),
        ("framing", "too-large"),
        ("framing", "too-large"),
    ),
}
ALL = pytest.mark.parametrize("name", SUITES)


@cache
def vectors(name: str) -> tuple[Vector, ...]:
    return tuple(SUITES[name].vectors())


@ALL
def test_every_field_is_met_by_all_that_may_be_wrong_with_it(name: str) -> None:
    suite = SUITES[name]
    found = gaps(suite.kinds, vectors(name), suite.wanted)
    assert sorted(found) == sorted(suite.never), "give it a vector in tests/<protocol>/layouts*.py"


@ALL
def test_they_are_read_and_written(name: str) -> None:
    suite = SUITES[name]
    problems: list[str] = []
    for each in vectors(name):
        wanted = [(each.frame, len(each.wire))]
        problems += otherwise(f"codec {each.name}", wanted, list(suite.codec(each.reader).feed(each.wire)))
        ours = list(suite.decoder(each.reader).feed(each.wire))
        problems += otherwise(f"decoder {each.name}", wanted, ours)
        if each.is_written:
            writer = suite.writer(each)
            problems += otherwise(f"written {each.name}", each.wire, writer.encode(each.frame))
            again = b"".join([writer.encode(frame) for frame, _ in ours])
            problems += otherwise(f"decoded and written {each.name}", each.wire, again)
    nothing_of(problems)


def cut(reader: Decoder, data: bytes, at: int, frames: list[tuple[Frame, int]]) -> list[str]:
    """What is wrong with how it is read in two pieces."""
    sizes = [sum(size for _, size in frames[:count]) for count in range(len(frames) + 1)]
    whole = max(count for count, size in enumerate(sizes) if size <= at)
    first = list(reader.feed(data[:at]))
    left = reader.partial
    second = list(reader.feed(data[at:]))
    found = (first, left, second, reader.partial)
    return otherwise(f"byte {at}", (frames[:whole], at - sizes[whole], frames[whole:], 0), found)


@ALL
def test_they_are_read_however_they_are_cut(name: str) -> None:
    """Each with another one after it, in two pieces; and all of them in single bytes."""
    suite = SUITES[name]
    problems: list[str] = []
    for side in ("client", "server"):
        short = [each for each in vectors(name) if each.reader == side and len(each.wire) <= SHORT]
        chosen = [each for each in short if any(word in each.name for word in suite.cut)]
        for one, other in pairwise([*chosen, chosen[0]]):
            data = one.wire + other.wire
            frames = [(one.frame, len(one.wire)), (other.frame, len(other.wire))]
            for who, reader in (("codec", suite.codec), ("decoder", suite.decoder)):
                for at in range(1, len(data)):
                    problems += [f"{who} {one.name}, {each}" for each in cut(reader(side), data, at, frames)]
        data = b"".join([each.wire for each in chosen])
        for who, reader in (("codec", suite.codec), ("decoder", suite.decoder)):
            single = reader(side)
            found = [each for at in range(len(data)) for each in single.feed(data[at : at + 1])]
            wanted = [(each.frame, len(each.wire)) for each in chosen]
            problems += otherwise(f"{who}, single bytes", wanted, found)
    nothing_of(problems)


def at_a_limit(
    who: str, reader: Decoder, limit: Limit, wanted: str, after: Vector, lost: tuple[str, ...]
) -> list[str]:
    """What is wrong with what is made of it, and of a frame after it."""
    found = [frame for frame, _ in reader.feed(limit.wire)]
    outcome = "waits" if not found else found[0].code if isinstance(found[0], Malformed) else "frame"
    problems = otherwise(f"{who} {limit.name}", wanted, outcome)
    holds_more = b"\n" in limit.wire.removesuffix(b"\r\n")  # a line of NATS, and what it says follows
    if outcome != "waits" and not holds_more:
        left = [frame for frame, _ in reader.feed(after.wire)]
        problems += otherwise(f"{who} after {limit.name}", [] if outcome in lost else [after.frame], left)
    return problems


@ALL
def test_limits(name: str) -> None:
    """What lies at them, what is after them, and whether the next frame is read."""
    suite = SUITES[name]
    problems: list[str] = []
    for limit in suite.limited:
        after = next(
            each for each in vectors(name) if each.reader == limit.reader and each.name.endswith(": usual 0")
        )
        for who, wanted, reader, lost in (
            ("codec", limit.codec, suite.limited_codec, suite.lost_codec),
            ("decoder", limit.decoder, suite.limited_decoder, suite.lost_decoder),
        ):
            problems += at_a_limit(who, reader(limit.reader), limit, wanted, after, lost)
    nothing_of(problems)


def test_the_table_finds_what_is_missing() -> None:
    """A frame, a field that is always the same, a value with the sign bit."""
    found = vectors("rabbitmq-stream")
    wanted = rabbitmq_layouts.WANTED

    def left(*names: str) -> list[str]:
        return gaps([rabbitmq.Credit], [each for each in found if not each.name.startswith(names)], wanted)

    assert left("nothing") == []
    assert left("Credit.credit: sign bit") == ["Credit.credit: the sign bit"]
    assert left("Credit.subscription_id: zero", "Credit.nothing") == ["Credit.subscription_id: zero"]
    usual = [each for each in found if each.name.startswith("MetadataUpdate: usual")]
    assert gaps([rabbitmq.MetadataUpdate, rabbitmq.Credit], usual, wanted) == [
        "MetadataUpdate.code: zero",
        "MetadataUpdate.code: the largest",
        "MetadataUpdate.code: the sign bit",
        "MetadataUpdate.stream: empty",
        "MetadataUpdate.stream: not ASCII",
        "MetadataUpdate.stream: not UTF-8",
        "MetadataUpdate.stream: of more than 255 bytes",
        "Credit: no vector",
    ]
