"""How to look into the events that are batches (`fakebrokers.core.frames.Items`).

Every message of an event has a queue and a status of its own, so the items of one event may differ. Keys
are what ties a question to its answer: the GUID, or, from clients that make none, the same 16 bytes with the
client's 24-bit correlation id in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from fakebrokers.blazingmq.codes import AckStatus
from fakebrokers.core.frames import Items, Role


class EventItems(Items):
    """The messages of an event."""

    mixed = True

    def count(self, frame: Any) -> int:
        return len(frame.messages)

    def keys(self, frame: Any) -> Sequence[bytes]:
        return [message.key for message in frame.messages]

    def bodies(self, frame: Any) -> Iterable[bytes]:
        return (message.data for message in frame.messages if hasattr(message, "data"))

    def select(self, frame: Any, indices: Sequence[int]) -> Any:
        return replace(frame, messages=tuple([frame.messages[index] for index in indices]), rest=b"")

    def scope(self, frame: Any, index: int) -> int:
        queue_id: int = frame.messages[index].queue_id
        return queue_id


class AckItems(EventItems):
    """The answers of an ACK event: each says for itself whether the message is stored."""

    roles = (Role.REJECT,)

    def role(self, frame: Any, index: int) -> Role | None:
        return None if frame.messages[index].status == AckStatus.SUCCESS else Role.REJECT

    def status(self, frame: Any, index: int) -> int:
        status: int = frame.messages[index].status
        return status
