"""Who is told that a stream is gone, several nodes, rights."""

from __future__ import annotations

import pytest

from fakebrokers.core.frames import Frame
from fakebrokers.rabbitmq_stream.cluster import Cluster, Node
from fakebrokers.rabbitmq_stream.codes import NO_LEADER
from fakebrokers.rabbitmq_stream.frames import (
    Create,
    CreateResponse,
    CreateSuperStream,
    DeclarePublisher,
    DeclarePublisherResponse,
    Delete,
    DeletePublisher,
    DeleteResponse,
    DeleteSuperStream,
    DeleteSuperStreamResponse,
    Metadata,
    MetadataResponse,
    MetadataUpdate,
    Open,
    OpenResponse,
    QueryOffset,
    QueryPublisherSequence,
    StoreOffset,
    StreamStats,
    SubscribeResponse,
    Unsubscribe,
)
from fakebrokers.rabbitmq_stream.wiretypes import BrokerAddress, StreamMetadata
from tests.rabbitmq_stream.bench import (
    EOF,
    Bench,
    subscribe,
    with_stream,
)

# --- who is told that a stream is gone ---------------------------------------------------------


@pytest.mark.parametrize(
    ("frames", "told"),
    [
        ([DeclarePublisher(1, 1, "", "s")], True),
        ([subscribe()], True),
        ([QueryOffset(1, "app", "s")], True),
        ([StoreOffset("app", "s", 1)], True),
        ([StoreOffset("a" * 255, "s", 1)], True),
        ([StoreOffset("a" * 256, "s", 1)], False),
        ([StoreOffset("ä" * 128, "s", 1)], False),
        ([Metadata(1, ("s",))], False),
        ([QueryPublisherSequence(1, "r", "s")], False),
        ([StreamStats(1, "s")], False),
        ([DeclarePublisher(1, 1, "", "s"), DeletePublisher(2, 1)], False),
        ([subscribe(), Unsubscribe(1, 1)], False),
        ([subscribe(), DeclarePublisher(1, 1, "", "s"), Unsubscribe(1, 1)], True),
        ([subscribe(), DeclarePublisher(1, 1, "", "s"), subscribe(2)], True),
    ],
)
def test_who_uses_a_stream_is_told_once(frames: list[Frame], told: bool) -> None:
    bench = Bench()
    with_stream(bench)
    client = bench.open()
    client.send(*frames)
    client.sent.clear()
    bench.broker.delete("s", bench.now)
    assert client.frames() == ([MetadataUpdate(6, "s")] if told else [])


def test_who_deletes_is_answered_first() -> None:
    client = with_stream(Bench())
    client.send(subscribe())
    client.sent.clear()
    client.send(Delete(9, "s"))
    assert client.frames() == [DeleteResponse(9, 1), MetadataUpdate(6, "s")]


def test_deleting_a_super_stream_is_told_per_partition() -> None:
    client = Bench().open()
    client.send(CreateSuperStream(1, "super", ("a", "b", "c"), ("0", "1", "2"), {}))
    client.send(subscribe(1, stream="c"), DeclarePublisher(2, 1, "", "a"))
    client.sent.clear()
    client.send(DeleteSuperStream(9, "super"))
    updates = [frame for frame in client.frames() if isinstance(frame, MetadataUpdate)]
    assert updates == [MetadataUpdate(6, "a"), MetadataUpdate(6, "c")]


def test_deleting_the_super_stream_without_a_name_deletes_all_streams() -> None:
    """Measured with 4.3.6: to the default exchange every stream is bound."""
    client = Bench().open()
    client.send(CreateSuperStream(1, "super", ("a", "b"), ("0", "1"), {}), Create(2, "c", {}))
    client.sent.clear()
    client.send(DeleteSuperStream(9, ""), Metadata(10, ("a", "c")))
    answer, found = client.frames()
    assert answer == DeleteSuperStreamResponse(9, 1)
    assert isinstance(found, MetadataResponse) and {row.code for row in found.streams} == {2}


@pytest.mark.parametrize("name", [b"a\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80"])
def test_a_name_that_is_not_utf_8_ends_the_connection(name: bytes) -> None:
    """Measured with 4.3.6: FIN, and no frame."""
    text = name.decode("utf-8", "surrogateescape")
    for frame in (Create(9, text, {}), CreateSuperStream(9, "super", ("good", text), ("0", "1"), {})):
        bench = Bench()
        client = bench.open()
        client.send(frame)
        assert client.frames() == [] and client.sent[-1][1] is EOF
        assert bench.broker.streams == {} == bench.broker.super_streams


# --- several nodes -----------------------------------------------------------------------------


def nodes(count: int) -> list[Node]:
    return [Node(f"n{number}", f"host{number}", 6000 + number) for number in range(count)]


def test_metadata_names_the_nodes_by_address() -> None:
    n0, n1, n2 = cluster = nodes(3)
    bench = Bench(nodes=cluster)
    client = bench.open(n2)
    client.send(
        Create(5, "a", {}), Create(6, "b", {"initial-cluster-size": "1"}), Metadata(7, ("a", "x", "b"))
    )
    assert client.frames()[-1] == MetadataResponse(
        7,
        tuple([BrokerAddress(number, f"host{number}", 6000 + number) for number in range(3)]),
        (
            StreamMetadata("x", 2, NO_LEADER, ()),
            StreamMetadata("b", 1, 2, ()),
            StreamMetadata("a", 1, 2, (0, 1)),
        ),
    )
    assert n0 is not n1


def test_metadata_lists_only_nodes_that_are_used_and_up() -> None:
    n0, n1, _ = cluster = nodes(3)
    bench = Bench(nodes=cluster)
    client = bench.open(n0)
    client.send(Create(5, "a", {"initial-cluster-size": "2"}))
    n1.up = False
    client.sent.clear()
    client.send(Metadata(7, ("a",)))
    assert client.only(MetadataResponse).brokers == (BrokerAddress(0, "host0", 6000),)
    bench.broker.stream("a").membership.available = False
    client.send(Metadata(7, ("a",)))
    assert client.only(MetadataResponse) == MetadataResponse(7, (), (StreamMetadata("a", 6, NO_LEADER, ()),))


def test_metadata_of_a_stream_without_leader() -> None:
    cluster = nodes(2)
    bench = Bench(nodes=cluster)
    client = bench.open()
    client.send(Create(5, "a", {}))
    bench.broker.move_leader("a", None, bench.now)
    client.sent.clear()
    client.send(Metadata(7, ("a",)), DeclarePublisher(8, 1, "", "a"))
    answer, refused = client.frames()
    assert isinstance(answer, MetadataResponse)
    assert answer.streams == (StreamMetadata("a", 1, NO_LEADER, (0, 1)),)
    assert refused == DeclarePublisherResponse(8, 6)


def test_consumers_need_a_member_on_their_node() -> None:
    n0, n1 = cluster = nodes(2)
    bench = Bench(nodes=cluster)
    first, second = bench.open(n0), bench.open(n1)
    first.send(Create(5, "a", {"initial-cluster-size": "1"}))
    second.send(subscribe(stream="a"), DeclarePublisher(6, 1, "", "a"))
    assert second.frames() == [SubscribeResponse(50, 6), DeclarePublisherResponse(6, 1)]


def test_open_tells_the_address_of_the_node_that_was_reached() -> None:
    cluster = nodes(2)
    bench = Bench()
    bench.broker.cluster = Cluster(cluster, load_balancer=True)
    for expected in ("6000", "6001", "6000"):
        client = bench.connect(cluster[0]).handshake("tuned")
        client.send(Open(4, "/"))
        assert (client.only(OpenResponse).properties or {})["advertised_port"] == expected


def test_a_node_that_dies_takes_its_connections_along() -> None:
    n0, n1 = cluster = nodes(2)
    bench = Bench(nodes=cluster)
    first, second = bench.open(n0), bench.open(n1)
    first.send(Create(5, "a", {}))
    second.send(subscribe(stream="a"))
    second.sent.clear()
    bench.broker.stop_node(n0, bench.now)
    assert first.ended
    assert second.frames() == [MetadataUpdate(6, "a")]
    assert bench.connect(n0).ended
    bench.broker.start_node(n0, bench.now)
    again = bench.connect(n0).handshake("open")
    again.send(Create(6, "b", {}))
    assert again.frames() == [CreateResponse(6, 1)]
