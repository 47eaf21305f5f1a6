"""Walks: the same steps each time, other ones in another walk."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.run.inprocess import runner
from conformance.run.material import material_of
from conformance.run.specs import Spec
from scenarios.rabbitmq_stream.sweep import walking
from scenarios.rabbitmq_stream.sweep.records import wrapped

PROTOCOLS = ("rabbitmq-stream", "blazingmq", "pzq")


def steps(protocol: str, name: str) -> list[tuple[str, str]]:
    return [(done.op, str(done.args.get("body"))) for done in runner(protocol)(Spec(protocol, name)).ops]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_walk_is_the_same_each_time_and_unlike_others(protocol: str) -> None:
    assert steps(protocol, "walk-0") == steps(protocol, "walk-0")
    assert steps(protocol, "walk-0") != steps(protocol, "walk-1")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_all_walks_together_do_all_that_there_is_to_do(protocol: str) -> None:
    walks = [name for name in material_of(protocol).bases if name.startswith("walk-")]
    done = {op for name in walks[:8] for op, _ in steps(protocol, name)}
    asking = set(material_of(protocol).traits.questions.ops)
    assert len(walks) >= 15
    assert "publish" in done
    assert "subscribe" in done
    assert asking & done


def test_messages_of_others_are_stored_as_the_users_of_this_client_do_it() -> None:
    """What is no message of its format no client can read."""
    stored: list[bytes] = []

    async def connect() -> None:
        pass

    broker = SimpleNamespace(
        publish=lambda _, bodies: stored.extend(bodies), create_stream=str, store_offset=lambda *_: None
    )
    adapter = SimpleNamespace(hello=SimpleNamespace(formats=["amqp"]))
    context = SimpleNamespace(adapter=adapter, broker=broker, connect=connect)
    walk: Any = SimpleNamespace(context=context, state={}, number=7, pick=lambda first, *_: first)
    asyncio.run(walking.begin(walk))
    asyncio.run(walking.put(walk))
    assert wrapped(b"R0-0") in stored and wrapped(b"m7") in stored
    assert not [body for body in stored if body[:2] != wrapped(b"x")[:2]]
