"""How the fake RabbitMQ is compared with a real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import msgspec

from fakebrokers.core.dialect import Command, Dialect, Known, Login, Speaker
from fakebrokers.core.frames import Frame, KeyType, unpack_keys
from fakebrokers.rabbitmq_stream import frames as f
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.dialect.author import STREAMS, Author
from fakebrokers.rabbitmq_stream.entries import messages

#: From here on correlation ids belong to questions.
QUESTIONS = 0x7FFF0000


_CLOSED = StreamCodec("client").encode(f.CloseResponse(1, Code.OK))


class StreamSpeaker(Speaker):
    """Asks each stream's writer for a sequence, and then the connection for nothing.

    Writers answer in order, so what they have to say about messages is then on its way to the connection.
    """

    def __init__(self) -> None:
        self.codec = StreamCodec("client")
        self._open = False
        encode = StreamCodec("client").encode
        asked = [f.QueryPublisherSequence(QUESTIONS + n, "?", name) for n, name in enumerate(STREAMS)]
        self._question = b"".join(map(encode, (*asked, f.Metadata(QUESTIONS + len(asked), ()))))

    def question(self) -> bytes:
        if self.closing:
            return _CLOSED
        return self._question if self._open else b""

    def is_answer(self, frame: Frame) -> bool:
        if isinstance(frame, f.OpenResponse) and frame.code == Code.OK:
            self._open = True
        self.closing = self.closing or isinstance(frame, f.Close)
        return isinstance(frame, f.MetadataResponse) and frame.correlation_id >= QUESTIONS


class StreamDialect(Dialect):
    """Streams, publishers, subscriptions, stored offsets, and rubbish."""

    rounds = 2
    patience = 5.0
    options: Mapping[str, Any] = {"switches": {"first_delivery_delay_s": 0.0}}
    known: Sequence[Known] = ()

    def speaker(self, login: Login) -> Speaker:
        return StreamSpeaker()

    def sequence(self, random: Random, login: Login) -> list[Command]:
        return Author(random, login).sequence()

    def joined(self, frames: Sequence[Frame]) -> Sequence[Frame]:
        """A writer that is busy puts several messages into one chunk, and confirms them together.

        Between its chunks and confirms there may be others of the kind.
        """
        found: list[Frame] = []
        for frame in frames:
            for at in range(len(found) - 1, -1, -1):
                both = _both(found[at], frame)
                if both is not None:
                    found[at] = both
                    break
                if not isinstance(found[at], _OF_WRITERS):
                    found.append(frame)
                    break
            else:
                found.append(frame)
        return found

    def brief(self, frame: Frame) -> str:
        match frame:
            case f.QueryPublisherSequenceResponse(id) if id >= QUESTIONS:
                return ""
            case f.Heartbeat():
                return ""
            case f.PublishConfirm(publisher, ids):
                return f"PublishConfirm {publisher} {sorted(unpack_keys(ids, KeyType.U64))}"
            case f.Deliver(subscription, chunk, committed):
                behind = "" if committed is None else f" committed {committed}"
                return f"Deliver {subscription} {_shown(chunk)}{behind}"
            case f.MetadataResponse(correlation, brokers, streams):
                return f"MetadataResponse {correlation} {[each.reference for each in brokers]} {streams}"
            case f.SaslHandshakeResponse(correlation, code, mechanisms):
                return f"SaslHandshakeResponse {correlation} {code} {sorted(mechanisms)}"
            case f.OpenResponse(correlation, code, properties) | f.PeerPropertiesResponse(
                correlation, code, properties
            ):
                return f"{type(frame).__name__} {correlation} {code} {' '.join(sorted(properties or ()))}"
        fields = msgspec.structs.asdict(frame)
        return f"{type(frame).__name__} {' '.join(map(str, fields.values()))}".strip()


#: What a writer makes a connection say.
_OF_WRITERS = (f.PublishConfirm, f.Deliver)


def _both(first: Frame, second: Frame) -> Frame | None:
    """Two frames that a server might as well have sent as one."""
    match first, second:
        case f.PublishConfirm(publisher, ids), f.PublishConfirm(other, more) if publisher == other:
            return f.PublishConfirm(publisher, ids + more)
        case f.Deliver(subscription, chunk, None), f.Deliver(other, more, None):
            if subscription == other and chunk.next_offset == more.first_offset and _can_join(chunk, more):
                return f.Deliver(subscription, _long(chunk, more))
    return None


def _can_join(first: Chunk, second: Chunk) -> bool:
    whole = all(each.crc_ok and each.length_ok for each in (first, second))
    return whole and first.chunk_type == second.chunk_type and first.epoch == second.epoch


def _long(first: Chunk, second: Chunk) -> Chunk:
    return Chunk.build(
        first.data + second.data,
        entries=first.entries + second.entries,
        records=first.records + second.records,
        first_offset=first.first_offset,
        timestamp_ms=second.timestamp_ms,
        epoch=first.epoch,
        chunk_type=first.chunk_type,
    )


def _shown(chunk: Chunk) -> str:
    odd = "" if chunk.crc_ok and chunk.length_ok else " damaged"
    size = f"{chunk.entries} entries {chunk.records} records"
    bodies = [body[:24] for _, body in messages(chunk.data)] if not odd else []
    return f"{chunk.first_offset}: type {chunk.chunk_type} epoch {chunk.epoch} {size}{odd} {bodies}"


STREAM = StreamDialect()
