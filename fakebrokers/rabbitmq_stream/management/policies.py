"""Policies: listed, made and deleted. Those that limit a stream take effect (see `policies.Policy`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

from fakebrokers.rabbitmq_stream.management.asked import (
    CREATED,
    DONE,
    Answer,
    Asked,
    Route,
    bad,
    listing,
    not_found,
)
from fakebrokers.rabbitmq_stream.policies import Policy
from fakebrokers.rabbitmq_stream.rows import Row


class NewPolicy(msgspec.Struct, frozen=True, rename={"apply_to": "apply-to"}):
    """What a policy is made with."""

    pattern: str
    definition: dict[str, Any]
    priority: Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)] = 0
    apply_to: str = "all"


def policy_rows(asked: Asked) -> Iterable[Row]:
    """The policies."""
    return [
        {
            "vhost": policy.virtual_host,
            "name": policy.name,
            "pattern": policy.pattern,
            "apply-to": policy.apply_to,
            "definition": policy.definition,
            "priority": policy.priority,
        }
        for policy in asked.broker.policies
    ]


def _policy(asked: Asked) -> Answer:
    here = asked.virtual_host(), asked.at["name"]
    for row in policy_rows(asked):
        if (row["vhost"], row["name"]) == here:
            return 200, row
    raise not_found()


def _put(asked: Asked) -> Answer:
    answer = put_policy(asked, asked.owned_virtual_host(), asked.at["name"], asked.read(NewPolicy), "body")
    asked.broker.apply_policies()
    return answer


def put_policy(asked: Asked, virtual_host: str, name: str, new: NewPolicy, where: str) -> Answer:
    """Add or replace a policy; see `StreamBroker.apply_policies`."""
    made = Policy(virtual_host, name, new.pattern, new.definition, new.priority, new.apply_to)
    problem = made.problem()
    if problem is not None:
        raise bad(f"{where}.{problem[0]}", problem[1])
    return CREATED if asked.broker.policies.put(made) else DONE


def _delete(asked: Asked) -> Answer:
    if not asked.broker.policies.remove(asked.virtual_host(), asked.at["name"]):
        raise not_found()
    asked.broker.apply_policies()
    return DONE


def _none(asked: Asked) -> Answer:
    return listing(asked, [])


ROUTES = (
    Route("GET", "/policies", lambda asked: listing(asked, policy_rows(asked))),
    Route("GET", "/policies/{vhost}", lambda asked: listing(asked, policy_rows(asked))),
    Route("GET", "/policies/{vhost}/{name}", _policy),
    Route("PUT", "/policies/{vhost}/{name}", _put),
    Route("DELETE", "/policies/{vhost}/{name}", _delete),
    Route("GET", "/operator-policies", _none),
    Route("GET", "/operator-policies/{vhost}", _none),
    Route("GET", "/parameters", _none),
    Route("GET", "/global-parameters", _none),
    Route("GET", "/feature-flags", _none),
)
