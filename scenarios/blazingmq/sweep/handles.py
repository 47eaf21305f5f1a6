"""Queues as a connection has them: each has a number, which the apps of one queue may share."""

from __future__ import annotations

from typing import Any

from conformance.run.facts import Window
from conformance.run.trace import Position
from fakebrokers.blazingmq.codes import DEFAULT_APP, QueueFlag
from fakebrokers.blazingmq.frames import ConfigureQueueStream, ConfigureStream
from fakebrokers.blazingmq.schema import HandleParameters
from fakebrokers.core.frames import Frame


class Handle:
    """A queue on one connection.

    Attributes:
        window: Its life as a reader, if it is one.
        opened: When the broker said yes.
        is_over: The broker has closed it, or never opened it.
        over_s: Since when, seconds; a callback that ends in this instant may not know it.
        closing: The client has asked to close it.
        drained: The client has taken back its configuration, or tried to.
        subscriptions: The numbers by which deliveries say that they are for it.
    """

    def __init__(self, parameters: HandleParameters, window: Window | None) -> None:
        self.parameters = parameters
        self.uri = uri_of(parameters)
        self.window = window
        self.opened: Position | None = None
        self.is_over = False
        self.over_s = 0.0
        self.closing = False
        self.drained = False
        self.subscriptions: set[int] = set()

    @property
    def sub_id(self) -> int:
        """Its number among the apps of a queue that share the number of the queue; 0 where there is none."""
        info = self.parameters.sub_id_info
        return info.sub_id if info is not None else 0

    @property
    def app_id(self) -> str:
        """The app of a fanout queue."""
        info = self.parameters.sub_id_info
        return info.app_id if info is not None else DEFAULT_APP

    @property
    def writes(self) -> bool:
        """Whether messages may be put into it."""
        return bool(self.parameters.flags & QueueFlag.WRITE)


def app_of(frame: ConfigureStream | ConfigureQueueStream) -> str:
    """Which app of a queue a configuration is for."""
    asked: Any = frame.stream_parameters
    if isinstance(frame, ConfigureStream):
        return str(asked.app_id)
    return asked.sub_id_info.app_id if asked.sub_id_info is not None else DEFAULT_APP


def subscriptions_of(frame: ConfigureStream | ConfigureQueueStream, handle: Handle) -> set[int]:
    """The numbers that deliveries after a configuration have; older ones have that of the app."""
    if isinstance(frame, ConfigureStream):
        return {each.s_id for each in frame.stream_parameters.subscriptions}
    return {handle.sub_id}


def uri_of(parameters: HandleParameters) -> str:
    """The URI as the application gave it; some clients write it whole, and the id of a fanout besides."""
    info = parameters.sub_id_info
    if info is None or "?id=" in parameters.uri:
        return parameters.uri
    return f"{parameters.uri}?id={info.app_id}"


def options_of(frame: Frame) -> dict[str, int] | None:
    """Limits and priority that a reader is configured with; None: it takes nothing."""
    if not isinstance(frame, ConfigureStream | ConfigureQueueStream):
        return None
    asked: Any = frame.stream_parameters
    if isinstance(frame, ConfigureStream):
        consumers = [each for one in asked.subscriptions for each in one.consumers]
        if not consumers:
            return None
        asked = consumers[0]
    elif not asked.consumer_priority_count:
        return None
    return {
        "max_unconfirmed_messages": asked.max_unconfirmed_messages,
        "max_unconfirmed_bytes": asked.max_unconfirmed_bytes,
        "consumer_priority": asked.consumer_priority,
    }


def are_of_one_queue(one: Handle, other: Handle) -> bool:
    """Whether two handles are of two apps of one queue, which may share its number."""
    names = {handle.uri.partition("?")[0] for handle in (one, other)}
    return len(names) == 1 and one.app_id != other.app_id and one.sub_id != other.sub_id
