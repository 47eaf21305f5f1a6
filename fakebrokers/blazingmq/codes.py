"""The numbers of the protocol, in its own words (docs/protocols/blazingmq.md, 1, 4 and 6.4)."""

from __future__ import annotations

from enum import IntEnum, IntFlag


class EventType(IntEnum):
    """What an event is: the low six bits of the fifth byte of its header."""

    CONTROL = 1
    PUT = 2
    CONFIRM = 3
    PUSH = 4
    ACK = 5
    HEARTBEAT_REQ = 11
    HEARTBEAT_RSP = 12
    REJECT = 13
    AUTHENTICATION = 15


class Encoding(IntEnum):
    """How control messages are written: the top three bits of the seventh byte of an event."""

    BER = 0
    JSON = 1


class Category(IntEnum):
    """What a status says. Clients look at this only; code and text are for people."""

    E_SUCCESS = 0
    E_UNKNOWN = -1
    E_TIMEOUT = -2
    E_NOT_CONNECTED = -3
    E_CANCELED = -4
    E_NOT_SUPPORTED = -5
    E_REFUSED = -6
    E_INVALID_ARGUMENT = -7
    E_NOT_READY = -8


class AckStatus(IntEnum):
    """What a broker answers to a message, on the wire. Clients read every other number as unknown."""

    SUCCESS = 0
    LIMIT_MESSAGES = 1
    LIMIT_BYTES = 2
    UNKNOWN = 5  #: and refused, invalid argument ...
    STORAGE_FAILURE = 6
    NOT_READY = 7


class ClientType(IntEnum):
    """Who connects."""

    E_UNKNOWN = 0
    E_TCPCLIENT = 1
    E_TCPBROKER = 2
    E_TCPADMIN = 3


class Language(IntEnum):
    """What an SDK is written in."""

    E_UNKNOWN = 0
    E_CPP = 1
    E_JAVA = 2


class ExpressionVersion(IntEnum):
    """Whether a subscription has an expression."""

    E_UNDEFINED = 0
    E_VERSION_1 = 1


class QueueFlag(IntFlag):
    """What a handle is for."""

    ADMIN = 1
    READ = 2
    WRITE = 4
    ACK = 8


class RoutingFlag(IntFlag):
    """How a queue delivers, in the answer to openQueue."""

    AT_MOST_ONCE = 1
    DELIVER_CONSUMER_PRIORITY = 2
    DELIVER_ALL = 4
    HAS_MULTIPLE_SUB_STREAMS = 8


class PutFlag(IntFlag):
    """Bits of a PUT message."""

    ACK_REQUESTED = 1
    MESSAGE_PROPERTIES = 2


class PushFlag(IntFlag):
    """Bits of a PUSH message."""

    IMPLICIT_PAYLOAD = 1
    MESSAGE_PROPERTIES = 2
    OUT_OF_ORDER = 4


class Compression(IntEnum):
    """How the payload is packed; ZLIB is RFC 1950."""

    NONE = 0
    ZLIB = 1


#: Name of the only stream of a queue that is no fanout.
DEFAULT_APP = "__default"

#: Priority of a consumer that takes nothing.
NO_PRIORITY = -(2**31)

#: Numbers of queues from here on are the broker's own.
RESERVED_QUEUE_ID = 2**32 - 10

UNSET_GUID = bytes(16)
