"""A fault that can never take place is refused, with what it should say instead."""

from __future__ import annotations

import pytest

from fakebrokers.core.frames import Role, kind_of
from fakebrokers.errors import PlanError
from fakebrokers.faults import Fault, drop, duplicate, reply, sweep
from fakebrokers.faults.injector import Injector
from fakebrokers.protocol import find_protocol, protocols
from fakebrokers.pzq.build import corrupt_part


def check(protocol: str, fault: Fault) -> None:
    found = find_protocol(protocol)
    Injector(found.wires, own=found.own_effects, protocol=protocol).check(fault, "it")


@pytest.mark.parametrize(
    ("protocol", "fault", "message"),
    [
        (
            "rabbitmq-stream",
            drop(kind="PublishConfirm", direction="in"),
            r'^it\.match\.direction: expected "out": only the broker sends PublishConfirm, got "in"$',
        ),
        (
            "rabbitmq-stream",
            drop(kind="Metadata", direction="out"),
            r'expected "in": only clients send Metadata',
        ),
        (
            "rabbitmq-stream",
            reply(17, kind="PublishConfirm"),
            r'only the broker sends PublishConfirm, got "in"',
        ),
        ("rabbitmq-stream", drop(role="deliver", direction="in"), r'only the broker sends deliver, got "in"'),
        ("pzq", drop(kind="MonitorReply", direction="in"), "only the broker sends MonitorReply"),
        ("pzq", drop(role="ack", direction="out"), "only clients send ack"),
        ("narconi", drop(kind="Discovery", direction="in"), "only the broker sends Discovery"),
        ("narconi", drop(kind="HttpConsume", direction="out"), "only clients send HttpConsume"),
        ("blazingmq", drop(kind="PUT", direction="out"), "only clients send PUT"),
        (
            "blazingmq",
            drop(kind="openQueueResponse", direction="in"),
            "only the broker sends openQueueResponse",
        ),
        ("moleculer", drop(kind="Msg", direction="in"), "only the broker sends Msg"),
        (
            "rabbitmq-stream",
            drop(role="confirm", where={"kye": 5}),
            r"^it\.match\.where\.kye: expected one of .*\bkey\b.*\bpublisher_id\b.*did you mean 'key'\?",
        ),
        (
            "rabbitmq-stream",
            drop(role="confirm", where={"status": 5}),
            r"where\.status: expected one of .*scope",
        ),
    ],
)
def test_refused(protocol: str, fault: Fault, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        check(protocol, fault)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"first": 2, "nth": 3}, r"^drop\.match\.nth: expected at most 2, as `first` says, got 3"),
        ({"every": 2, "nth": 3}, r"nth: expected a multiple of 2, as `every` says, got 3"),
        ({"every": 3, "first": 2}, r"every: expected at most 2, as `first` says, got 3"),
    ],
)
def test_positions_that_exclude_each_other(options: dict[str, int], message: str) -> None:
    with pytest.raises(PlanError, match=message.replace(r"^drop", "^fault")):
        drop(role="confirm", **options)


def test_what_can_take_place_is_not_refused() -> None:
    """Each kind goes one way at least, with each of its roles."""
    for protocol in protocols():
        for wire in protocol.wires:
            for frame in wire.frames:
                ways = []
                for way in ("in", "out"):
                    try:
                        wire.fields_of(kind_of(frame), None, "", way)
                    except PlanError:
                        continue
                    ways.append(way)
                assert ways
    check("rabbitmq-stream", drop(kind="Close", direction="in"))
    check("rabbitmq-stream", drop(kind="ConsumerUpdateResponse", direction="in"))
    check("moleculer", duplicate(role="publish", direction="in"))
    check("moleculer", drop(role=Role.DELIVER, direction="out", where={"key": 5}))
    check("pzq", corrupt_part(role="deliver"))


def test_a_sweep_goes_through_the_positions_that_there_are() -> None:
    assert [each.match.nth for each in sweep(drop(first=2))] == [1, 2]
    assert [each.match.nth for each in sweep(drop(every=3), limit=9)] == [3, 6, 9]
