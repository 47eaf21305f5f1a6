"""Faults that exist only here, as effects and ready-made (docs/protocols/pzq.md, "Faults worth injecting").

pzq.faults.add(lose_acknowledgement(nth=2), refuse_message("disk full", first=3))
pzq.faults.add(fault(ExtraHeaders(("h1", "h2")), role="deliver"))

A silent or lost monitor, late, doubled, reordered answers and the like need nothing of their own: see
``drop``, ``delay``, ``duplicate``, ``reorder``, ``rewrite`` in `fakebrokers.faults`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fakebrokers.errors import PlanError
from fakebrokers.faults.build import drop, fault, reorder, rewrite, silent
from fakebrokers.faults.effect import Action, Effect, EffectOnFake, Passage, Realism
from fakebrokers.faults.plan import Fault
from fakebrokers.pzq import frames as f

if TYPE_CHECKING:
    from fakebrokers.core.host import Host
    from fakebrokers.pzq.server import PZQ


class StoreFailure(Effect, frozen=True, tag="store-failure"):
    """The message is not stored; the producer gets the reason.

    Attributes:
        reason: The text after the delimiter.
    """

    direction = "in"
    realism = Realism.LEGAL
    reason: str

    def apply(self, passage: Passage) -> None:
        answer = passage.refusal(0)
        if isinstance(answer, f.ProduceNack):
            passage.answer(msgspec.structs.replace(answer, texts=(self.reason.encode(),)))
        elif passage.frame is not None:
            passage.pass_on(passage.frame)


class WithoutDelimiter(Effect, frozen=True, tag="without-delimiter"):
    """The message ends where the empty part would be: no texts, no body."""

    direction = "out"
    realism = Realism.ILLEGAL

    def apply(self, passage: Passage) -> None:
        frame = passage.frame
        if isinstance(frame, f.ProduceAck | f.ProduceNack):
            frame = msgspec.structs.replace(frame, texts=None)
        elif isinstance(frame, f.Delivery):
            frame = msgspec.structs.replace(frame, body=None)
        if frame is not None:
            passage.pass_on(frame)


class ExtraHeaders(Effect, frozen=True, tag="extra-headers"):
    """Protocol parts that clients have to ignore are before the delimiter, as the document announces.

    Attributes:
        headers: Their texts; none of them empty.
    """

    direction = "out"
    realism = Realism.LEGAL
    headers: tuple[str, ...]

    def apply(self, passage: Passage) -> None:
        frame = passage.frame
        if isinstance(frame, f.ProduceAck | f.ProduceNack | f.Delivery):
            headers = tuple(header.encode() for header in self.headers)
            frame = msgspec.structs.replace(frame, headers=headers)
        if frame is not None:
            passage.pass_on(frame)


class CorruptPart(Effect, frozen=True, tag="corrupt-part"):
    """One byte of one part, both drawn from the seed, is another one; the parts stay as long as they are.

    Attributes:
        xor: Mask for the byte.
    """

    direction = "out"
    realism = Realism.ILLEGAL
    xor: int = 0xFF

    def apply(self, passage: Passage) -> None:
        parts = list(passage.data)
        number = passage.random.choice([number for number, part in enumerate(parts) if part])
        part = bytearray(parts[number])
        part[passage.random.randrange(len(part))] ^= self.xor
        passage.pass_raw((*parts[:number], bytes(part), *parts[number + 1 :]))

    def check(self, path: str) -> None:
        if not 1 <= self.xor <= 0xFF:
            raise PlanError(f"{path}.xor", f"expected 1..255, got {self.xor}")


class ExpireAll(Action, frozen=True):
    """All deliveries expire; see `ExpireNow`."""

    def perform(self, host: Host, fault: str, connection: str) -> None:
        server: PZQ = host.server
        server.expire()


class SetIdentity(Action, frozen=True):
    """The send socket gets another routing id; see `ChangeIdentity`."""

    identity: str

    def perform(self, host: Host, fault: str, connection: str) -> None:
        server: PZQ = host.server
        server.change_identity(self.identity.encode())


class ExpireNow(EffectOnFake, frozen=True, tag="expire-now"):
    """All deliveries expire at this moment, however young: the messages come again."""

    needs_broker = True
    realism = Realism.LEGAL

    def action(self) -> Action:
        return ExpireAll()


class ChangeIdentity(EffectOnFake, frozen=True, tag="change-identity"):
    """The send socket comes back with another routing id; its connections end.

    Attributes:
        identity: The new one; "" for none.
    """

    needs_broker = True
    realism = Realism.ENVIRONMENT
    identity: str

    def action(self) -> Action:
        return SetIdentity(self.identity)


EFFECTS = (StoreFailure, WithoutDelimiter, ExtraHeaders, CorruptPart, ExpireNow, ChangeIdentity)


def lose_acknowledgement(**match: Any) -> Fault:
    """The message is stored, the producer never hears of it. The daemon does so by itself under load."""
    return drop(role="confirm", **match)


def lose_consumer_ack(**match: Any) -> Fault:
    """A consumer's acknowledgement never arrives; the message comes again after its timeout."""
    return drop(role="ack", **match)


def refuse_message(reason: str = "disk full", **match: Any) -> Fault:
    """The message is refused."""
    return fault(StoreFailure(reason=reason), role="publish", **match)


def acknowledge_another(id: str | bytes = b"foreign", **match: Any) -> Fault:
    """The acknowledgement carries an id that nobody sent."""
    return rewrite({"id": id}, role="confirm", **match)


def stale_delivery(age_us: int, **match: Any) -> Fault:
    """The delivery says that it was sent `age_us` microseconds earlier than it was."""
    return rewrite({"sent": {"add": -age_us}}, role="deliver", **match)


def reverse_order(window: int, **match: Any) -> Fault:
    """Every `window` deliveries arrive last first."""
    return reorder(window=window, order="reverse", role="deliver", **match)


def silent_monitor(**match: Any) -> Fault:
    """The monitor answers nothing."""
    return drop(role="response", **match)


def garbled_monitor(text: str | bytes, **match: Any) -> Fault:
    """The monitor answers with this text."""
    return rewrite({"text": text}, role="response", **match)


def frozen_daemon(seconds: float | None = None, **match: Any) -> Fault:
    """The daemon takes everything and says nothing."""
    return silent(for_s=seconds, **match)
