"""NATS's part of the sweep: what its rules read."""

from __future__ import annotations

from conformance.run.facts import Facts
from conformance.run.trace import Position
from conformance.run.view import Conn, SeenFrame
from fakebrokers.core.frames import Frame
from fakebrokers.nats.frames import Hmsg, Pub, Sub, Unsub
from scenarios.nats.sweep.tracking import Tracking
from scenarios.nats.traits import TRAITS


def read(*frames: tuple[str, Frame]) -> Facts:
    """What the frames of one connection mean."""
    facts, conn = Facts(), Conn("c1", Position(0, 0, 0.0))
    for row, (direction, frame) in enumerate(frames, 1):
        conn.frames.append(SeenFrame(Position(row, 0, float(row)), direction, frame, 0))
    Tracking(TRAITS.questions, conn, facts).run()
    return facts


def test_a_subscription_that_is_asked_for_again_is_one() -> None:
    """nats-server takes no notice of a number that is in use; a client may say all again after a loss."""
    first, again, other = Sub("orders", "1"), Sub("orders", "1"), Sub("stock", "1")
    assert len(read(("in", first), ("in", again)).windows) == 1
    assert len(read(("in", first), ("in", Unsub("1")), ("in", again)).windows) == 2
    assert len(read(("in", first), ("in", other)).ids) == 2, "another subject under the number is an error"


def test_the_one_status_that_refuses_a_request() -> None:
    ask, inbox = Pub("echo", b"x", "_INBOX.a.1"), Sub("_INBOX.a.*", "9")
    for status, accepted in ((503, False), (408, True), (100, True)):
        answer = Hmsg("_INBOX.a.1", "9", b"NATS/1.0 %d\r\n\r\n" % status, b"")
        [question] = read(("in", inbox), ("in", ask), ("out", answer)).questions
        assert question.accepted is accepted, status
