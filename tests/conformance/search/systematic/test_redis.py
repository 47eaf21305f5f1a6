"""Redis's part of the sweep: what its rules read."""

from __future__ import annotations

from conformance.run.facts import Facts
from conformance.run.trace import Position
from conformance.run.view import Conn, SeenFrame
from fakebrokers.core.frames import Frame
from fakebrokers.redis.frames import Command, RedisError, Reply
from scenarios.redis.sweep.tracking import track

NOAUTH = RedisError("NOAUTH Authentication required.")


def is_let_in(*frames: tuple[str, Frame]) -> bool:
    """Whether the handshake of a connection counts as done."""
    conn = Conn("c1", Position(0, 0, 0.0))
    for row, (direction, frame) in enumerate(frames, 1):
        conn.frames.append(SeenFrame(Position(row, 0, float(row)), direction, frame, 0))
    track(conn, Facts())
    return conn.ready is not None


def test_who_is_asked_for_a_password_at_first_is_not_in() -> None:
    ping = Command("PING", ())
    assert is_let_in(("in", ping), ("out", Reply("PONG")))
    assert not is_let_in(("in", ping), ("out", NOAUTH))
    assert is_let_in(("in", ping), ("out", Reply("PONG")), ("in", ping), ("out", NOAUTH)), "it was in"
    assert is_let_in(("in", ping), ("out", RedisError("LOADING Redis is loading"))), "it may go on"
