"""What runs of the reference client show, with no fault, of what is wrong with the codec of a fake."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from typing import Any

from crc32c import crc32c

from conformance.decoders import Unreadable
from conformance.decoders.blazingmq.contents import content_in, subscriptions_in
from conformance.decoders.rabbitmq_stream.messages import (
    NONE,
    batch_bodies,
    counts_its_entries,
    is_intact,
    names_its_length,
    whole_entries,
)
from conformance.rules import judge
from conformance.run.acts.inside import opened
from conformance.run.case import Case
from conformance.run.inprocess import runner
from conformance.run.material import material_of
from conformance.run.specs import Spec
from fakebrokers.blazingmq.frames import Push, Put, PutMessage
from fakebrokers.core.frames import Frame, Malformed, kind_of
from fakebrokers.errors import WireError
from fakebrokers.rabbitmq_stream.frames import Deliver
from scenarios.moleculer.sweep.reading import packet_or
from tests.conformance.decoders.fake_contents import as_read_by_the_fake

DECODERS = "conformance.decoders"

#: Bases with contents that nobody can open, by protocol.
UNREADABLE = {"rabbitmq-stream": {"foreign-batches"}}


def odd_entries(frame: Any) -> Iterator[str]:
    """What a frame of RabbitMQ Stream holds that the decoder cannot open."""
    if isinstance(frame, Deliver):
        chunk = frame.chunk
        if not is_intact(chunk):
            yield "a chunk is damaged"
        if not (names_its_length(chunk) and counts_its_entries(chunk)):
            yield "a chunk counts what is not in it"
    data = frame.chunk.data if isinstance(frame, Deliver) else getattr(frame, "entries", b"")
    for entry in whole_entries(data):
        inner = data[entry.body : entry.end]
        has_other_size = entry.compression == NONE and entry.plain_size != len(inner)
        if entry.compression is not None and (has_other_size or batch_bodies(entry, inner) is None):
            yield f"a batch in {kind_of(frame)} cannot be opened"


def odd_packets(frame: Frame) -> Iterator[str]:
    """A packet of Moleculer in which the fake reads something else."""
    if packet_or(frame) != opened(frame):
        yield f"a packet in {kind_of(frame)} is read otherwise"


def odd_messages(frame: Frame) -> Iterator[str]:
    """What messages of BlazingMQ hold that the decoder cannot read, or the fake reads otherwise."""
    for message in frame.messages if isinstance(frame, Put | Push) else ():
        if isinstance(message, PutMessage) and crc32c(message.data) != message.crc:
            yield "a message has the checksum of others"
        try:
            subscriptions_in(message.options)
            content = content_in(
                message.data,
                has_properties=message.has_properties,
                schema_id=message.schema_id,
                compression=message.compression,
            )
            if content != as_read_by_the_fake(message):
                yield f"a message in {kind_of(frame)} is read otherwise"
        except (Unreadable, WireError) as problem:
            yield f"a message in {kind_of(frame)} cannot be read: {problem}"


ODD_CONTENTS: Mapping[str, Callable[[Frame], Iterator[str]]] = {
    "rabbitmq-stream": odd_entries,
    "moleculer": odd_packets,
    "blazingmq": odd_messages,
}


def read_otherwise(case: Case) -> Iterator[str]:
    """Where the judge's decoder reads something else than the fake's codec, or something malformed."""
    reading, protocol = case.traits.reading, case.spec.protocol
    readers = {}
    for row in case.rows:
        if row.what == "accept":
            socket = row.data or ""
            theirs = reading.codec_at("client", socket), reading.codec_at("server", socket)
            readers[row.connection] = theirs, reading.decoders(socket)
        elif row.what in ("in", "out"):
            side = row.what == "in"
            codec, decoder = (both[side] for both in readers[row.connection])
            found = list(decoder.feed(row.data))
            if not type(getattr(decoder, "chosen", decoder)).__module__.startswith(DECODERS):
                continue  # another wire than the judge's own decoders read
            for their, our in zip_longest(codec.feed(row.data), found):
                if our is not None and isinstance(our[0], Malformed):
                    yield our[0].problem
                elif our is None or their != our:
                    yield f"{kind_of((our or their)[0])} is read otherwise"
                elif case.spec.base not in UNREADABLE.get(protocol, ()):
                    yield from ODD_CONTENTS[protocol](our[0])


def trouble(protocol: str) -> Iterator[str]:
    """What is wrong, each with the base whose run shows it."""
    play = runner(protocol)
    for name in material_of(protocol).bases:
        case = play(Spec(protocol, name))
        if case.error:
            yield f"{name}: {case.error.splitlines()[-1]}"
        yield from (f"{name}: {problem}" for problem in read_otherwise(case))
        yield from (f"{name}: {finding.name}" for finding in judge(case))
