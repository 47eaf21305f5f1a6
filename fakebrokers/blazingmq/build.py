"""The faults that only BlazingMQ has, in one line of Python each.

    stop_node(role="publish", nth=3)

The types of these functions are in the stub beside this file; see `fakebrokers.faults.build`.
"""

from __future__ import annotations

from fakebrokers.blazingmq.faults_broker import RedeliverNow, ShutDown, StopNode
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
from fakebrokers.faults.making import builder

ack_statuses = builder(AckStatuses)
bad_crc = builder(BadCrc)
extra_element = builder(ExtraElement)
foreign_guid = builder(ForeignGuid)
header_words = builder(HeaderWords)
other_encoding = builder(OtherEncoding)
other_queue = builder(OtherQueue)
other_subscription = builder(OtherSubscription)
redeliver_now = builder(RedeliverNow)
reverse_items = builder(ReverseItems)
shut_down = builder(ShutDown)
stop_node = builder(StopNode)
without_element = builder(WithoutElement)
