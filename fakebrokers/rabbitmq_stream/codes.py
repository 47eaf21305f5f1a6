"""Numbers of the protocol that are not part of any one frame (docs/protocols/rabbitmq-stream.md, 4)."""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """Response codes."""

    OK = 1
    STREAM_DOES_NOT_EXIST = 2
    SUBSCRIPTION_ID_ALREADY_EXISTS = 3
    SUBSCRIPTION_ID_DOES_NOT_EXIST = 4
    STREAM_ALREADY_EXISTS = 5
    STREAM_NOT_AVAILABLE = 6
    SASL_MECHANISM_NOT_SUPPORTED = 7
    AUTHENTICATION_FAILURE = 8
    SASL_ERROR = 9
    SASL_CHALLENGE = 10
    SASL_AUTHENTICATION_FAILURE_LOOPBACK = 11
    VIRTUAL_HOST_ACCESS_FAILURE = 12
    UNKNOWN_FRAME = 13
    FRAME_TOO_LARGE = 14
    INTERNAL_ERROR = 15
    ACCESS_REFUSED = 16
    PRECONDITION_FAILED = 17
    PUBLISHER_DOES_NOT_EXIST = 18
    NO_OFFSET = 19
    SASL_CANNOT_CHANGE_MECHANISM = 20
    SASL_CANNOT_CHANGE_USERNAME = 21


class OffsetType(IntEnum):
    """Where a subscription starts; only `OFFSET` and `TIMESTAMP` carry a value."""

    NONE = 0  #: only in the answer to ConsumerUpdate: as the Subscribe said
    FIRST = 1
    LAST = 2
    NEXT = 3
    OFFSET = 4  #: u64
    TIMESTAMP = 5  #: i64, milliseconds since the Unix epoch


class Compression(IntEnum):
    """How the data of a sub-entry batch is packed."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


NO_LEADER = 0xFFFF  #: leader reference of a stream that has none, in MetadataResponse
