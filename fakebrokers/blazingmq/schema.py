"""The schema of control messages (docs/protocols/blazingmq.md, 6.4), once for BER and JSON.

A class is a sequence: its fields stand in the order of their BER ids, from 0 without gaps, and the schema's
names are theirs in camel case. `shape_of` makes a table of it; the codecs know nothing but such tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import cache
from types import NoneType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from fakebrokers.blazingmq import codes


class Form(Enum):
    """What a value looks like on the wire."""

    INTEGER = "a whole number"
    BOOLEAN = "true or false"
    ENUMERATION = "a name"
    TEXT = "text"
    BYTES = "bytes"
    SEQUENCE = "a sequence"
    ARRAY = "an array"


@dataclass(frozen=True, eq=False)
class Simple:
    """The form of a value without parts.

    Attributes:
        form: One of the first five.
        low, high: Smallest and largest number.
        names: Of an enumeration, by number.
    """

    form: Form
    low: int = 0
    high: int = 0
    names: Mapping[int, str] = field(default_factory=dict)


def _enumeration(kind: type[IntEnum]) -> Simple:
    return Simple(Form.ENUMERATION, min(kind), max(kind), {int(each): each.name for each in kind})


I32 = Annotated[int, Simple(Form.INTEGER, -(2**31), 2**31 - 1)]
U32 = Annotated[int, Simple(Form.INTEGER, 0, 2**32 - 1)]
I64 = Annotated[int, Simple(Form.INTEGER, -(2**63), 2**63 - 1)]
U64 = Annotated[int, Simple(Form.INTEGER, 0, 2**64 - 1)]
Flag = Annotated[bool, Simple(Form.BOOLEAN)]
Text = Annotated[str, Simple(Form.TEXT)]
Blob = Annotated[bytes, Simple(Form.BYTES)]
CategoryCode = Annotated[int, _enumeration(codes.Category)]
ClientTypeCode = Annotated[int, _enumeration(codes.ClientType)]
LanguageCode = Annotated[int, _enumeration(codes.Language)]
ExpressionVersionCode = Annotated[int, _enumeration(codes.ExpressionVersion)]


class Sequence(msgspec.Struct, frozen=True, gc=False):
    """Base of what control messages are made of."""


class Status(Sequence, frozen=True):
    """An outcome; `category` is one of `codes.Category`."""

    category: CategoryCode
    code: I32
    message: Text = ""


class SubQueueId(Sequence, frozen=True):
    """A reader's stream of a fanout queue, and the number that the client gave it."""

    sub_id: U32 = 0
    app_id: Text = codes.DEFAULT_APP


class HandleParameters(Sequence, frozen=True):
    """What a queue is opened for; also what is closed of it."""

    uri: Text
    q_id: U32
    sub_id_info: SubQueueId | None = None
    flags: U64 = 0
    read_count: I32 = 0
    write_count: I32 = 0
    admin_count: I32 = 0


class OpenQueueRequest(Sequence, frozen=True):
    """What openQueue asks for, as its answer repeats it."""

    handle_parameters: HandleParameters


class RoutingConfiguration(Sequence, frozen=True):
    """How the queue delivers; see `codes.RoutingFlag`."""

    flags: U64


class QueueStreamParameters(Sequence, frozen=True):
    """The one consumer of a stream, in the older configuration."""

    sub_id_info: SubQueueId | None = None
    max_unconfirmed_messages: I64 = 0
    max_unconfirmed_bytes: I64 = 0
    consumer_priority: I32 = codes.NO_PRIORITY
    consumer_priority_count: I32 = 0


class Expression(Sequence, frozen=True):
    """Which messages a subscription takes."""

    version: ExpressionVersionCode = codes.ExpressionVersion.E_UNDEFINED
    text: Text = ""


class ConsumerInfo(Sequence, frozen=True):
    """How much a subscription takes, and before whom."""

    max_unconfirmed_messages: I64 = 0
    max_unconfirmed_bytes: I64 = 0
    consumer_priority: I32 = codes.NO_PRIORITY
    consumer_priority_count: I32 = 0


class Subscription(Sequence, frozen=True):
    """One subscription of a stream; deliveries carry its `s_id`."""

    s_id: U32
    expression: Expression = Expression()
    consumers: tuple[ConsumerInfo, ...] = ()


class StreamParameters(Sequence, frozen=True):
    """All subscriptions of a stream; none at all: it takes nothing."""

    app_id: Text = codes.DEFAULT_APP
    subscriptions: tuple[Subscription, ...] = ()


class ConfigureQueueStreamRequest(Sequence, frozen=True):
    """What configureQueueStream asks for, as its answer repeats it."""

    q_id: U32
    stream_parameters: QueueStreamParameters


class ConfigureStreamRequest(Sequence, frozen=True):
    """What configureStream asks for, as its answer repeats it."""

    q_id: U32
    stream_parameters: StreamParameters


class GuidInfo(Sequence, frozen=True):
    """Clients that make the GUIDs of their messages themselves say how."""

    client_id: Text = ""
    nano_seconds_from_epoch: I64 = 0


class Identity(Sequence, frozen=True):
    """Who a client or a broker is."""

    protocol_version: I32
    sdk_version: I32 = 999_999
    client_type: ClientTypeCode = codes.ClientType.E_UNKNOWN
    process_name: Text = ""
    pid: I32 = 0
    session_id: I32 = 1
    host_name: Text = ""
    features: Text = ""
    cluster_name: Text = ""
    cluster_node_id: I32 = -1
    sdk_language: LanguageCode = codes.Language.E_CPP
    guid_info: GuidInfo | None = None
    user_agent: Text | None = None


class Element(NamedTuple):
    """One element of a sequence.

    Attributes:
        number: BER id.
        field: Name of the field.
        name: The schema's name.
        shape: What it looks like.
        optional: May be absent; the field is None then. All others are always written.
        default: What a reader takes where it is absent: nothing is ever missed (BDE's decoders do so too).
    """

    number: int
    field: str
    name: str
    shape: Shape
    optional: bool
    default: Any


class Shape(NamedTuple):
    """What a type looks like on the wire.

    Attributes:
        form: What it is.
        simple: Of values without parts.
        kind: The class of a sequence.
        elements: Of a sequence.
        inner: Of the elements of an array.
    """

    form: Form
    simple: Simple | None = None
    kind: type[Any] | None = None
    elements: tuple[Element, ...] = ()
    inner: Shape | None = None


@cache
def elements_of(kind: type[msgspec.Struct], skip: int = 0) -> tuple[Element, ...]:
    """The fields of a class as elements; the first `skip` are not on the wire in this place."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        [
            _element(number, each, hints[each.name])
            for number, each in enumerate(msgspec.structs.fields(kind)[skip:])
        ]
    )


def _element(number: int, info: msgspec.structs.FieldInfo, hint: Any) -> Element:
    choices = [each for each in get_args(hint) if each is not NoneType]
    optional = get_origin(hint) is not Annotated and NoneType in get_args(hint)
    head, *rest = info.name.split("_")
    name = head + "".join([word.capitalize() for word in rest])
    shape = shape_of(choices[0] if optional else hint)
    default = None if optional else zero(shape) if info.default is msgspec.NODEFAULT else info.default
    return Element(number, info.name, name, shape, optional, default)


def zero(shape: Shape) -> Any:
    """What stands for a value that is absent and has no default of its own."""
    if shape.kind is not None:
        return shape.kind(*[element.default for element in shape.elements])
    return {Form.TEXT: "", Form.BYTES: b"", Form.BOOLEAN: False, Form.ARRAY: ()}.get(shape.form, 0)


def shape_of(hint: Any) -> Shape:
    """The shape of a field's type."""
    if get_origin(hint) is Annotated:
        simple = get_args(hint)[1]
        return Shape(simple.form, simple)
    if get_origin(hint) is tuple:
        return Shape(Form.ARRAY, inner=shape_of(get_args(hint)[0]))
    return Shape(Form.SEQUENCE, kind=hint, elements=elements_of(hint))
