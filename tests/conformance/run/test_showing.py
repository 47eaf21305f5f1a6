"""Values in sentences about a client: as JSON, in words that need no Python."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from conformance.rules.answers import difference
from conformance.run.showing import counted, frame_at, message, named, named_by, shown
from conformance.run.specs import LONGEST, ArgumentChange, Injection, Spec
from conformance.run.trace import Position
from conformance.run.traits import AnyOrder
from conformance.run.view import Conn, SeenFrame
from fakebrokers.rabbitmq_stream.frames_connection import Heartbeat


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (UNSET, "(absent)"),
        (9007199254740993, "9007199254740993"),
        ("tea", '"tea"'),
        (b"tea", '"tea"'),
        ("tää".encode(), '"tää"'),
        (b"\x00\xff", '"hex 00ff"'),
        pytest.param(frozenset({"b", "a"}), '["a", "b"]', id="set"),
        ({"a": UNSET, "b": (1, None)}, '{"b": [1, null]}'),
        ({1: b"x"}, '{"1": "x"}'),
        ("x" * 100, '"' + "x" * 79 + "..."),
    ],
    ids=repr,
)
def test_values(value: Any, text: str) -> None:
    assert shown(value) == text


def test_messages_and_their_names() -> None:
    assert message(b"message 001") == 'message "message 001"'
    assert message(None) == "a message"
    assert named(("orders", "", 2)) == "id 2 of orders"
    assert named(("orders", "app", b"k1")) == 'id "k1" of orders by the producer "app"'
    assert named(("", "s1", b"k1")) == 'id "k1" by the producer "s1"'
    assert [counted(1, "error"), counted(2, "error")] == ["1 error", "2 errors"]


def test_a_frame_by_its_moment() -> None:
    conn = Conn("c1", Position(0, 0, 0.0))
    conn.frames.append(SeenFrame(Position(1, 0, 1.0), "in", Heartbeat(), 8))
    assert frame_at(conn, Position(1, 0, 1.0)) == "Heartbeat"
    assert frame_at(conn, None) == "the end"


@pytest.mark.parametrize(
    ("got", "said", "where"),
    [
        ({"offset": 1, "more": 2}, {"offset": 3}, ("offset", 1, 3)),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 5]}}, ("a.b.1", 2, 5)),
        ({"meta": {"x": 1}}, {"meta": None}, ("meta", {"x": 1}, None)),
        ({"rows": [1]}, {"rows": [1, 2]}, ("rows", [1], [1, 2])),
        ({"rows": [2, 1]}, {"rows": AnyOrder([1, 3])}, ("rows", [2, 1], [1, 3])),
        (1, 2, ("", 1, 2)),
    ],
)
def test_where_answer_and_result_differ(got: Any, said: Any, where: tuple[str, Any, Any]) -> None:
    assert difference(got, said) == where


def test_a_long_value_of_a_spec_is_cut() -> None:
    spec = Spec("moleculer", "calls", changes=(ArgumentChange(3, "group", "x" * 70_000),))
    assert str(spec) == f"calls: op 3 with group = '{'x' * (LONGEST - 1)}... (70,002 characters)"
    assert (
        str(Spec("pzq", "both", (Injection("c1", "in", 2, "silent", 3.0),))) == "both: silent 3.0 at c1 in 2"
    )


def test_a_letter_that_nobody_sees_is_shown_by_its_number() -> None:
    assert shown("application/o\x83tet-stream, größer") == '"application/o\\u0083tet-stream, größer"'


def test_a_message_has_the_name_of_its_position_or_of_its_body() -> None:
    assert named_by("7", b"tea") == 'message "7"'
    assert named_by(None, b"tea") == named_by(None, {"b64": "dGVh"}) == 'message "tea"'
    assert named_by(None, {"sha256": "00", "len": 1 << 20}) == "a message"
