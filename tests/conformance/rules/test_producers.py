"""Producers that a library has for each way to publish; messages that the application gives up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as replace_fields

from conformance.clients.adapter import kit
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.reference.registry import reference, without_sockets
from conformance.rules import judge
from conformance.run.bases import ScriptContext, base, text
from conformance.run.facts import Facts
from conformance.run.inprocess import run, runner
from conformance.run.material import material_of
from conformance.run.specs import Spec
from fakebrokers.rabbitmq_stream.frames import DeclarePublisher, DeclarePublisherResponse


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


@pytest.mark.parametrize(("code", "stream"), [(17, "S"), (1, "S2")])
def test_an_id_that_is_declared_again_stays_the_first_ones_where_that_is_refused(
    code: int, stream: str
) -> None:
    case = runner("rabbitmq-stream")(Spec("rabbitmq-stream", "publish"))
    conn, facts = case.conns["c1"], Facts()
    frames = conn.frames
    place = next(n for n, seen in enumerate(frames) if isinstance(seen.frame, DeclarePublisherResponse))
    asked = next(seen for seen in frames if isinstance(seen.frame, DeclarePublisher))
    answer = frames[place]
    frames[place + 1 : place + 1] = [
        answer._replace(frame=replace_fields(asked.frame, correlation_id=99, stream="S2"), direction="in"),
        answer._replace(frame=replace_fields(answer.frame, correlation_id=99, code=code)),
    ]
    case.traits.reading.track(conn, facts, case.traits.questions)
    assert facts.written[0].place[0] == stream
    assert [(use.number, use.what) for use in facts.ids[:2]] == [(1, "S"), (1, "S2")]
    assert (facts.ids[1].freed is not None) is (code == 17)


def client(ends: Callable[..., Awaitable[None]]) -> type[AdapterBase]:
    """The correct client, but for how it ends a subscription."""

    class Ending(reference("rabbitmq-stream")):  # type: ignore[misc] # found by its name
        def __init__(self) -> None:
            super().__init__()
            self.ops["unsubscribe"] = ends

    return without_sockets(Ending)


async def in_vain(sub: str) -> None:
    """It says that it has not worked."""
    raise kit.Failure("connection", "not now")


async def forgotten(sub: str) -> None:
    """It does nothing, and says that it has worked."""


@pytest.mark.parametrize(("ends", "is_found"), [(forgotten, True), (in_vain, False)])
def test_a_subscription_whose_end_has_failed_may_be_there(ends: Any, is_found: bool) -> None:
    found = judge(run(client(ends), Spec("rabbitmq-stream", "several")))
    assert ("one-subscription-each" in {finding.name for finding in found}) is is_found


def test_a_message_that_is_given_up_before_it_was_written_need_not_be() -> None:
    case = runner("rabbitmq-stream")(Spec("rabbitmq-stream", "cancelled-in-the-turn"))
    for conn in case.conns.values():
        conn.ended_by = "client"  # as one that leaves without a word: then all has to be written
    written = {one.body for one in case.facts.written}
    given_up = [one for one in case.reported if one.done.result and one.done.result.word == "cancelled"]
    assert any(one.body not in written for one in given_up)
    assert "untouched-works" not in {finding.name for finding in judge(case)}
