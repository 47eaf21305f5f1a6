"""How long an op may take: the library's own time, or the script's."""

from __future__ import annotations

import pytest

from conformance.clients.adapter.deadline import deadline_kind, deadline_ms, deadline_of, patience_ms
from conformance.clients.adapter.messages import Hello
from conformance.clients.adapter.ops import core


def hello(**limits: float) -> Hello:
    return Hello("a", "l", "1", "python", [], [], [], limits=limits)


@pytest.mark.parametrize(
    ("known", "op", "args", "timeout_ms", "expected"),
    [
        (None, "connect", {}, None, 10_000),
        (hello(), "connect", {}, 700, 700),
        (hello(connect_timeout_ms=3000), "connect", {}, 700, 3000),
        (hello(connect_timeout_ms=90_000), "connect", {}, 700, 30_000),
        (hello(request_timeout_ms=9000), "rmqs.create", {}, 700, 9000),
        (hello(request_timeout_ms=9000), "publish", {}, 700, 700),
        (hello(publish_timeout_ms=4000), "publish_many", {}, 700, 4000),
        (hello(request_timeout_ms=9000), "state", {}, 700, 700),
        (hello(request_timeout_ms=9000), "close", {}, 700, 700),
        (hello(request_timeout_ms=9000), "next", {"wait_ms": 50}, None, 50),
    ],
)
def test_the_deadline_is_the_librarys_own_or_the_scripts(
    known: Hello | None, op: str, args: dict[str, object], timeout_ms: float | None, expected: float
) -> None:
    assert deadline_ms(known, op, args, timeout_ms) == expected
    assert patience_ms(expected) == expected * 1.2 + 250


@pytest.mark.parametrize(
    ("limits", "kind", "wanted", "deadline"),
    [
        ({}, "publish", 2000.0, 2000.0),
        ({"publish_timeout_min_ms": 5000}, "publish", 2000.0, 5000.0),
        ({"publish_timeout_min_ms": 1000}, "publish", 2000.0, 2000.0),
        ({"timeout_factor": 2}, "publish", 2000.0, 4000.0),
        ({"timeout_factor": 2, "connect_timeout_ms": 20_000}, "connect", 2000.0, 30_000.0),
    ],
)
def test_a_deadline_follows_what_the_library_cannot_do_otherwise(
    limits: dict[str, float], kind: str, wanted: float, deadline: float
) -> None:
    assert deadline_of(hello(**limits), kind, wanted) == deadline
    assert deadline_ms(hello(**limits), kind, {}, wanted) == deadline


def test_only_ops_of_the_core_have_a_deadline_of_another_kind_than_a_request() -> None:
    kinds = {name: each.spec.deadline for name, each in core.OPS.items()}
    assert {name for name, kind in kinds.items() if kind == "request"} == {
        *("abort", "flush", "subscribe", "settle", "unsubscribe")
    }
    assert deadline_kind("some.day") == "request"
