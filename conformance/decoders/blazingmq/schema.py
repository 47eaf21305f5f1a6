"""What control messages consist of (docs/protocols/blazingmq.md, 6.4), and how each type is read."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from conformance.decoders import Unreadable
from conformance.decoders.blazingmq.ber import Element, elements_of, items_of
from fakebrokers.blazingmq import frames as f

ABSENT = None  #: the default of what is nullable
ID_BYTES = 4  #: of an enumeration's number, at most
_DIGITS = re.compile(r"-?[0-9]{1,20}")


class ValueType(NamedTuple):
    """How a value is read from an element in BER, and from what JSON says."""

    from_ber: Callable[[Element], Any]
    from_json: Callable[[Any], Any]


class SchemaField(NamedTuple):
    """An element of a sequence.

    Attributes:
        number, name: In BER and in JSON.
        field: Of the class.
        type: How it is read.
        default: What it is where it is missing.
    """

    number: int
    name: str
    field: str
    type: ValueType
    default: Any


Fields = tuple[SchemaField, ...]


def _content(element: Element) -> bytes:
    if not element.is_primitive:
        raise Unreadable(f"expected a primitive element, came tag {element.tag:#x}")
    return element.content


def _number_in(element: Element, size: int, *, is_signed: bool = True) -> int:
    """Two's complement, of at most as many bytes as the type has; what is negative by mistake wraps around.

    Of no bytes it is 0 at the end of a sequence, and -1 before another element.
    """
    content = _content(element)
    if not is_signed and len(content) == size + 1 and content[0] == 0:
        content = content[1:]
    if len(content) > size:
        raise Unreadable(f"expected a number of at most {size} bytes, came {len(content)}")
    number = int.from_bytes(content, signed=True) if content else -(not element.is_last)
    return number if is_signed else number % (1 << 8 * size)


def _whole_number(value: Any, low: int, high: int) -> int:
    """A number in JSON, in quotes or with a fraction of zero, too."""
    if (isinstance(value, str) and _DIGITS.fullmatch(value)) or (isinstance(value, float) and value % 1 == 0):
        value = int(value)
    if type(value) is not int or not low <= value <= high:
        raise Unreadable(f"expected a whole number from {low} to {high}, came {value!r:.40}")
    return value


def _number(size: int, *, is_signed: bool = True) -> ValueType:
    bits = 8 * size
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    return ValueType(
        lambda element: _number_in(element, size, is_signed=is_signed),
        lambda value: _whole_number(value, low, high),
    )


I32, I64 = _number(4), _number(8)
U32, U64 = _number(4, is_signed=False), _number(8, is_signed=False)


def _flag_in(element: Element) -> bool:
    content = _content(element)
    if len(content) != 1:
        raise Unreadable(f"expected a byte for true or false, came {len(content)}")
    return content != b"\0"


def _true_or_false(value: Any) -> bool:
    found = {"true": True, "false": False}.get(value) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise Unreadable(f"expected true or false, came {value!r:.40}")
    return found


def _text_in(element: Element) -> str:
    return _content(element).decode("utf-8", "surrogateescape")


def _text(value: Any) -> str:
    """Halves of surrogate pairs are what their bytes would be, were they allowed in UTF-8."""
    if not isinstance(value, str):
        raise Unreadable(f"expected a string, came {value!r:.40}")
    return value.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")


def _base64(value: Any) -> bytes:
    try:
        return base64.b64decode(_text(value), validate=True)
    except (binascii.Error, ValueError):
        raise Unreadable("expected base64") from None


FLAG = ValueType(_flag_in, _true_or_false)
TEXT = ValueType(_text_in, _text)
BLOB = ValueType(_content, _base64)


def _enumeration(names: Mapping[str, int]) -> ValueType:
    """A number of its ids in BER, one of its names, or such a number, in JSON."""

    def in_ber(element: Element) -> int:
        number = _number_in(element, ID_BYTES)
        if number not in names.values():
            raise Unreadable(f"expected one of {', '.join(names)}, came {number}")
        return number

    def in_json(value: Any) -> int:
        if type(value) is int and value in names.values():
            return value
        if not isinstance(value, str) or value not in names:
            raise Unreadable(f"expected one of {', '.join(names)}, came {value!r:.40}")
        return names[value]

    return ValueType(in_ber, in_json)


CATEGORIES = {
    "E_SUCCESS": 0,
    "E_UNKNOWN": -1,
    "E_TIMEOUT": -2,
    "E_NOT_CONNECTED": -3,
    "E_CANCELED": -4,
    "E_NOT_SUPPORTED": -5,
    "E_REFUSED": -6,
    "E_INVALID_ARGUMENT": -7,
    "E_NOT_READY": -8,
}
CATEGORY = _enumeration(CATEGORIES)
#: The same in the status that answers a request, which may have the number of an unknown category in BER,
#: however long it is: that the request failed is said all the same.
ANY_CATEGORY = ValueType(
    lambda element: _number_in(element, max(ID_BYTES, len(element.content))), CATEGORY.from_json
)
CLIENT_TYPE = _enumeration({"E_UNKNOWN": 0, "E_TCPCLIENT": 1, "E_TCPBROKER": 2, "E_TCPADMIN": 3})
LANGUAGE = _enumeration({"E_UNKNOWN": 0, "E_CPP": 1, "E_JAVA": 2})
EXPRESSION_VERSION = _enumeration({"E_UNDEFINED": 0, "E_VERSION_1": 1})


def values_in_ber(fields: Fields, parent: Element) -> dict[str, Any]:
    """The values of a sequence by the names of the class; unknown elements are skipped.

    Of what is there twice the last counts, and each has to be readable.
    """
    by_number = {each.number: each for each in fields}
    found = {each.field: each.default for each in fields}
    for element in elements_of(parent):
        if element.number in by_number:
            field = by_number[element.number]
            found[field.field] = field.type.from_ber(element)
    return found


def values_in_json(fields: Fields, value: Any) -> dict[str, Any]:
    """The same of an object."""
    if not isinstance(value, dict):
        raise Unreadable(f"expected an object, came {value!r:.40}")
    return {
        each.field: each.type.from_json(value[each.name]) if each.name in value else each.default
        for each in fields
    }


def _sequence(kind: type[Any], fields: Fields) -> ValueType:
    return ValueType(
        lambda element: kind(**values_in_ber(fields, element)),
        lambda value: kind(**values_in_json(fields, value)),
    )


def _array(item: ValueType) -> ValueType:
    def in_json(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise Unreadable(f"expected an array, came {value!r:.40}")
        return tuple(item.from_json(each) for each in value)

    return ValueType(lambda element: tuple(item.from_ber(each) for each in items_of(element)), in_json)


E = SchemaField
LOWEST_PRIORITY = -(2**31)
DEFAULT_APP = "__default"

STATUS_FIELDS: Fields = (
    E(0, "category", "category", CATEGORY, 0),
    E(1, "code", "code", I32, 0),
    E(2, "message", "message", TEXT, ""),
)
STATUS = _sequence(f.Status, STATUS_FIELDS)
SUB_QUEUE_ID = _sequence(
    f.SubQueueId, (E(0, "subId", "sub_id", U32, 0), E(1, "appId", "app_id", TEXT, DEFAULT_APP))
)
HANDLE_FIELDS: Fields = (
    E(0, "uri", "uri", TEXT, ""),
    E(1, "qId", "q_id", U32, 0),
    E(2, "subIdInfo", "sub_id_info", SUB_QUEUE_ID, ABSENT),
    E(3, "flags", "flags", U64, 0),
    E(4, "readCount", "read_count", I32, 0),
    E(5, "writeCount", "write_count", I32, 0),
    E(6, "adminCount", "admin_count", I32, 0),
)
HANDLE_PARAMETERS = _sequence(f.HandleParameters, HANDLE_FIELDS)
NO_HANDLE = f.HandleParameters(**{each.field: each.default for each in HANDLE_FIELDS})
HANDLE = E(0, "handleParameters", "handle_parameters", HANDLE_PARAMETERS, NO_HANDLE)
OPEN_QUEUE_REQUEST = _sequence(f.OpenQueueRequest, (HANDLE,))
ROUTING = _sequence(f.RoutingConfiguration, (E(0, "flags", "flags", U64, 0),))
LIMITS: Fields = (
    E(0, "maxUnconfirmedMessages", "max_unconfirmed_messages", I64, 0),
    E(1, "maxUnconfirmedBytes", "max_unconfirmed_bytes", I64, 0),
    E(2, "consumerPriority", "consumer_priority", I32, LOWEST_PRIORITY),
    E(3, "consumerPriorityCount", "consumer_priority_count", I32, 0),
)
QUEUE_STREAM_FIELDS: Fields = (
    E(0, "subIdInfo", "sub_id_info", SUB_QUEUE_ID, ABSENT),
    *(each._replace(number=each.number + 1) for each in LIMITS),
)
QUEUE_STREAM = _sequence(f.QueueStreamParameters, QUEUE_STREAM_FIELDS)
EXPRESSION_FIELDS: Fields = (
    E(0, "version", "version", EXPRESSION_VERSION, 0),
    E(1, "text", "text", TEXT, ""),
)
EXPRESSION = _sequence(f.Expression, EXPRESSION_FIELDS)
SUBSCRIPTION = _sequence(
    f.Subscription,
    (
        E(0, "sId", "s_id", U32, 0),
        E(1, "expression", "expression", EXPRESSION, f.Expression(version=0, text="")),
        E(2, "consumers", "consumers", _array(_sequence(f.ConsumerInfo, LIMITS)), ()),
    ),
)
STREAM_FIELDS: Fields = (
    E(0, "appId", "app_id", TEXT, DEFAULT_APP),
    E(1, "subscriptions", "subscriptions", _array(SUBSCRIPTION), ()),
)
STREAM = _sequence(f.StreamParameters, STREAM_FIELDS)
NO_STREAM = f.StreamParameters(app_id=DEFAULT_APP, subscriptions=())
NO_QUEUE_STREAM = f.QueueStreamParameters(**{each.field: each.default for each in QUEUE_STREAM_FIELDS})
GUID_INFO = _sequence(
    f.GuidInfo,
    (
        E(0, "clientId", "client_id", TEXT, ""),
        E(1, "nanoSecondsFromEpoch", "nano_seconds_from_epoch", I64, 0),
    ),
)
IDENTITY_FIELDS: Fields = (
    E(0, "protocolVersion", "protocol_version", I32, 0),
    E(1, "sdkVersion", "sdk_version", I32, 999999),
    E(2, "clientType", "client_type", CLIENT_TYPE, 0),
    E(3, "processName", "process_name", TEXT, ""),
    E(4, "pid", "pid", I32, 0),
    E(5, "sessionId", "session_id", I32, 1),
    E(6, "hostName", "host_name", TEXT, ""),
    E(7, "features", "features", TEXT, ""),
    E(8, "clusterName", "cluster_name", TEXT, ""),
    E(9, "clusterNodeId", "cluster_node_id", I32, -1),
    E(10, "sdkLanguage", "sdk_language", LANGUAGE, 1),
    E(11, "guidInfo", "guid_info", GUID_INFO, ABSENT),
    E(12, "userAgent", "user_agent", TEXT, ABSENT),
)
IDENTITY = _sequence(f.Identity, IDENTITY_FIELDS)
#: An answer without an identity says as much as one of version 1 and no more.
NO_IDENTITY = f.Identity(**{each.field: each.default for each in IDENTITY_FIELDS} | {"protocol_version": 1})
NO_STATUS = f.Status(category=0, code=0, message="")


def _stream_fields(kind: ValueType, default: Any) -> Fields:
    return (E(0, "qId", "q_id", U32, 0), E(1, "streamParameters", "stream_parameters", kind, default))


CONFIGURE_QUEUE_STREAM = _stream_fields(QUEUE_STREAM, NO_QUEUE_STREAM)
CONFIGURE_STREAM = _stream_fields(STREAM, NO_STREAM)
QUEUE_STREAM_REQUEST = _sequence(f.ConfigureQueueStreamRequest, CONFIGURE_QUEUE_STREAM)
STREAM_REQUEST = _sequence(f.ConfigureStreamRequest, CONFIGURE_STREAM)
