"""A frame that was not asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import MOST_TIMES, Effect, Passage, Realism
from fakebrokers.faults.match import Match
from fakebrokers.reading import one_of

if TYPE_CHECKING:
    from fakebrokers.core.wire import Wire


class Inject(Effect, frozen=True, tag="inject"):
    """Says a frame, or raw bytes, that the broker never meant to say.

    Attributes:
        kind: The protocol's name of the frame, with `fields`.
        fields: Its fields.
        hex: Or raw bytes instead, in hexadecimal digits.
        place: Before or after the frame that matched.
        times: How often.
    """

    needs_frame = False
    once = True
    realism = Realism.ILLEGAL
    kind: str = ""
    fields: Mapping[str, Any] = {}
    hex: str = ""
    place: Literal["before", "after"] = "after"
    times: int = 1

    def apply(self, passage: Passage) -> None:
        if self.place == "after":
            passage.pass_through()
        for _ in range(self.times):
            if self.hex:
                passage.say_raw(bytes.fromhex(self.hex))
            else:
                passage.answer(passage.build(self.kind, self.fields))
        if self.place == "before":
            passage.pass_through()

    def check(self, path: str) -> None:
        if bool(self.kind) == bool(self.hex):
            raise PlanError(path, 'expected either "kind" or "hex"')
        try:
            bytes.fromhex(self.hex)
        except ValueError:
            raise PlanError(f"{path}.hex", f"expected hexadecimal digits, got {self.hex!r}") from None
        if not 1 <= self.times <= MOST_TIMES:
            raise PlanError(f"{path}.times", f"expected a count from 1 to {MOST_TIMES}, got {self.times}")

    def check_wire(self, wire: Wire, match: Match, path: str) -> None:
        if self.kind:
            wire.build(self.kind, self.fields, path)
        elif not wire.stream:
            raise PlanError(f"{path}.hex", "expected kind and fields: a library owns the bytes of this wire")


class Reply(Effect, frozen=True, tag="reply"):
    """The broker never sees the request; the client gets this error code for it.

    Attributes:
        code: The protocol's own code.
        fields: Further fields of the answer, such as a challenge.
        tail_hex: More bytes at the end of the answer, in hexadecimal digits; its size field counts them.
        pass_request: Let the broker see it all the same (its own answer is then a second one).
    """

    direction = "in"
    realism = Realism.LEGAL
    code: int
    fields: Mapping[str, Any] = {}
    tail_hex: str = ""
    pass_request: bool = False

    def apply(self, passage: Passage) -> None:
        answer = passage.refusal(self.code)
        if answer is not None:
            answer = msgspec.structs.replace(answer, **self.fields)
            if self.tail_hex:
                passage.say_raw(passage.mend(passage.encode(answer) + bytes.fromhex(self.tail_hex)))
            else:
                passage.answer(answer)
        if answer is None or self.pass_request:
            passage.pass_through()

    def check(self, path: str) -> None:
        try:
            bytes.fromhex(self.tail_hex)
        except ValueError:
            raise PlanError(
                f"{path}.tail_hex", f"expected hexadecimal digits, got {self.tail_hex!r}"
            ) from None

    def check_wire(self, wire: Wire, match: Match, path: str) -> None:
        """No frame of the wire has such a field; which one the answer is shows only when it is said."""
        known = {field for kind in wire.frames for field in kind.__struct_fields__}
        for name in self.fields:
            if name not in known:
                raise PlanError(f"{path}.fields.{name}", f"expected {one_of(sorted(known), name)}")
