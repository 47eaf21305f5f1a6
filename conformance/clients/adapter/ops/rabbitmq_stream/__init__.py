"""RabbitMQ Stream: streams, offsets and named publishers."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from msgspec import UNSET, UnsetType

from conformance.clients.adapter.messages import Message
from conformance.clients.adapter.ops import messaging, session
from conformance.clients.adapter.ops.define import Arguments, Incoming, Op, Outgoing, Profile, ops_in
from conformance.clients.adapter.ops.values import Integer64, Json, is_integer64


class ConnectOptions(session.ConnectOptions, frozen=True):
    """What is negotiated when a connection opens, besides."""

    vhost: str | UnsetType = UNSET
    frame_max: int | UnsetType = UNSET
    heartbeat_s: float | UnsetType = UNSET
    mechanism: str | UnsetType = UNSET


class Connect(session.Connect, frozen=True):
    """With options of its own."""

    options: ConnectOptions | UnsetType = UNSET


class Routing(Outgoing, frozen=True):
    """How a message finds its partition of a super stream.

    Attributes:
        by: `hash` of the key, or the `key` itself, for which the server knows the partitions.
    """

    by: Literal["hash", "key"]
    key: str


class Publish(messaging.Publish, frozen=True):
    """By a publisher with a name.

    Attributes:
        name: Reference of the publisher; the adapter declares one for each target and name, as a user has to.
        routing: The target is a super stream.
        filtered: With the [filter value](#filter-values) of the body.
    """

    name: str | UnsetType = UNSET
    routing: Routing | UnsetType = UNSET
    filtered: bool | UnsetType = UNSET


class PublishMany(messaging.PublishMany, frozen=True):
    """By a publisher with a name, in a frame of one kind or the other.

    Attributes:
        name: Reference of the publisher.
        subentry: One sub-entry batch.
    """

    name: str | UnsetType = UNSET
    subentry: Literal["none", "gzip"] | UnsetType = UNSET


class Offset(Outgoing, frozen=True):
    """Where to begin in a stream; value only for offset and timestamp (ms since the epoch)."""

    schema: ClassVar[Json] = {
        "if": {"properties": {"type": {"enum": ["offset", "timestamp"]}}},
        "then": {"required": ["value"]},
    }

    type: Literal["first", "last", "next", "offset", "timestamp"]
    value: Integer64 | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.type in ("offset", "timestamp") and self.value is UNSET:
            raise ValueError(f"Object missing required field `value` for {self.type}")


class Filter(Outgoing, frozen=True):
    """Which messages are wanted, by their [filter values](#filter-values).

    Attributes:
        unfiltered: Those without a value, too.
    """

    values: list[str]
    unfiltered: bool | UnsetType = UNSET


class Tracking(Outgoing, frozen=True):
    """How the offset of a consumer with a name is stored, of one stream.

    Attributes:
        by: `library`: it stores the offsets of what was handled; `application`: only what is asked of it is
            stored, and what else the library does for that is left as it is.
        every: The library does so after so many messages, and at the end.
    """

    by: Literal["library", "application"]
    every: int | UnsetType = UNSET


class SubscribeOptions(messaging.SubscribeOptions, frozen=True):
    """Where to begin, and as whom.

    Attributes:
        offset: Without it the library's default, or `first`.
        name: Reference of the consumer.
        super_stream: The target is a super stream: all its partitions are read; a message has the name of its
            partition as `partition` in its meta, if the library shows it.
    """

    offset: Offset | UnsetType = UNSET
    credit: int | UnsetType = UNSET
    name: str | UnsetType = UNSET
    properties: dict[str, Any] | UnsetType = UNSET
    super_stream: bool | UnsetType = UNSET
    filter: Filter | UnsetType = UNSET
    tracking: Tracking | UnsetType = UNSET


class Subscribe(messaging.Subscribe, frozen=True):
    """With options of its own."""

    options: SubscribeOptions | UnsetType = UNSET


class Create(Arguments, frozen=True):
    """Create a stream."""

    spec = Op("rmqs.create", needed_by=("admin",))

    session: str
    target: str
    arguments: dict[str, Any] | UnsetType = UNSET


class Delete(Arguments, frozen=True):
    """Delete a stream."""

    spec = Op("rmqs.delete", needed_by=("admin",))

    session: str
    target: str


class CreateSuperStream(Arguments, frozen=True):
    """Create a super stream; a partition has its name, a `-` and the key that leads to it.

    Attributes:
        partitions: How many; their keys are `0`, `1` and so on.
        keys: Instead of that, the key of each.
    """

    spec = Op("rmqs.create_super_stream")

    session: str
    target: str
    partitions: int | UnsetType = UNSET
    keys: list[str] | UnsetType = UNSET
    arguments: dict[str, Any] | UnsetType = UNSET


class DeleteSuperStream(Arguments, frozen=True):
    """Delete a super stream and its partitions."""

    spec = Op("rmqs.delete_super_stream")

    session: str
    target: str


class StreamStatsResult(Incoming, frozen=True):
    """Numbers of a stream; null where there is nothing yet.

    Attributes:
        first: The first offset.
        committed: The first offset of the last chunk that a majority has.
    """

    first: Integer64 | None
    committed: Integer64 | None


class StreamStats(Arguments, frozen=True):
    """Ask where a stream begins and how far it was stored."""

    spec = Op("rmqs.stream_stats", StreamStatsResult)

    session: str
    target: str


class Stream(Incoming, frozen=True):
    """A stream; what is left out the library does not show.

    Attributes:
        leader: `host:port`.
    """

    name: str
    exists: bool | None = None
    code: int | None = None
    leader: str | None = None
    replicas: list[str] | None = None


class MetadataResult(Incoming, frozen=True):
    """One for each target."""

    streams: list[Stream]


class Metadata(Arguments, frozen=True):
    """Ask which streams there are, and where."""

    spec = Op("rmqs.metadata", MetadataResult, ("admin",))

    session: str
    targets: list[str]


class StreamsResult(Incoming, frozen=True):
    """Names of streams, in the order of the server."""

    streams: list[str]


class Partitions(Arguments, frozen=True):
    """Ask for the partitions of a super stream."""

    spec = Op("rmqs.partitions", StreamsResult)

    session: str
    target: str


class Route(Arguments, frozen=True):
    """Ask for the partitions that a key of a super stream leads to."""

    spec = Op("rmqs.route", StreamsResult)

    session: str
    target: str
    key: str


class StoreOffset(Arguments, frozen=True):
    """Store the offset of a consumer."""

    spec = Op("rmqs.store_offset")

    session: str
    target: str
    name: str
    offset: Integer64


class OffsetResult(Incoming, frozen=True):
    """The stored offset."""

    offset: Integer64

    def __post_init__(self) -> None:
        _check_integer64("offset", self.offset)


class QueryOffset(Arguments, frozen=True):
    """Ask for the stored offset of a consumer."""

    spec = Op("rmqs.query_offset", OffsetResult)

    session: str
    target: str
    name: str


class SequenceResult(Incoming, frozen=True):
    """The last publishing id."""

    sequence: Integer64

    def __post_init__(self) -> None:
        _check_integer64("sequence", self.sequence)


class QuerySequence(Arguments, frozen=True):
    """Ask for the last publishing id of a named publisher."""

    spec = Op("rmqs.query_sequence", SequenceResult)

    session: str
    target: str
    name: str


class DeclarePublisher(Arguments, frozen=True):
    """Declare a publisher."""

    spec = Op("rmqs.declare_publisher")

    session: str
    target: str
    name: str | UnsetType = UNSET


class DeletePublisher(Arguments, frozen=True):
    """Delete a publisher."""

    spec = Op("rmqs.delete_publisher")

    session: str
    target: str
    name: str | UnsetType = UNSET


class Credit(Arguments, frozen=True):
    """Give a subscription more credit."""

    spec = Op("rmqs.credit")

    sub: str
    credit: int


def _check_integer64(name: str, value: int | str) -> None:
    if not is_integer64(value):
        raise ValueError(f"Expected an integer of 64 bits as {name}, got {value!r}")


def _message_rule(message: Message) -> str:
    if message.position is None or is_integer64(message.position):
        return ""
    return f"position: expected the offset, an integer of 64 bits, got {message.position!r}"


PROFILE = Profile(
    protocol="rabbitmq-stream",
    roles=("publisher", "consumer", "admin"),
    ops=ops_in(globals()),
    capabilities={
        "sac": "single active consumers",
        "subentry": "sub-entry batches, plain and gzip",
        "crc": "checksums of deliveries are checked",
        "sasl.challenge": "several rounds of SASL",
        "lazy_subscribe": "`subscribe` returns before the broker has answered; a refusal comes as an `error` "
        "event with `sub`",
        "offset_without_consumer": "`rmqs.store_offset` works without a subscription of that name",
        "super_streams": "`routing` of `publish`, `super_stream` of `subscribe`",
        "tracking": "the library can store the offsets of a consumer by itself: `tracking` of `subscribe`",
        "filters": "`filtered` of `publish`, `filter` of `subscribe`",
    },
    formats=("raw", "amqp"),
    message_rule=_message_rule,
)
