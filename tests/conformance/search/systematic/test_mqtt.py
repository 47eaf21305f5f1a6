"""MQTT's part of the sweep: what its rules read."""

from __future__ import annotations

import pytest

from conformance.run.facts import Facts
from conformance.run.trace import Position
from conformance.run.view import Conn, SeenFrame
from fakebrokers.core.frames import Frame
from fakebrokers.mqtt.frames import Connack, Connect, Publish
from scenarios.mqtt.sweep.tracking import Session, Tracking
from scenarios.mqtt.traits import TRAITS

LET_IN = Connack(0)


def forbidden(*connections: list[tuple[str, Frame]]) -> list[str]:
    """What the client has written that the standard forbids."""
    facts, row = Facts(), 0
    sessions: dict[str, Session] = {}
    for number, frames in enumerate(connections, 1):
        conn = Conn(f"c{number}", Position(row, 0, float(row)))
        for direction, frame in frames:
            row += 1
            conn.frames.append(SeenFrame(Position(row, 0, float(row)), direction, frame, 0))
        Tracking(conn, facts, TRAITS.questions, sessions).run()
    return [str(text) for _, text in facts.broken]


@pytest.mark.parametrize("client_id", ["", "lasting"])
def test_a_message_that_was_lost_unseen_may_come_with_dup(client_id: str) -> None:
    """A connection may end with a message that has not left; a client without an id may have had one."""
    again = Publish("orders", b"x", qos=1, packet_id=2, dup=True)
    enters: list[tuple[str, Frame]] = [("in", Connect(client_id)), ("out", LET_IN)]
    assert forbidden(enters, [*enters, ("in", again)]) == []
    never = "message 2 has DUP, and was never sent (3.3.1.1)"
    assert forbidden([*enters, ("in", again)]) == [never]
    assert forbidden([("in", Connect("another")), ("out", LET_IN)], [*enters, ("in", again)]) == [never]
