"""BlazingMQ's part of the sweep: what its rules read, and that a reader has the limits ordered last."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.clients.reference.blazingmq.ops import REFERENCE
from conformance.clients.reference.blazingmq.queues import LIMITS, Queue, Queues
from conformance.clients.reference.kit import ClientError, adapter_of
from conformance.clients.reference.registry import without_sockets
from conformance.decoders.blazingmq import BlazingDecoder
from conformance.rules import judge
from conformance.run.facts import Facts
from conformance.run.inprocess import run, runner
from conformance.run.specs import ConcurrentAction, Injection, Spec
from conformance.run.trace import Position
from conformance.run.view import Conn, SeenFrame
from fakebrokers.blazingmq.codec import BlazingCodec, event_bytes
from fakebrokers.blazingmq.codes import Encoding, EventType
from fakebrokers.blazingmq.frames import (
    Ack,
    AckMessage,
    CloseQueueResponse,
    ConfigureStream,
    Confirm,
    ConfirmMessage,
    OpenQueue,
    Push,
    PushMessage,
)
from fakebrokers.blazingmq.options import SubscriptionInfo, read_options, write_options
from fakebrokers.blazingmq.schema import HandleParameters, StreamParameters, SubQueueId, Subscription
from fakebrokers.core.frames import Frame, Malformed
from scenarios.blazingmq.sweep.spelling import spellings
from scenarios.blazingmq.sweep.tracking import Tracking
from scenarios.blazingmq.traits import TRAITS

PROTOCOL = "blazingmq"
ANSWER = (
    b'{"rId":1,"closeQueueResponse":{"originalRequest":{"handleParameters":{"uri":"bmq://d/%s","qId":0,'
    b'"flags":4,"readCount":0,"writeCount":1,"adminCount":0},"isFinal":true}}}'
)
LOSS = (Injection("c1", "out", 12, "rst"),)


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
    ("part", "base", "injections"),
    [(ForgetsItsLimits, "configured", LOSS), (KeepsWhatWasRefused, "refused-options", ())],
)
def test_limits_that_nobody_has_ordered_are_found(
    part: type, base: str, injections: tuple[Injection, ...]
) -> None:
    spec = Spec(PROTOCOL, base, injections)
    found = judge(run(without_sockets(adapter_of(REFERENCE, [part])), spec))
    assert "asks-what-was-ordered" in [finding.name for finding in found]
    assert judge(runner(PROTOCOL)(spec)) == []


def test_what_came_before_the_application_had_subscribed_is_called_so() -> None:
    found = judge(runner(PROTOCOL, "early-messages-are-lost")(Spec(PROTOCOL, "late-callback")))
    details = {finding.name: finding.detail for finding in found}
    assert "came before the application had subscribed" in details["delivers-what-came"]
    assert judge(runner(PROTOCOL)(Spec(PROTOCOL, "late-callback"))) == []


def test_a_confirm_in_the_instant_of_a_close_is_none_too_many() -> None:
    spec = Spec(PROTOCOL, "closing", (Injection("c1", "out", 13, "swap"),))
    assert judge(runner(PROTOCOL)(spec)) == []


@pytest.mark.parametrize(
    ("base", "injections", "concurrent"),
    [
        (
            "read-first",
            (),
            (ConcurrentAction(2, "close", 1),),
        ),  # a close while a reader waits to be configured
        (
            "queues",
            (Injection("c1", "out", 4, "number", [6, 2, 32703]),),
            (),
        ),  # a refusal in no known encoding
        (
            "read-first",
            (Injection("c1", "out", 2, "unasked", ["PUSH beyond limits", "named"]),),
            (),
        ),  # nobody reads
        (
            "cancelled",
            (Injection("c1", "out", 7, "number", [14, 2, {"add": 1}]),),
            (),
        ),  # a question of clients
    ],
    ids=["close", "encoding", "too early", "by the server"],
)
def test_what_the_whole_sweep_has_shown(
    base: str, injections: tuple[Injection, ...], concurrent: tuple[ConcurrentAction, ...]
) -> None:
    assert judge(runner(PROTOCOL)(Spec(PROTOCOL, base, injections, concurrent=concurrent))) == []


@pytest.mark.parametrize(("name", "kind"), [("ü".encode(), CloseQueueResponse), (b"\xff\xfe", Malformed)])
def test_json_that_is_not_utf_8_is_no_answer(name: bytes, kind: type) -> None:
    body = ANSWER % name
    body += bytes([4 - len(body) % 4]) * (4 - len(body) % 4)
    [(frame, _)] = BlazingDecoder().feed(event_bytes(EventType.CONTROL, [body], Encoding.JSON << 5))
    assert type(frame) is kind, frame


@pytest.mark.parametrize(
    ("invariant", "mutant", "base", "injection"),
    [
        ("comes-back", "a-pause-is-the-end", "stopped", None),
        ("acked-not-stored", "empty-posts-are-acked", "bodies", None),
        ("delivers-what-came", "any-queue-will-do", "read-first",
         Injection("c1", "out", 5, "unasked", ["PUSH for nobody", "named"])),
        ("answers-questions", "answers-heartbeats-twice", "beats-real-1000-1-idle", None),
        ("unprovoked-end", "unknown-types-are-fatal", "publish",
         Injection("c1", "out", 4, "spelled", "before an unknown event")),
        ("unprovoked-end", "stray-heartbeats-are-fatal", "publish",
         Injection("c1", "out", 4, "spelled", "before a sign of life")),
        ("delivers-what-came", "strange-options-are-payload", "refused-options",
         Injection("c2", "out", 5, "spelled", "behind a strange option")),
    ],
)  # fmt: skip
def test_a_defect_is_found_by_the_rule_that_it_breaks(
    invariant: str, mutant: str, base: str, injection: Injection | None
) -> None:
    spec = Spec(PROTOCOL, base, () if injection is None else (injection,))
    assert invariant in [finding.name for finding in judge(runner(PROTOCOL, mutant)(spec))]
    assert judge(runner(PROTOCOL)(spec)) == []


def test_other_spellings_of_deliveries_and_acks_say_the_same() -> None:
    infos = write_options([SubscriptionInfo(5), SubscriptionInfo(9)])
    push = Push((PushMessage(3, bytes(16), b"body", options=infos),))
    for name, data in spellings(push, BlazingCodec().encode(push)).items():
        (one,) = [frame for frame, _ in BlazingDecoder().feed(data) if isinstance(frame, Push)]
        assert [info.number for info in read_options(one.messages[0].options)] == [5, 9], name
        assert one.messages[0].data == b"body", name
    ack = Ack((AckMessage(3, bytes(16), 0, 7),))
    for name, data in spellings(ack, BlazingCodec().encode(ack)).items():
        (read,) = [frame for frame, _ in BlazingDecoder().feed(data) if isinstance(frame, Ack)]
        assert read.messages == ack.messages, name


def shared_queue(other: str, *further: tuple[str, Frame]) -> Facts:
    """Two apps are opened and configured under one number, as 1 and 2; then what follows."""
    frames: list[tuple[str, Frame]] = []
    for number, uri in ((1, "bmq://d/news?id=foo"), (2, other)):
        app = SubQueueId(number, uri.partition("?id=")[2])
        flags = HandleParameters(uri, 7, app, flags=2, read_count=1)
        asked = StreamParameters(app.app_id, (Subscription(10 + number),))
        frames += [("in", OpenQueue(number, flags)), ("in", ConfigureStream(2 + number, 7, asked))]
    conn, facts = Conn("c1", Position(0, 0, 0.0)), Facts()
    for row, (direction, frame) in enumerate([*frames, *further], 1):
        conn.frames.append(SeenFrame(Position(row, 0, float(row)), direction, frame, 0))
    Tracking(TRAITS.questions, conn, facts).run()
    return facts


@pytest.mark.parametrize(
    ("numbers", "got"), [([11], [1, 0]), ([12], [0, 1]), ([11, 12], [1, 1]), ([9], [0, 0])]
)
def test_the_apps_of_a_queue_may_share_its_number(numbers: list[int], got: list[int]) -> None:
    """A delivery is for those whose subscriptions it names, and each confirms it by its own number."""
    guid = bytes(16)
    options = write_options([SubscriptionInfo(number) for number in numbers])
    push = Push((PushMessage(7, guid, b"x", options=options),))
    confirms = Confirm((ConfirmMessage(7, guid, 1), ConfirmMessage(7, guid, 2)))
    facts = shared_queue("bmq://d/news?id=bar", ("out", push), ("in", confirms))
    assert [len(window.arrivals) for window in facts.windows] == got
    assert [one.target for one in facts.confirmed] == ["bmq://d/news?id=foo", "bmq://d/news?id=bar"]
    assert facts.broken == facts.misused == []
    assert len({use.number for use in facts.ids}) == 2


def test_another_queue_may_not_have_the_number() -> None:
    facts = shared_queue("bmq://d/other?id=bar")
    assert [use.number for use in facts.ids] == [7, 7]
