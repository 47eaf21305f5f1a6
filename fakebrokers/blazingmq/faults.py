"""Faults that exist only here, as effects and ready-made (docs/protocols/blazingmq.md, 11).

    broker.faults.add(unknown_ack(nth=2), refuse_open(Category.E_REFUSED, first=1))
    broker.faults.add(fault(OtherQueue(queue_id=7), role="deliver", nth=3))

What needs nothing of its own: late answers (``delay``), lost ones (``drop``), doubled ones (``duplicate``),
several frames in one segment (``coalesce``). The C++ SDK aborts or crashes under some of these.
"""

from __future__ import annotations

from typing import Any

from fakebrokers.blazingmq.codes import AckStatus, Category
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
from fakebrokers.faults.build import coalesce, delay, drop, duplicate, fault, reply
from fakebrokers.faults.effect import Realism
from fakebrokers.faults.nodes import StopNode
from fakebrokers.faults.plan import Fault

EFFECTS = (
    AckStatuses,
    BadCrc,
    ExtraElement,
    ForeignGuid,
    HeaderWords,
    OtherEncoding,
    OtherQueue,
    OtherSubscription,
    RedeliverNow,
    ReverseItems,
    ShutDown,
    StopNode,
    WithoutElement,
)


def duplicate_ack(**match: Any) -> Fault:
    """The same ACK twice. The C++ SDK aborts at the second, if it is positive."""
    return duplicate(role="confirm", realism=Realism.ILLEGAL, **match)


def unknown_ack(**match: Any) -> Fault:
    """An ACK of a message that nobody sent. The C++ SDK aborts, if it is positive."""
    return fault(ForeignGuid(), role="confirm", **match)


def reversed_acks(**match: Any) -> Fault:
    """The answers of one ACK event, last first; this is legal."""
    return fault(ReverseItems(), kind="ACK", **match)


def mixed_acks(*statuses: int, **match: Any) -> Fault:
    """The answers of ACK events have these statuses, in turn."""
    return fault(AckStatuses(statuses=statuses or (0, AckStatus.LIMIT_MESSAGES)), kind="ACK", **match)


def refuse_put(status: int = AckStatus.LIMIT_MESSAGES, **match: Any) -> Fault:
    """The broker stores nothing of a PUT event, and answers each message with this status."""
    return reply(int(status), kind="PUT", **match)


def refuse_open(category: int = Category.E_REFUSED, **match: Any) -> Fault:
    """openQueue fails. After E_CANCELED the C++ SDK's call never returns."""
    return reply(int(category), kind="openQueue", **match)


def refuse_configure(category: int = Category.E_REFUSED, **match: Any) -> Fault:
    """configureStream fails."""
    return reply(int(category), kind="configureStream", **match)


def refuse_negotiation(category: int = Category.E_REFUSED, **match: Any) -> Fault:
    """The client is not taken; the connection stays."""
    return reply(int(category), kind="clientIdentity", **match)


def late_answer(kind: str, seconds: float, **match: Any) -> Fault:
    """An answer such as ``openQueueResponse`` comes late; what comes after it overtakes it."""
    return delay(seconds, kind=kind, direction="out", **match)


def missed_heartbeats(**match: Any) -> Fault:
    """The broker neither asks for signs of life nor gives them."""
    return drop(role="heartbeat", direction="out", **match)


def redelivery_storm(uri: str, **match: Any) -> Fault:
    """With each frame that matches, all that is unconfirmed of a queue comes again."""
    return fault(RedeliverNow(uri=uri), **match)


def answer_with_delivery(frames: int = 2, within_s: float = 0.5, **match: Any) -> Fault:
    """An ACK waits for what follows it, at most `within_s` seconds; they leave in one segment."""
    return coalesce(frames, within_s, role="confirm", **match)


def bad_crc(**match: Any) -> Fault:
    """Messages reach the broker with a wrong CRC; it minds only with the switch ``checks_crc``."""
    return fault(BadCrc(), kind="PUT", **match)
