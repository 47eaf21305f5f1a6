"""What a real RabbitMQ 4.3.6 answers where the fake once said something else, case by case.

The expected values are the real server's, taken by sending the same commands to both.
"""

from __future__ import annotations

import pytest

from fakebrokers.core.frames import Frame
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import (
    ConsumerUpdate,
    ConsumerUpdateResponse,
    Create,
    CreateSuperStream,
    Delete,
    DeleteSuperStream,
    SubscribeResponse,
)
from tests.rabbitmq_stream.bench import SAC, Bench, Client, subscribe, with_stream

SUPER = CreateSuperStream(5, "super", ("super-0", "super-1"), ("0", "1"), {})


def codes(client: Client) -> list[int]:
    """The codes in the answers that came since the last call."""
    return [frame.code for frame in client.frames()]  # type: ignore[attr-defined]


def member(number: int, stream: str = "super-1", super_stream: str | None = "super") -> Frame:
    """A Subscribe as a single active consumer."""
    named = {} if super_stream is None else {"super-stream": super_stream}
    return subscribe(number, stream=stream, properties={**SAC, **named})


# --- declaring ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "again", "code"),
    [
        ({}, {}, 5),
        ({}, {"stream-filter-size-bytes": "16"}, 17),
        ({}, {"stream-max-segment-size-bytes": "500000000"}, 17),
        ({"stream-filter-size-bytes": "16"}, {"stream-filter-size-bytes": "+16"}, 5),
        ({"max-age": "1h"}, {"max-age": "60m"}, 17),
        ({}, {"unknown": "1"}, 5),
    ],
)
def test_naming_a_default_is_another_declaration(
    first: dict[str, str], again: dict[str, str], code: int
) -> None:
    client = Bench().open()
    client.send(Create(1, "s", first), Create(2, "s", again))
    assert codes(client) == [1, code]


@pytest.mark.parametrize(("size", "code"), [("3000000000", 1), ("3000000001", 17)])
def test_a_segment_has_at_most_3_gigabytes(size: str, code: int) -> None:
    client = Bench().open()
    client.send(Create(1, "s", {"stream-max-segment-size-bytes": size}))
    assert codes(client) == [code]


@pytest.mark.parametrize(
    ("partitions", "arguments", "code"),
    [
        (("p",), {"queue-leader-locator": "bad"}, 15),
        (("p",), {"stream-filter-size-bytes": "256"}, 15),
        (("p",), {"stream-max-segment-size-bytes": "3000000001"}, 15),
        ((), {"queue-leader-locator": "bad"}, 1),
        ((), {}, 1),
    ],
)
def test_super_streams_with_bad_arguments_or_without_partitions(
    partitions: tuple[str, ...], arguments: dict[str, str], code: int
) -> None:
    client = Bench().open()
    client.send(CreateSuperStream(1, "super", partitions, ("0",) * len(partitions), arguments))
    assert codes(client) == [code]


def test_a_super_stream_without_partitions_exists() -> None:
    client = Bench().open()
    client.send(CreateSuperStream(1, "super", (), (), {}), CreateSuperStream(2, "super", (), (), {}))
    assert codes(client) == [1, Code.STREAM_ALREADY_EXISTS]


def test_rights_on_super_streams_are_looked_at_after_the_name_and_the_existence() -> None:
    bench = Bench()
    permission = bench.broker.access.users["guest"].permissions["/"]
    permission.read = permission.write = ""
    client = bench.open()
    client.send(DeleteSuperStream(1, "unknown"))
    permission.configure = ""
    client.send(CreateSuperStream(2, "", ("p",), ("0",), {}), DeleteSuperStream(3, "unknown"))
    assert codes(client) == [2, 17, 16]


# --- single active consumers ----------------------------------------------------------------------


def two_clients(bench: Bench) -> tuple[Client, Client]:
    first = with_stream(bench)
    first.send(SUPER)
    first.sent.clear()
    return first, bench.open()


def test_a_partition_keeps_its_index_when_a_lower_one_is_deleted() -> None:
    first, second = two_clients(Bench())
    first.send(Delete(6, "super-0"), member(1))
    first.send(ConsumerUpdateResponse(0, 1, 0, None))
    first.sent.clear()
    second.send(member(1))
    assert first.only(ConsumerUpdate).active == 0
    assert second.only(SubscribeResponse).code == 1


def test_members_of_a_group_name_the_same_partition_or_none() -> None:
    first, second = two_clients(Bench())
    first.send(member(1, super_stream=None))
    second.send(member(1), member(2, super_stream="unknown"))
    assert codes(second) == [17, 1]
    assert list(second.session.describe()["subscriptions"]) == [2]


def test_who_steps_down_is_told_again_when_another_one_joins() -> None:
    bench = Bench()
    first, second = two_clients(bench)
    third = bench.open()
    first.send(member(1))
    first.sent.clear()
    second.send(member(1))
    third.send(member(1))
    assert first.frames() == [ConsumerUpdate(1, 1, 0), ConsumerUpdate(2, 1, 0)]
    first.send(ConsumerUpdateResponse(1, 1, 0, None), ConsumerUpdateResponse(2, 1, 0, None))
    assert second.frames()[1:] == [ConsumerUpdate(0, 1, 1)]
    assert [type(frame) for frame in third.frames()] == [SubscribeResponse]
