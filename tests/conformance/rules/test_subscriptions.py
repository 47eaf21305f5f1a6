"""What a client asks for besides what was ordered: its own affair, unless it is another one's order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from conformance.clients.reference.kit import adapter_of
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.consuming import Consuming
from conformance.clients.reference.rabbitmq_stream.ops import REFERENCE
from conformance.clients.reference.rabbitmq_stream.subscription import Subscription
from conformance.clients.reference.registry import without_sockets
from conformance.rules import judge
from conformance.run.inprocess import run
from conformance.run.specs import Spec
from scenarios.rabbitmq_stream.sweep.tracking import filter_of
from scenarios.rabbitmq_stream.traits import TRAITS

PROTOCOL = "rabbitmq-stream"


class HasItsOwn(Consuming):
    """Gives each subscription a name of its own, which nobody has ordered."""

    async def subscribe(self, *args: Any, properties: Any = None, **more: Any) -> Subscription:
        return await super().subscribe(*args, properties={**(properties or {}), "identifier": "me"}, **more)


class ChoosesALeader(StreamClient):
    """Asks for a leader by itself where the application does not."""

    async def create(
        self, stream: str, arguments: Mapping[str, str] | None = None, timeout: float | None = None
    ) -> None:
        await super().create(stream, {"queue-leader-locator": "balanced", **(arguments or {})}, timeout)


class IsTheOnlyOne(Consuming):
    """Makes each subscription a single active consumer."""

    async def subscribe(self, *args: Any, properties: Any = None, **more: Any) -> Subscription:
        own = {"single-active-consumer": "true", "name": "own", **(properties or {})}
        return await super().subscribe(*args, properties=own, **more)


@pytest.mark.parametrize(
    ("part", "base", "found"),
    [
        (HasItsOwn, "each-its-own", False),
        (ChoosesALeader, "created-with", False),
        (IsTheOnlyOne, "several", True),
    ],
)
def test_what_a_client_adds(part: type, base: str, found: bool) -> None:
    client = without_sockets(adapter_of(REFERENCE, [part]))
    violated = [one.name for one in judge(run(client, Spec(PROTOCOL, base)))]
    assert ("asks-what-was-ordered" in violated) is found


@pytest.mark.parametrize(
    ("asked", "holds"),
    [
        ({}, True),  # the client may filter by itself
        ({"filter.0": "a", "filter.1": "b", "match-unfiltered": "true"}, True),
        ({"filter.7": "b", "filter.3": "a", "match-unfiltered": "true"}, True),
        ({"filter.0": "a", "filter.1": "b"}, False),
        ({"filter.0": "a", "match-unfiltered": "true"}, False),
        ({"filter.0": "a", "filter.1": "b", "filter.2": "c", "match-unfiltered": "true"}, False),
    ],
)
def test_a_filter_is_that_of_its_subscription(asked: Mapping[str, str], holds: bool) -> None:
    ordered = TRAITS.delivery.settings({"filter": {"values": ["b", "a"], "unfiltered": True}})["filter"]
    assert TRAITS.delivery.holds("filter", filter_of(asked), ordered) is holds
