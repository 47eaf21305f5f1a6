"""Producers that a library has for each way to publish; messages that the application gives up."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from conformance.clients.reference.registry import reference, without_sockets
from conformance.rules import judge
from conformance.run.bases import ScriptContext, base, text
from conformance.run.inprocess import run, runner
from conformance.run.material import material_of
from conformance.run.specs import Spec


def found_with_a_second_producer(base: str) -> set[str]:
    """What the correct client violates if one of its producers is there twice."""
    case = runner("rabbitmq-stream")(Spec("rabbitmq-stream", base))
    assert judge(case) == []
    case.shared.clear()
    mine = next(use for use in case.facts.ids if use.space in case.traits.settlement.producers)
    case.facts.ids.append(replace(mine, number=99, freed=None))
    return {finding.name for finding in judge(case)}


def test_each_way_to_choose_a_partition_may_have_a_producer_of_its_own() -> None:
    assert "one-producer-each" in found_with_a_second_producer("publish")
    assert "one-producer-each" not in found_with_a_second_producer("routed")


async def long_names(context: ScriptContext) -> None:
    """Two names that begin with the same 254 letters."""
    context.broker.create_stream("S")
    await context.connect()
    for last in "xy":
        await context.op("publish", body=text(last), target="S", name="n" * 254 + last, wait=True)
    await context.finale()


def test_long_names_are_compared_to_their_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    made = base(role="publisher", injections=False)(long_names)
    monkeypatch.setitem(material_of("rabbitmq-stream").bases, made.name, made)
    assert judge(runner("rabbitmq-stream")(Spec("rabbitmq-stream", made.name))) == []


class Late(reference("rabbitmq-stream")):  # type: ignore[misc] # found by its name
    """The correct client, which takes some turns of the loop before it begins with a message."""

    async def streams(self, *where: Any) -> list[str]:
        for _ in range(5):
            await asyncio.sleep(0)
        found: list[str] = await super().streams(*where)
        return found


def test_a_message_that_is_given_up_before_it_was_written_need_not_be() -> None:
    case = run(without_sockets(Late), Spec("rabbitmq-stream", "cancelled-in-the-turn"))
    for conn in case.conns.values():
        conn.ended_by = "client"  # as one that leaves without a word: then all has to be written
    written = {one.body for one in case.facts.written}
    given_up = [one for one in case.reported if one.done.result and one.done.result.word == "cancelled"]
    assert any(one.body not in written for one in given_up)
    assert "untouched-works" not in {finding.name for finding in judge(case)}
