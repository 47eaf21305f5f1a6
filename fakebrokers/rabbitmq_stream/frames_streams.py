"""Frames about streams and super streams (docs/protocols/rabbitmq-stream.md, 3 and 9)."""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from fakebrokers.core.frames import FrameSpec, KeyType, Role
from fakebrokers.rabbitmq_stream.frames_base import Correlated, Request, Response, Sender, StreamFrame
from fakebrokers.rabbitmq_stream.wiretypes import (
    U16,
    Brokers,
    CountedTexts,
    Map,
    ReplyText,
    ReplyTexts,
    Stats,
    Streams,
    Text,
    Texts,
)


class Create(Request, frozen=True):
    """Creates a stream."""

    KEY: ClassVar = 0x000D
    stream: Text
    arguments: Map


class CreateResponse(Response, frozen=True):
    """5: it exists with the same arguments; 17: with others, or a bad name or argument."""

    KEY: ClassVar = 0x800D


class Delete(Request, frozen=True):
    """Deletes a stream."""

    KEY: ClassVar = 0x000E
    stream: Text


class DeleteResponse(Response, frozen=True):
    """2: no such stream. The MetadataUpdate of the connection that deletes comes after it."""

    KEY: ClassVar = 0x800E


class Metadata(Request, frozen=True):
    """Asks for the nodes of streams."""

    KEY: ClassVar = 0x000F
    streams: Texts


class MetadataResponse(Correlated, frozen=True):
    """Nodes, and the streams on them; each stream has its own code, the frame has none."""

    spec = FrameSpec(Role.RESPONSE, key="correlation_id")
    KEY: ClassVar = 0x800F
    SENDER: ClassVar[Sender] = "server"
    brokers: Brokers
    streams: Streams


class MetadataUpdate(StreamFrame, frozen=True):
    """A stream is gone from this connection; code 6."""

    spec = FrameSpec(Role.EVENT, key="stream", keys=KeyType.TEXT, status="code")
    KEY: ClassVar = 0x0010
    SENDER: ClassVar[Sender] = "server"
    code: U16
    stream: ReplyText


class StreamStats(Request, frozen=True):
    """Asks for numbers about a stream."""

    KEY: ClassVar = 0x001C
    stream: Text


class StreamStatsResponse(Response, frozen=True):
    """Numbers by name; -1: nothing yet."""

    KEY: ClassVar = 0x801C
    stats: Stats = field(default_factory=dict)


class Route(Request, frozen=True):
    """Asks for the streams that a routing key of a super stream leads to."""

    KEY: ClassVar = 0x0018
    routing_key: Text
    super_stream: Text


class RouteResponse(Response, frozen=True):
    """Streams bound with exactly this key; none is code 1 and an empty list. 2: no such super stream."""

    KEY: ClassVar = 0x8018
    streams: ReplyTexts = ()


class Partitions(Request, frozen=True):
    """Asks for the partitions of a super stream."""

    KEY: ClassVar = 0x0019
    super_stream: Text


class PartitionsResponse(Response, frozen=True):
    """The partitions, in order. 2: no such super stream."""

    KEY: ClassVar = 0x8019
    streams: ReplyTexts = ()


class CreateSuperStream(Request, frozen=True):
    """Creates a super stream, its partitions and their bindings."""

    KEY: ClassVar = 0x001D
    name: Text
    partitions: CountedTexts
    binding_keys: CountedTexts
    arguments: Map


class CreateSuperStreamResponse(Response, frozen=True):
    """5: it, or a partition, exists; 17: bad names or differing counts."""

    KEY: ClassVar = 0x801D


class DeleteSuperStream(Request, frozen=True):
    """Deletes a super stream and its partitions."""

    KEY: ClassVar = 0x001E
    name: Text


class DeleteSuperStreamResponse(Response, frozen=True):
    """2: no such super stream."""

    KEY: ClassVar = 0x801E
