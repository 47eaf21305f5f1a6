"""Whether a client has noticed a silence, where the broker cannot see what the client does."""

from __future__ import annotations

import pytest

from conformance.clients.adapter.messages import Event
from conformance.rules.heartbeats import silence_noticed
from conformance.run.reported import ReportedEvent
from conformance.run.trace import Position
from conformance.run.view import Conn
from tests.conformance.rules.test_odd_answers import case_of

READY_S, LONGEST_S, END_S = 1.0, 4.0, 20.0


@pytest.mark.parametrize(
    ("deaf_s", "what", "reported_s", "is_found"),
    [
        pytest.param(1.0, "connection_lost", 5.5, False, id="told in time"),
        pytest.param(1.0, "connection_lost", 9.0, True, id="told too late"),
        pytest.param(1.0, "connection_lost", 0.5, True, id="told of another loss before"),
        pytest.param(1.0, "connected", 5.5, True, id="told of something else"),
        pytest.param(None, "connection_lost", 5.5, True, id="told, and not given up, as the broker sees"),
    ],
)
def test_a_loss_that_was_told_is_noticed(
    deaf_s: float | None, what: str, reported_s: float, is_found: bool
) -> None:
    conn = Conn("c1", Position(0, 0, 0.0))
    conn.ready, conn.agreed = Position(1, 0, READY_S), conn.agreed._replace(quiet_s=(2.0, LONGEST_S))
    conn.reading_stopped = None if deaf_s is None else Position(2, 0, deaf_s)
    case = case_of(conn)
    case.ended_s = END_S
    heard = ReportedEvent(Event(event="session", t=0.0, n=1, fields={"what": what}))
    heard.at = Position(3, 0, reported_s)
    case.events = [heard]
    assert bool(list(silence_noticed(case))) is is_found
