"""The table of states: complete, and what a connection goes through."""

from __future__ import annotations

from fakebrokers.rabbitmq_stream.states import STATES, Reads, State
from tests.rabbitmq_stream.bench import HANDSHAKE, Bench


def test_every_state_has_a_row_and_every_state_ends() -> None:
    assert set(STATES) == set(State)
    for state in State:
        passed = []
        while state not in passed:
            passed.append(state)
            state = STATES[state].next
        assert passed[-1] is State.ENDED


def test_a_connection_goes_through_the_table_row_by_row() -> None:
    client = Bench().connect()
    states = [client.session.state]
    for _, frame in HANDSHAKE:
        assert STATES[states[-1]].due is type(frame)
        client.send(frame)
        states.append(client.session.state)
    assert states == [State.CONNECTED, *[STATES[state].next for state in states[:-1]]]
    assert STATES[states[-1]].reads is Reads.COMMANDS
