"""The faults that only BlazingMQ has, in one line of Python each.

    stop_node(role="publish", nth=3)

See `fakebrokers.faults.build`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

from fakebrokers.blazingmq.faults_broker import RedeliverNow, ShutDown
from fakebrokers.blazingmq.faults_control import ExtraElement, OtherEncoding, WithoutElement
from fakebrokers.blazingmq.faults_messages import (
    AckStatuses,
    BadCrc,
    ForeignGuid,
    HeaderWords,
    OtherQueue,
    OtherSubscription,
    ReverseItems,
)
from fakebrokers.blazingmq.options import PushOption
from fakebrokers.faults.making import FaultArgs, NamedArgs, builder
from fakebrokers.faults.nodes import StopNode
from fakebrokers.faults.plan import Fault


@builder(AckStatuses)
def ack_statuses(statuses: Sequence[int], **fault: Unpack[FaultArgs]) -> Fault:
    """The answers of an ACK event have these statuses, one after the other, over and over."""


@builder(BadCrc)
def bad_crc(xor: int = 0xFFFF_FFFF, **fault: Unpack[FaultArgs]) -> Fault:
    """Messages come with another CRC than that of their data."""


@builder(ExtraElement)
def extra_element(
    number: int = 30, name: str = "newElement", text: str = "new", **fault: Unpack[NamedArgs]
) -> Fault:
    """A control message has one more element, as from a newer broker; readers skip it."""


@builder(ForeignGuid)
def foreign_guid(**fault: Unpack[FaultArgs]) -> Fault:
    """Messages carry a GUID that no client has sent; ACKs of clients without GUIDs a number likewise."""


@builder(HeaderWords)
def header_words(more: int = 1, **fault: Unpack[FaultArgs]) -> Fault:
    """Headers of deliveries, and answers of ACK events, are longer than known, or lack their last field."""


@builder(OtherEncoding)
def other_encoding(encoding: Literal["BER", "JSON"] = "JSON", **fault: Unpack[FaultArgs]) -> Fault:
    """A control message comes in this encoding, whatever the client has chosen."""


@builder(OtherQueue)
def other_queue(queue_id: int = 99, **fault: Unpack[FaultArgs]) -> Fault:
    """Messages are for another queue. The C++ SDK crashes at a number that it does not have."""


@builder(OtherSubscription)
def other_subscription(
    numbers: Sequence[int] = (99,),
    form: PushOption | Literal["ids", "infos", "packed"] = "ids",
    attempts: int = 128,
    **fault: Unpack[FaultArgs],
) -> Fault:
    """Deliveries are for other subscriptions, or say so in another form."""


@builder(RedeliverNow)
def redeliver_now(uri: str = "", **fault: Unpack[FaultArgs]) -> Fault:
    """All that consumers of a queue have not confirmed comes again, with the flag of such deliveries."""


@builder(ReverseItems)
def reverse_items(**fault: Unpack[FaultArgs]) -> Fault:
    """The messages of an event are in it last first."""


@builder(ShutDown)
def shut_down(node: int = 1, timeout_s: float = 5.0, **fault: Unpack[FaultArgs]) -> Fault:
    """A broker of the cluster goes down in order: a connection ends once its deliveries are confirmed."""


@builder(StopNode)
def stop_node(node: int = 1, **fault: Unpack[FaultArgs]) -> Fault:
    """A broker of the cluster goes down: its connections end."""


@builder(WithoutElement)
def without_element(element: str, **fault: Unpack[FaultArgs]) -> Fault:
    """An element of a control message is absent."""
