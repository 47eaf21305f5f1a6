"""Policies beside the arguments of streams: which limit counts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import pytest

from fakebrokers import RabbitMQStream
from fakebrokers.core.patterns import Pattern
from fakebrokers.errors import UsageError
from fakebrokers.rabbitmq_stream import policies as policies_module
from fakebrokers.rabbitmq_stream.access import Permission
from fakebrokers.rabbitmq_stream.arguments import parse_arguments
from fakebrokers.rabbitmq_stream.policies import Policies, Policy
from fakebrokers.rabbitmq_stream.profile import V4_3
from tests.rabbitmq_stream.http import reason, request


@pytest.mark.parametrize(
    ("declared", "policy", "length", "age"),
    [
        ({}, {}, None, None),
        ({}, {"max-length-bytes": 5, "max-age": "1h"}, 5, "1h"),
        ({"max-length-bytes": "9"}, {"max-length-bytes": 5}, 5, None),
        ({"max-length-bytes": "3"}, {"max-length-bytes": 5}, 3, None),
        ({"max-length-bytes": "-1"}, {"max-length-bytes": 5}, 5, None),
        ({"max-length-bytes": "9"}, {"max-age": "1h"}, 9, "1h"),
        ({"max-age": "1D"}, {"max-age": "23h"}, None, "23h"),
        ({"max-age": "59m"}, {"max-age": "1h"}, None, "59m"),
        ({"max-age": "nothing"}, {"max-age": "1h"}, None, "1h"),
        ({"max-age": "0s"}, {"max-age": "1h"}, None, "0s"),
    ],
)
def test_the_smaller_limit_counts(
    declared: dict[str, str], policy: dict[str, int | str], length: int | None, age: str | None
) -> None:
    arguments = parse_arguments(declared, V4_3)
    limited = arguments.limited(policy)
    assert (limited.max_length, limited.max_age) == (length, age)
    assert limited.declared == arguments.declared


def policy(
    name: str, pattern: str = "^o", priority: int = 0, apply_to: str = "all", host: str = "/"
) -> Policy:
    return Policy(host, name, pattern, {"max-age": "1h"}, priority, apply_to)


def test_which_policy_counts() -> None:
    policies = Policies()
    for each in (
        policy("low"),
        policy("high", priority=2),
        policy("elsewhere", priority=9, host="test"),
        policy("other name", "^x", 9),
        policy("other things", priority=9, apply_to="exchanges"),
    ):
        assert policies.put(each)
    found = policies.of("/", "orders")
    assert found is not None and found.name == "high"
    assert policies.remove("/", "high") and not policies.remove("/", "high")
    assert policies.of("/", "orders") == policy("low")
    assert policies.of("/", "bills") is None
    policies.forget("/")
    assert [each.name for each in policies] == ["elsewhere"]


def test_a_pattern_without_an_end_fits_no_stream_and_holds_nothing_up() -> None:
    policies = Policies()
    policies.put(policy("slow", "(a+)+$"))
    policies.put(policy("sound", "^a", priority=-1))
    begun = time.process_time()
    found = [policies.of("/", "a" * 250 + f"!{number}!") for number in range(1000)]
    assert time.process_time() - begun < 0.1
    assert {each and each.name for each in found} == {"sound"}


def test_a_permission_without_an_end_allows_nothing() -> None:
    permission = Permission(write="(a+)+$")
    assert not permission.allows("write", "a" * 250 + "!")
    permission.write = "^a"
    assert permission.allows("write", "a" * 250 + "!")


def test_what_counts_follows_each_change() -> None:
    policies = Policies()

    def counts(stream: str = "orders") -> str | None:
        found = policies.of("/", stream)
        return None if found is None else found.name

    assert counts() is None
    policies.put(policy("first", priority=1))
    policies.put(policy("equal", priority=1))
    assert counts() == "first"
    policies.put(policy("higher", "^order", priority=2))
    assert (counts(), counts("o")) == ("higher", "first")
    policies.put(policy("higher", "^order", priority=0))
    assert counts() == "first"
    policies.put(policy("first", "^x", priority=1))
    assert (counts(), counts("x")) == ("equal", "first")
    policies.put(policy("first", priority=1))
    assert counts() == "first"  # it has kept its place
    policies.remove("/", "first")
    assert (counts(), counts("x")) == ("equal", None)
    policies.forget("/")
    assert counts() is None


def test_there_are_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies_module, "MOST", 2)
    policies = Policies()
    for name in "aba":
        policies.put(policy(name))
    with pytest.raises(UsageError, match="expected at most 2 policies, got 3"):
        policies.put(policy("c"))
    policies.remove("/", "a")
    assert policies.put(policy("c"))


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names in which patterns are searched."""
    names: list[str] = []
    search = Pattern.found_in

    def found_in(self: Pattern, name: str) -> bool:
        names.append(name)
        return search(self, name)

    monkeypatch.setattr(Pattern, "found_in", found_in)
    yield names


@pytest.mark.parametrize("pattern", [".*", "^x"], ids=["fits", "does not"])
def test_definitions_with_many_policies_search_each_name_once_for_each(
    searches: list[str], pattern: str
) -> None:
    """RabbitMQ takes them, too; ours has one thread for everything."""
    streams, policies = 20, 100
    named = [f"s{number}" for number in range(streams)]
    rows = [
        {"vhost": "/", "name": f"p{number}", "pattern": pattern, "definition": {"max-age": "1h"}}
        for number in range(policies)
    ]
    with RabbitMQStream(management=True) as broker:
        for name in named:
            broker.create_stream(name)
        ask = partial(request, broker)
        assert ask("POST", "/api/definitions", {"policies": rows})[0] == 204
        assert len(searches) == streams * policies
        searches.clear()
        assert ask("GET", "/api/queues")[0] == 200
        assert searches == []
        assert ask("PUT", "/api/policies/%2F/new", {**rows[0], "priority": 1})[0] == 201
        assert sorted(searches) == sorted(named)
        assert {row["policy"] for row in ask("GET", "/api/queues")[1]} == (
            {"new"} if pattern == ".*" else {None}
        )


def test_definitions_that_are_refused_half_way_count_so_far() -> None:
    row = {"vhost": "/", "name": "p", "pattern": "^o", "definition": {"max-age": "1h"}}
    with RabbitMQStream(management=True) as broker:
        broker.create_stream("orders")
        wrong = {**row, "name": "q", "pattern": "("}
        assert "pattern" in reason(request(broker, "POST", "/api/definitions", {"policies": [row, wrong]}))
        (stream,) = broker.broker.streams.values()
        assert stream.writer._arguments.max_age == "1h"
