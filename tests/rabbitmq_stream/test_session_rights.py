"""Rights, and logging in again."""

from __future__ import annotations

import pytest

from fakebrokers.rabbitmq_stream.access import Permission, User
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import (
    Close,
    Create,
    CreateSuperStream,
    DeclarePublisher,
    Delete,
    DeleteSuperStream,
    Metadata,
    MetadataUpdate,
    Partitions,
    PublishError,
    QueryOffset,
    QueryPublisherSequence,
    Request,
    ResolveOffsetSpec,
    Route,
    SaslAuthenticate,
    SaslAuthenticateResponse,
    StoreOffset,
    StreamStats,
)
from fakebrokers.rabbitmq_stream.profile import V3_10, V4_0, V4_3, Profile
from fakebrokers.rabbitmq_stream.publishing import publish
from tests.rabbitmq_stream.bench import (
    PLAIN,
    Bench,
    Client,
    publishing,
    subscribe,
    times,
    with_stream,
)


def restricted(bench: Bench, **rights: str) -> Client:
    permission = {"configure": "", "write": "", "read": "", **rights}
    bench.broker.access.users["guest"].permissions["/"] = Permission(**permission)
    return bench.open()


@pytest.mark.parametrize(
    ("frame", "right"),
    [
        (Create(1, "t", {}), "configure"),
        (Delete(1, "s"), "configure"),
        (DeclarePublisher(1, 1, "", "s"), "write"),
        (QueryPublisherSequence(1, "r", "s"), "read"),
        (subscribe(), "read"),
        (subscribe(properties={"name": "x" * 256}), None),
        (QueryOffset(1, "app", "s"), "read"),
        (StreamStats(1, "s"), "read"),
        (ResolveOffsetSpec(1, "s", 1, None), "read"),
        (CreateSuperStream(1, "super", ("a",), ("0",), {}), None),
        (DeleteSuperStream(1, "super"), None),
    ],
)
def test_rights(frame: Request, right: str | None) -> None:
    bench = Bench()
    with_stream(bench)
    for rights in ({}, {"configure": ".*"}, {"write": ".*"}, {"read": ".*"}):
        client = restricted(bench, **rights)
        client.send(frame)
        answer = client.frames()[0]
        if right in rights:
            assert answer.code != Code.ACCESS_REFUSED  # type: ignore[attr-defined]
        elif right is not None:
            assert answer.code == Code.ACCESS_REFUSED  # type: ignore[attr-defined]


LOOKUPS = (Metadata(1, ("s", "unknown")), Partitions(2, "super"), Route(3, "0", "super"))


def look_up(profile: Profile, **rights: str) -> list[list[int]]:
    """The codes in the answers to `LOOKUPS` on a broker with a stream and a super stream."""
    bench = Bench(profile)
    with_stream(bench)
    bench.broker.create_super_stream("/", "super", ["p"], ["0"], {}, bench.broker.cluster.nodes[0])
    client = restricted(bench, **rights)
    client.send(*LOOKUPS)
    metadata, *others = client.frames()
    return [[row.code for row in metadata.streams], *[[one.code] for one in others]]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("rights", "codes"),
    [
        ({}, [[16, 16], [16], [16]]),
        ({"configure": ".*"}, [[16, 16], [16], [16]]),
        ({"read": ".*"}, [[1, 2], [1], [16]]),
        ({"write": ".*"}, [[1, 2], [1], [1]]),
        ({"write": "^(s|super)$"}, [[1, 16], [16], [16]]),
    ],
)
def test_lookups_need_rights_on_what_they_tell(rights: dict[str, str], codes: list[list[int]]) -> None:
    answer = look_up(V4_3, **rights)
    assert [sorted(answer[0]), *answer[1:]] == codes


@pytest.mark.parametrize("profile", [V4_0, V3_10])
def test_lookups_of_older_servers_need_no_rights(profile: Profile) -> None:
    answer = look_up(profile)
    assert [sorted(answer[0]), *answer[1:]] == [[1, 2], [1], [1]]


def test_storing_an_offset_needs_the_right_to_read() -> None:
    bench = Bench()
    with_stream(bench)
    restricted(bench, write=".*").send(StoreOffset("app", "s", 5))
    assert bench.broker.stream("s").tracking.offsets == {}
    restricted(bench, read=".*").send(StoreOffset("app", "s", 5))
    assert bench.broker.stream("s").tracking.offsets == {"app": 5}


@pytest.mark.parametrize(
    ("mechanism", "data", "code"),
    [("AMQPLAIN", b"", 20), ("PLAIN", b"\0app\0app", 21), ("PLAIN", b"\0guest\0bad", 8), ("PLAIN", b"", 9)],
)
@pytest.mark.parametrize(("profile", "ended_at"), [(V4_3.with_delays(), 3.0), (V4_0.with_delays(), None)])
def test_logging_in_again_as_somebody_else(
    profile: object, ended_at: float | None, mechanism: str, data: bytes, code: int
) -> None:
    bench = Bench(profile)  # type: ignore[arg-type]
    bench.broker.access.add_user(User("app", "app"))
    client = bench.open(heartbeat=0)
    client.send(SaslAuthenticate(9, mechanism, data))
    bench.advance(10.0)
    assert times(client) == ([0.0] if ended_at is None else [ended_at, ended_at])
    assert client.only(SaslAuthenticateResponse) == SaslAuthenticateResponse(9, code)


def test_rights_are_looked_up_again_with_a_new_login() -> None:
    bench = Bench()
    client = with_stream(bench)
    client.send(Create(6, "t", {}), DeclarePublisher(7, 1, "", "s"), subscribe(1, stream="t"))
    bench.broker.access.users["guest"].permissions["/"] = Permission(write="", read=".*")
    client.sent.clear()
    client.send(SaslAuthenticate(9, "PLAIN", PLAIN), publish(1, [(1, b"x")]))
    assert client.frames() == [
        SaslAuthenticateResponse(9, 1),
        MetadataUpdate(6, "s"),
        PublishError(1, ((1, 18),)),
    ]
    assert list(client.session.describe()["subscriptions"]) == [1]


@pytest.mark.parametrize(("profile", "code"), [(V4_3, 12), (V4_0, 1)])
def test_logging_in_again_without_access_to_the_virtual_host(profile: Profile, code: int) -> None:
    bench = Bench(profile)
    client = bench.open()
    bench.broker.access.users["guest"].permissions.clear()
    client.send(SaslAuthenticate(9, "PLAIN", PLAIN))
    assert client.only(SaslAuthenticateResponse) == SaslAuthenticateResponse(9, code)
    assert client.ended is (code == 12)


def test_a_stream_that_was_lost_with_its_rights_is_not_lost_again() -> None:
    bench = Bench()
    client = publishing(bench)
    bench.broker.access.users["guest"].permissions["/"] = Permission(write="")
    client.send(SaslAuthenticate(9, "PLAIN", PLAIN))
    client.sent.clear()
    bench.broker.delete("s", bench.now)
    assert client.frames() == []


def test_old_servers_do_not_know_it() -> None:
    client = Bench(V3_10).open()
    client.send(SaslAuthenticate(9, "PLAIN", PLAIN))
    assert client.only(Close).code == Code.UNKNOWN_FRAME
