"""Policies beside the arguments of streams: which limit counts."""

from __future__ import annotations

import pytest

from fakebrokers.rabbitmq_stream.arguments import parse_arguments
from fakebrokers.rabbitmq_stream.policies import Policies, Policy
from fakebrokers.rabbitmq_stream.profile import V4_3


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
