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
from fakebrokers.blazingmq.codec import BlazingCodec, event_bytes
from fakebrokers.blazingmq.codes import Encoding, EventType
from fakebrokers.blazingmq.frames import Ack, AckMessage, CloseQueueResponse, Push, PushMessage
from fakebrokers.blazingmq.options import SubscriptionInfo, read_options, write_options
from fakebrokers.core.frames import Malformed
from scenarios.blazingmq.sweep.model import Reader
from scenarios.blazingmq.sweep.spelling import spellings

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


@pytest.mark.parametrize(
    ("invariant", "mutant", "base", "bend"),
    [
        ("comes-back", "a-pause-is-the-end", "stopped", None),
        ("acked-not-stored", "empty-posts-are-acked", "bodies", None),
        ("delivers-what-came", "any-queue-will-do", "read-first",
         Bend("c1", "out", 5, "unasked", ["PUSH for nobody", "named"])),
        ("answers-questions", "answers-heartbeats-twice", "beats-real-1000-1-idle", None),
        ("unprovoked-end", "unknown-types-are-fatal", "publish",
         Bend("c1", "out", 4, "spelled", "before an unknown event")),
        ("unprovoked-end", "stray-heartbeats-are-fatal", "publish",
         Bend("c1", "out", 4, "spelled", "before a sign of life")),
        ("delivers-what-came", "strange-options-are-payload", "refused-options",
         Bend("c2", "out", 5, "spelled", "behind a strange option")),
    ],
)  # fmt: skip
def test_a_defect_is_found_by_the_rule_that_it_breaks(
    invariant: str, mutant: str, base: str, bend: Bend | None
) -> None:
    spec = Spec(PROTOCOL, base, () if bend is None else (bend,))
    assert invariant in [finding.name for finding in judge(runner(PROTOCOL, mutant)(spec))]
    assert judge(runner(PROTOCOL)(spec)) == []


def test_other_spellings_of_deliveries_and_acks_say_the_same() -> None:
    infos = write_options([SubscriptionInfo(5), SubscriptionInfo(9)])
    push = Push((PushMessage(3, bytes(16), b"body", options=infos),))
    for name, data in spellings(push, BlazingCodec().encode(push)).items():
        (one,) = [frame for frame, _ in Reader().feed(data) if isinstance(frame, Push)]
        assert [info.number for info in read_options(one.messages[0].options)] == [5, 9], name
        assert one.messages[0].data == b"body", name
    ack = Ack((AckMessage(3, bytes(16), 0, 7),))
    for name, data in spellings(ack, BlazingCodec().encode(ack)).items():
        (read,) = [frame for frame, _ in Reader().feed(data) if isinstance(frame, Ack)]
        assert read.messages == ack.messages, name
