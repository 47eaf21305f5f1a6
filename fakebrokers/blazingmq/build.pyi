"""Types of the functions in build.py; ``python -m fakebrokers.faults.stubs`` writes them."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from fakebrokers.blazingmq.options import PushOption
from fakebrokers.core.frames import Role
from fakebrokers.faults.effect import Realism
from fakebrokers.faults.match import Moment
from fakebrokers.faults.plan import Fault

_Moment: TypeAlias = Literal[
    "accept",
    "ready",
    "partial",
    "idle",
]
_PushOption: TypeAlias = Literal[
    "ids",
    "infos",
    "packed",
]
_Realism: TypeAlias = Literal[
    "legal",
    "environment",
    "illegal",
]
_Role: TypeAlias = Literal[
    "handshake",
    "open",
    "shut",
    "publish",
    "confirm",
    "reject",
    "deliver",
    "ack",
    "flow",
    "heartbeat",
    "close",
    "request",
    "response",
    "event",
    "data",
    "malformed",
]

def ack_statuses(
    statuses: Sequence[int],
    *,
    name: str = "",
    realism: Realism | _Realism | None = None,
    direction: Literal["in", "out"] | None = None,
    role: Role | _Role | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] = ...,
    on: Moment | _Moment | None = None,
    connection: str | None = None,
    peer: str | None = None,
    nth: int | None = None,
    first: int | None = None,
    every: int | None = None,
    after_s: float | None = None,
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """The answers of an ACK event have these statuses, one after the other, over and over.

    Attributes:
        statuses: 0 to 15 each; 0 is success.
    """

def bad_crc(
    xor: int = 4294967295,
    *,
    name: str = "",
    realism: Realism | _Realism | None = None,
    direction: Literal["in", "out"] | None = None,
    role: Role | _Role | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] = ...,
    on: Moment | _Moment | None = None,
    connection: str | None = None,
    peer: str | None = None,
    nth: int | None = None,
    first: int | None = None,
    every: int | None = None,
    after_s: float | None = None,
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """Messages come with another CRC than that of their data.

    Attributes:
        xor: Mask for it.
    """

def extra_element(
    number: int = 30,
    name: str = "newElement",
    text: str = "new",
    *,
    realism: Realism | _Realism | None = None,
    direction: Literal["in", "out"] | None = None,
    role: Role | _Role | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] = ...,
    on: Moment | _Moment | None = None,
    connection: str | None = None,
    peer: str | None = None,
    nth: int | None = None,
    first: int | None = None,
    every: int | None = None,
    after_s: float | None = None,
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """A control message has one more element, as from a newer broker; readers skip it.

    Attributes:
        number: Its BER id, 0 to 30; one that the message has not.
        name: Its name in JSON.
        text: Its value.
    """

def foreign_guid(
    *,
    name: str = "",
    realism: Realism | _Realism | None = None,
    direction: Literal["in", "out"] | None = None,
    role: Role | _Role | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] = ...,
    on: Moment | _Moment | None = None,
    connection: str | None = None,
    peer: str | None = None,
    nth: int | None = None,
    first: int | None = None,
    every: int | None = None,
    after_s: float | None = None,
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """Messages carry a GUID that nobody has sent; ACKs of clients without GUIDs a number likewise."""

def header_words(
    more: int = 1,
    *,
    name: str = "",
    realism: Realism | _Realism | None = None,
    direction: Literal["in", "out"] | None = None,
    role: Role | _Role | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] = ...,
    on: Moment | _Moment | None = None,
    connection: str | None = None,
    peer: str | None = None,
    nth: int | None = None,
    first: int | None = None,
    every: int | None = None,
    after_s: float | None = None,
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """Headers of deliveries, and answers of ACK events, are longer than known, or lack their last field.

    Readers have to go by the sizes that stand in the events.

    Attributes:
        more: Words (4 bytes) more; -1: deliveries without a schema id.
    """

def other_encoding(
    encoding: Literal["BER", "JSON"] = "JSON",
    *,
    name: str = "",
    realism: Realism | _Realism | None = None,
    direction: Literal["in", "out"] | None = None,
    role: Role | _Role | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] = ...,
    on: Moment | _Moment | None = None,
    connection: str | None = None,
    peer: str | None = None,
    nth: int | None = None,
    first: int | None = None,
    every: int | None = None,
    after_s: float | None = None,
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """A control message comes in this encoding, whatever the client has chosen.

    Attributes:
        encoding: ``BER`` or ``JSON``.
    """

def other_queue(
    queue_id: int = 99,
    *,
    name: str = "",
    realism: Realism | _Realism | None = None,
    direction: Literal["in", "out"] | None = None,
    role: Role | _Role | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] = ...,
    on: Moment | _Moment | None = None,
    connection: str | None = None,
    peer: str | None = None,
    nth: int | None = None,
    first: int | None = None,
    every: int | None = None,
    after_s: float | None = None,
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """Messages are for another queue. The C++ SDK crashes at a number that it does not have.

    Attributes:
        queue_id: Its number.
    """

def other_subscription(
    numbers: Sequence[int] = ...,
    form: PushOption | _PushOption = "ids",
    attempts: int = 128,
    *,
    name: str = "",
    realism: Realism | _Realism | None = None,
    direction: Literal["in", "out"] | None = None,
    role: Role | _Role | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] = ...,
    on: Moment | _Moment | None = None,
    connection: str | None = None,
    peer: str | None = None,
    nth: int | None = None,
    first: int | None = None,
    every: int | None = None,
    after_s: float | None = None,
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """Deliveries are for other subscriptions, or say so in another form.

    Attributes:
        numbers: Of the subscriptions; none: the option is absent.
        form: ``ids``, ``infos`` or ``packed``; see `options.PushOption`.
        attempts: Remaining delivery attempts, for the last two forms.
    """

def redeliver_now(
    uri: str,
    *,
    name: str = "",
    realism: Realism | _Realism | None = None,
    direction: Literal["in", "out"] | None = None,
    role: Role | _Role | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] = ...,
    on: Moment | _Moment | None = None,
    connection: str | None = None,
    peer: str | None = None,
    nth: int | None = None,
    first: int | None = None,
    every: int | None = None,
    after_s: float | None = None,
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """All that consumers of a queue have not confirmed comes again, with the flag of such deliveries.

    Attributes:
        uri: The queue's name without ``?id=``; nothing happens if there is none.
    """

def reverse_items(
    *,
    name: str = "",
    realism: Realism | _Realism | None = None,
    direction: Literal["in", "out"] | None = None,
    role: Role | _Role | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] = ...,
    on: Moment | _Moment | None = None,
    connection: str | None = None,
    peer: str | None = None,
    nth: int | None = None,
    first: int | None = None,
    every: int | None = None,
    after_s: float | None = None,
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """The messages of an event stand in it last first."""

def shut_down(
    node: int = 1,
    timeout_s: float = 5.0,
    *,
    name: str = "",
    realism: Realism | _Realism | None = None,
    direction: Literal["in", "out"] | None = None,
    role: Role | _Role | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] = ...,
    on: Moment | _Moment | None = None,
    connection: str | None = None,
    peer: str | None = None,
    nth: int | None = None,
    first: int | None = None,
    every: int | None = None,
    after_s: float | None = None,
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """A broker of the cluster goes down in order: a connection ends once its deliveries are confirmed.

    Attributes:
        node: Its number, from 1.
        timeout_s: Seconds after which it ends all the same.
    """

def stop_node(
    node: int = 1,
    *,
    name: str = "",
    realism: Realism | _Realism | None = None,
    direction: Literal["in", "out"] | None = None,
    role: Role | _Role | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] = ...,
    on: Moment | _Moment | None = None,
    connection: str | None = None,
    peer: str | None = None,
    nth: int | None = None,
    first: int | None = None,
    every: int | None = None,
    after_s: float | None = None,
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """A broker of the cluster goes down: its connections end.

    Attributes:
        node: Its number, from 1.
    """

def without_element(
    element: str,
    *,
    name: str = "",
    realism: Realism | _Realism | None = None,
    direction: Literal["in", "out"] | None = None,
    role: Role | _Role | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] = ...,
    on: Moment | _Moment | None = None,
    connection: str | None = None,
    peer: str | None = None,
    nth: int | None = None,
    first: int | None = None,
    every: int | None = None,
    after_s: float | None = None,
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """An element of a control message is absent.

    Attributes:
        element: Its name, such as ``brokerIdentity`` or ``result.message``.
    """
