"""What does not fit is told by member, with what was expected and what came."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.clients.adapter.ops import messaging, session
from conformance.clients.adapter.ops.events import SessionEvent
from conformance.clients.adapter.ops.rabbitmq_stream import MetadataResult, OffsetResult
from conformance.clients.adapter.typed import Misfit, short, typed

OUTCOMES = {"outcomes": [{"outcome": "acked"}, {"outcome": "lost"}]}


@pytest.mark.parametrize(
    ("value", "kind", "problem"),
    [
        (
            {"open": "yes"},
            session.StateResult,
            "result.open: expected `bool`, got `str`, got 'yes'",
        ),
        ({}, session.StateResult, "result: object missing required field `open`, got {}"),
        ([1], session.StateResult, "result: expected `object`, got `array`, got [1]"),
        (
            OUTCOMES,
            messaging.PublishManyResult,
            "result.outcomes[1].outcome: expected one of acked, nacked, unknown, sent, got 'lost'",
        ),
        (
            {"streams": [{"name": "s", "replicas": ["a", 5]}]},
            MetadataResult,
            "result.streams[0].replicas[1]: expected `str`, got `int`, got 5",
        ),
        (
            {"session": "s", "what": "tired"},
            SessionEvent,
            "result.what: expected one of connected, connection_lost, disconnected, flow_blocked, "
            "flow_resumed, reconnected, reconnecting, target_closed, target_reopened, got 'tired'",
        ),
        (
            {"offset": "9" * 21},
            OffsetResult,
            f"result: expected an integer of 64 bits as offset, got '{'9' * 21}'",
        ),
        (
            {"body": {"gen": "rand", "len": 5}},
            session.Echo,
            "result.body: expected a body: text, b64, or gen with",
        ),
    ],
)
def test_what_does_not_fit_says_where_and_what(value: Any, kind: Any, problem: str) -> None:
    with pytest.raises(Misfit) as caught:
        typed(value, kind, "result")
    assert str(caught.value).startswith(problem)


def test_what_fits_comes_back_as_the_type() -> None:
    assert typed({"open": True, "more": 1}, session.StateResult, "result") == session.StateResult(open=True)


def test_a_long_value_is_cut() -> None:
    assert len(short("x" * 500)) == 120
    assert short({"a": 1}) == "{'a': 1}"
