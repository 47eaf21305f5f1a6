"""Answers and events are held against the types of the ops, and so is what scripts ask for."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.clients.adapter.answers import check_arguments, event_problem, result_of
from conformance.clients.adapter.messages import Error, Event, Kind, Response
from conformance.clients.adapter.typed import Misfit
from fakebrokers.errors import UsageError

RMQS = "rabbitmq-stream"
MESSAGE = {"ref": "m1", "sub": "c", "target": "q", "body": {"b64": "aGk="}, "position": "57"}
TOLD = {"outcomes": [{"outcome": "acked"}]}


def said(op: str, result: Any, protocol: str = RMQS, **args: Any) -> str:
    return problem_of(Response(1, 0, 1, True, result), op, protocol, **args)


def problem_of(answer: Response, op: str = "state", protocol: str = RMQS, **args: Any) -> str:
    try:
        result_of(op, args, answer, protocol)
    except Misfit as misfit:
        return str(misfit)
    return ""


@pytest.mark.parametrize(
    ("op", "result", "args"),
    [
        ("connect", None, {}),
        ("connect", {"anything": 1}, {}),
        ("some.day", {"anything": 1}, {}),
        ("state", {"open": False, "pending": None}, {}),
        ("publish", {"outcome": "acked", "key": {"b64": "AA=="}, "meta": {}}, {"wait": True}),
        ("publish", {"outcome": "sent"}, {"wait": False}),
        ("publish_many", TOLD, {"messages": [{}]}),
        ("next", {"messages": [MESSAGE]}, {}),
        ("rmqs.query_offset", {"offset": str(2**63)}, {}),
        ("rmqs.metadata", {"streams": [{"name": "s", "exists": True}]}, {}),
        ("raise_next", {"armed": False}, {}),
        ("stats", {"threads": 2, "more": 5}, {}),
    ],
)
def test_what_an_answer_means(op: str, result: Any, args: dict[str, Any]) -> None:
    assert said(op, result, **args) == ""


@pytest.mark.parametrize(
    ("op", "result", "args", "problem"),
    [
        ("connect", [1], {}, "result: expected `object`, got `array`"),
        ("publish", {"outcome": "nacked"}, {}, "result.outcome: expected one of acked, sent, got 'nacked'"),
        ("publish", {"outcome": "sent"}, {}, "result: the outcome was to be waited for, got 'sent'"),
        (
            "publish_many",
            TOLD,
            {"messages": [{}, {}]},
            "result: outcomes: expected one for each of 2 messages",
        ),
        (
            "publish_many",
            {"outcomes": [{"outcome": "sent"}]},
            {"messages": [{}]},
            "result: the outcome was to be",
        ),
        ("next", {"messages": [MESSAGE, {}]}, {}, "result.messages[1]: object missing required field `ref`"),
        (
            "next",
            {"messages": [MESSAGE, {**MESSAGE, "body": {"b64": "a"}}]},
            {},
            "result.messages[1].body: expected base64, got 'a'",
        ),
        (
            "next",
            {"messages": [{**MESSAGE, "body": {"sha256": "0" * 64, "len": 5}}]},
            {},
            "result.messages[0].body.len: expected `int` >= 4097, got 5",
        ),
        (
            "next",
            {"messages": [{**MESSAGE, "position": "x"}]},
            {},
            "result.messages[0].position: expected the offset, an integer of 64 bits, got 'x'",
        ),
        ("rmqs.query_offset", {"offset": "1e3"}, {}, "result.offset: expected `str` matching regex"),
        ("stats", {"threads": "many"}, {}, "result.threads: expected `float | null`, got `str`, got 'many'"),
    ],
)
def test_an_answer_that_means_something_else(
    op: str, result: Any, args: dict[str, Any], problem: str
) -> None:
    assert said(op, result, **args).startswith(problem)


def test_what_a_position_is_depends_on_the_protocol() -> None:
    taken = {"message": {**MESSAGE, "position": "x-1"}}
    assert said("narc.take", taken, "narconi") == ""
    assert said("narc.take", {"message": None}, "narconi") == ""


def test_what_is_taken_comes_by_no_subscription() -> None:
    taken = {name: value for name, value in MESSAGE.items() if name != "sub"}
    assert said("narc.take", {"message": taken}, "narconi") == ""
    assert said("narc.take", {"message": {**taken, "sub": None}}, "narconi") == ""
    assert "sub" in said("next", {"messages": [{**taken, "sub": None}]}), "a subscription has a name"


def test_what_is_taken_is_one_message_or_none() -> None:
    taken = {"message": {**MESSAGE, "position": "x-1"}}
    assert "narc.take" not in said("narc.take", [taken], "narconi")


def test_an_answer_is_ok_or_has_an_error() -> None:
    error = Error(Kind.CLOSED, definite=True)
    assert problem_of(Response(1, 0, 1, False, error=error)) == ""
    assert "there is an error (closed)" in problem_of(Response(1, 0, 1, True, {"open": True}, error))
    assert "there is no error" in problem_of(Response(1, 0, 1, False))


def test_a_result_comes_as_its_type() -> None:
    answer = Response(1, 0, 1, True, {"messages": [MESSAGE]})
    assert [each.ref for each in result_of("next", {}, answer, RMQS).messages] == ["m1"]
    refused = Response(1, 0, 1, False, error=Error(Kind.REFUSED, definite=True))
    assert result_of("next", {}, refused, RMQS) is None


@pytest.mark.parametrize(
    ("name", "fields", "problem"),
    [
        ("eclipse", {"of": "the sun"}, ""),
        ("message", MESSAGE, ""),
        ("message", {**MESSAGE, "ref": 5}, "the event.ref: expected `str`, got `int`, got 5"),
        ("message", {**MESSAGE, "position": "x"}, "the event.position: expected the offset"),
        ("session", {"session": "s", "what": "connection_lost", "text": None}, ""),
        ("session", {"session": "s", "what": "tired"}, "the event.what: expected one of connected, "),
        (
            "error",
            {"where": "read", "error": {"kind": "sulking", "definite": True}},
            "the event.error.kind: ",
        ),
        ("outcome", {"id": 7, "outcome": "acked"}, ""),
        (
            "outcome",
            {"id": 7, "outcome": "sent"},
            "the event.outcome: expected one of acked, nacked, unknown",
        ),
        ("done", {"sub": "c", "ref": "m1", "index": "0", "op": "x", "ok": True}, "the event.index: "),
    ],
)
def test_events(name: str, fields: dict[str, Any], problem: str) -> None:
    found = event_problem(Event(1, 0, name, fields), RMQS)
    assert found.startswith(problem)
    assert bool(found) is bool(problem)


def test_a_script_that_asks_for_what_is_not_there_is_told_so() -> None:
    create = {"session": "s", "target": "t"}
    check_arguments("rmqs.create", create, RMQS)
    check_arguments("some.day", {"anything": 1}, RMQS)
    with pytest.raises(UsageError, match=r"rmqs\.create args: object contains unknown field `traget`"):
        check_arguments("rmqs.create", {**create, "traget": 1}, RMQS)
    with pytest.raises(UsageError, match=r"publish args\.body: expected a body"):
        check_arguments("publish", {**create, "body": {"gen": "rand", "len": 1}}, RMQS)


def test_members_belong_to_their_protocol() -> None:
    connect = {"session": "s", "endpoints": ["x:1"]}
    check_arguments("connect", {**connect, "options": {"vhost": "/", "user": "u"}}, RMQS)
    with pytest.raises(UsageError, match=r"connect args\.options: object contains unknown field `vhost`"):
        check_arguments("connect", {**connect, "options": {"vhost": "/"}}, "narconi")


@pytest.mark.parametrize(
    ("meta", "problem"),
    [
        ({"pzq_id": "cHpx", "sent_us": "12", "timeout_us": 5}, ""),
        ({}, ""),
        (
            {"pzq_id": {"b64": "cHpx"}},
            "meta.pzq_id: expected base64 text (the first part of the message), got {'b64': 'cHpx'}",
        ),
        (
            {"pzq_id": "p z q"},
            "meta.pzq_id: expected base64 text (the first part of the message), got 'p z q'",
        ),
        ({"sent_us": 1.5}, "meta.sent_us: expected an integer, or its digits, got 1.5"),
    ],
)
def test_what_a_pzq_message_says_besides(meta: dict[str, Any], problem: str) -> None:
    found = said("next", {"messages": [{**MESSAGE, "meta": meta}]}, "pzq")
    assert found == (f"result.messages[0].{problem}" if problem else "")
