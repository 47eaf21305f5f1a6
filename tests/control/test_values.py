"""Values between JSON and Python."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.control.problems import Refusal
from fakebrokers.control.values import Body, encode, plain, read, read_json, without_bodies


class Order(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    bodies: list[Body] = []
    by_key: dict[str, Body] = {}
    count: int | None = None


@given(st.lists(st.binary()))
def test_bodies_go_there_and_back(bodies: list[bytes]) -> None:
    sent = read_json(encode({"name": "x", "bodies": plain(bodies)}))
    assert without_bodies(read(sent, Order).bodies) == bodies


def test_bodies_of_requests_become_plain_bytes() -> None:
    order = read({"name": "x", "by_key": {"a": "b"}}, Order)
    (found,) = without_bodies(order.by_key).values()
    assert (type(found), found) == (bytes, b"b")


@given(st.recursive(st.none() | st.text() | st.binary() | st.integers() | st.floats(), st.lists))
def test_whatever_a_fake_returns_can_be_written(value: Any) -> None:
    msgspec.json.decode(encode(plain(value)))


def test_odd_values() -> None:
    assert plain({b"k": "\ud800", "n": 1 << 70, "x": float("inf"), "o": object}) == {
        "k": "\\ud800",
        "n": str(1 << 70),
        "x": "inf",
        "o": "<class 'object'>",
    }


@pytest.mark.parametrize(
    ("value", "path", "problem"),
    [
        ({"name": "x", "bodies": ["a", 1]}, "body.bodies[1]", 'expected text or {"base64": "..."}, got 1'),
        ({"name": "x", "bodies": 1}, "body.bodies", "expected array, got int: 1"),
        ({"name": "x", "count": "y" * 500}, "body.count", "expected int | null, got str: 'yyyy"),
        (
            {"nme": "x"},
            "body.nme",
            "expected one of name, bodies, by_key, count; got 'nme' (did you mean 'name'?)",
        ),
        ({}, "body.name", "expected text, got nothing"),
        (5, "body", "expected object, got int: 5"),
    ],
)
def test_what_does_not_fit_is_explained(value: Any, path: str, problem: str) -> None:
    with pytest.raises(Refusal) as caught:
        read(value, Order)
    answer = caught.value.answer
    assert (answer.status, answer.path) == (400, path)
    assert problem in answer.problem and len(answer.problem) < 300


def test_a_query_has_text_only() -> None:
    assert read({"name": "x", "count": "5"}, Order, "query", strict=False).count == 5


@pytest.mark.parametrize(("before", "after"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("depth", [100, 500, 900])
def test_what_is_nested_too_deep_is_refused_in_one_line(before: str, after: str, depth: int) -> None:
    with pytest.raises(Refusal) as refused:
        read_json((before * depth + "1" + after * depth).encode())
    assert refused.value.answer.status == 400
    assert refused.value.answer.problem == "expected values in at most 100 others, got one that is deeper"
    assert read_json((before * 99 + "1" + after * 99).encode())
