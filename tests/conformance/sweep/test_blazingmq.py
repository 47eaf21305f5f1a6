"""BlazingMQ's part of the sweep: what its rules read, and that a reader has the limits ordered last."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.invariants import judge
from conformance.reference.blazingmq.ops import REFERENCE
from conformance.reference.blazingmq.queues import LIMITS, Queue, Queues
from conformance.reference.kit import ClientError, adapter_of
from conformance.reference.registry import without_sockets
from conformance.sweep.run import run, runner
from conformance.sweep.specs import Bend, Spec
from fakebrokers.blazingmq.codec import event_bytes
from fakebrokers.blazingmq.codes import Encoding, EventType
from fakebrokers.blazingmq.frames import CloseQueueResponse
from fakebrokers.core.frames import Malformed
from scenarios.blazingmq.sweep.model import Reader

PROTOCOL = "blazingmq"
ANSWER = (
    b'{"rId":1,"closeQueueResponse":{"originalRequest":{"handleParameters":{"uri":"bmq://d/%s","qId":0,'
    b'"flags":4,"readCount":0,"writeCount":1,"adminCount":0},"isFinal":true}}}'
)
LOSS = (Bend("c1", "out", 12, "rst"),)


class ForgetsItsLimits(Queues):
    """Opens queues again with limits of its own."""

    async def open_again(self, queue: Queue) -> None:
        kept, queue.options = queue.options, dict(LIMITS)
        try:
            await super().open_again(queue)
        finally:
            queue.options = kept


class KeepsWhatWasRefused(Queues):
    """Takes a configuration that was refused for the one that holds."""

    async def configure(self, name: str, options: Any, timeout: float) -> None:
        try:
            await super().configure(name, options, timeout)
        except ClientError:
            self.find(name).options = {**LIMITS, **options}
            raise


@pytest.mark.parametrize(
    ("part", "base", "bends"),
    [(ForgetsItsLimits, "configured", LOSS), (KeepsWhatWasRefused, "refused-options", ())],
)
def test_limits_that_nobody_has_ordered_are_found(part: type, base: str, bends: tuple[Bend, ...]) -> None:
    spec = Spec(PROTOCOL, base, bends)
    found = judge(run(without_sockets(adapter_of(REFERENCE, [part])), spec))
    assert "asks-what-was-ordered" in [finding.name for finding in found]
    assert judge(runner(PROTOCOL)(spec)) == []


def test_a_confirm_in_the_instant_of_a_close_is_none_too_many() -> None:
    spec = Spec(PROTOCOL, "closing", (Bend("c1", "out", 13, "swap"),))
    assert judge(runner(PROTOCOL)(spec)) == []


@pytest.mark.parametrize(("name", "kind"), [("ü".encode(), CloseQueueResponse), (b"\xff\xfe", Malformed)])
def test_json_that_is_not_utf_8_is_no_answer(name: bytes, kind: type) -> None:
    body = ANSWER % name
    body += bytes([4 - len(body) % 4]) * (4 - len(body) % 4)
    [(frame, _)] = Reader().feed(event_bytes(EventType.CONTROL, [body], Encoding.JSON << 5))
    assert type(frame) is kind, frame
