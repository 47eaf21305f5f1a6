"""Effects on events that carry messages. Each changes every message of the event, or with ``unit = "item"``
the one that matches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from fakebrokers.blazingmq.frames import Ack, AckMessage, Batch, Push, PushMessage, Put
from fakebrokers.blazingmq.options import PushOption, SubscriptionInfo, write_options
from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Passage, Realism


def _change(passage: Passage, kinds: type[Any] | tuple[type[Any], ...], act: Callable[[Any], Any]) -> None:
    """Pass the event on with every message changed; anything else as it is."""
    frame = passage.frame
    if isinstance(frame, kinds) and isinstance(frame, Batch):
        messages = getattr(frame, "messages", ())
        frame = replace(frame, messages=tuple([act(message) for message in messages]))
    if frame is not None:
        passage.pass_on(frame)


class ForeignGuid(Effect, frozen=True, tag="foreign-guid"):
    """Messages carry a GUID that no client has sent; ACKs of clients without GUIDs a number likewise."""

    realism = Realism.ILLEGAL

    def apply(self, passage: Passage) -> None:
        def act(message: Any) -> Any:
            message = replace(message, guid=passage.random.randbytes(16))
            if isinstance(message, AckMessage) and message.correlation_id:
                message = replace(message, correlation_id=passage.random.randrange(1 << 23, 1 << 24))
            return message

        _change(passage, Batch, act)


class OtherQueue(Effect, frozen=True, tag="other-queue"):
    """Messages are for another queue. The C++ SDK crashes at a number that it does not have.

    Attributes:
        queue_id: Its number.
    """

    realism = Realism.ILLEGAL
    queue_id: int = 99

    def apply(self, passage: Passage) -> None:
        _change(passage, Batch, lambda message: replace(message, queue_id=self.queue_id))


class OtherSubscription(Effect, frozen=True, tag="other-subscription"):
    """Deliveries are for other subscriptions, or say so in another form.

    Attributes:
        numbers: Of the subscriptions; none: the option is absent.
        form: ``ids``, ``infos`` or ``packed``; see `options.PushOption`.
        attempts: Remaining delivery attempts, for the last two forms.
    """

    direction = "out"
    realism = Realism.ILLEGAL
    numbers: tuple[int, ...] = (99,)
    form: PushOption = PushOption.IDS
    attempts: int = 0x80

    def apply(self, passage: Passage) -> None:
        infos = [SubscriptionInfo(number, self.attempts) for number in self.numbers]
        options = write_options(infos, self.form) if infos else b""
        _change(passage, Push, lambda message: replace(message, options=options))

    def check(self, path: str) -> None:
        if not 0 <= self.attempts <= 0xFF:
            raise PlanError(f"{path}.attempts", f"expected 0..255, got {self.attempts}")


class AckStatuses(Effect, frozen=True, tag="ack-statuses"):
    """The answers of an ACK event have these statuses, one after the other, over and over.

    Attributes:
        statuses: 0 to 15 each; 0 is success.
    """

    direction = "out"
    realism = Realism.LEGAL
    statuses: tuple[int, ...]

    def apply(self, passage: Passage) -> None:
        place = passage.memory.setdefault("place", 0)

        def act(message: AckMessage) -> AckMessage:
            nonlocal place
            status = self.statuses[place % len(self.statuses)]
            place += 1
            return replace(message, status=status)

        _change(passage, Ack, act)
        passage.memory["place"] = place

    def check(self, path: str) -> None:
        if not self.statuses or not all(0 <= status <= 15 for status in self.statuses):
            raise PlanError(f"{path}.statuses", f"expected numbers of 0 to 15, got {self.statuses}")


class ReverseItems(Effect, frozen=True, tag="reverse-items"):
    """The messages of an event are in it last first."""

    realism = Realism.LEGAL

    def apply(self, passage: Passage) -> None:
        frame = passage.frame
        if isinstance(frame, Batch):
            frame = replace(frame, messages=getattr(frame, "messages", ())[::-1])
        if frame is not None:
            passage.pass_on(frame)


class BadCrc(Effect, frozen=True, tag="bad-crc"):
    """Messages come with another CRC than that of their data.

    Attributes:
        xor: Mask for it.
    """

    direction = "in"
    realism = Realism.ENVIRONMENT
    xor: int = 0xFFFFFFFF

    def apply(self, passage: Passage) -> None:
        _change(passage, Put, lambda message: replace(message, crc=message.crc ^ self.xor))

    def check(self, path: str) -> None:
        if not 1 <= self.xor <= 0xFFFFFFFF:
            raise PlanError(f"{path}.xor", f"expected 1..0xFFFFFFFF, got {self.xor}")


class HeaderWords(Effect, frozen=True, tag="header-words"):
    """Headers of deliveries, and answers of ACK events, are longer than known, or lack their last field.

    Readers have to go by the sizes that stand in the events.

    Attributes:
        more: Words (4 bytes) more; -1: deliveries without a schema id.
    """

    direction = "out"
    realism = Realism.LEGAL
    more: int = 1

    def apply(self, passage: Passage) -> None:
        frame = passage.frame
        if isinstance(frame, Ack):
            frame = replace(frame, item_words=frame.item_words + max(0, self.more))
        elif isinstance(frame, Push):
            frame = replace(frame, messages=tuple([self._resized(each) for each in frame.messages]))
        if frame is not None:
            passage.pass_on(frame)

    def _resized(self, message: PushMessage) -> PushMessage:
        return replace(message, header_words=message.header_words + self.more)

    def check(self, path: str) -> None:
        if self.more not in (-1, 1, 2, 3, 4, 5, 6, 7, 8, 9):
            raise PlanError(f"{path}.more", f"expected -1, or 1 to 9, got {self.more}")
