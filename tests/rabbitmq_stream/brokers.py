"""Brokers without sessions for tests."""

from __future__ import annotations

import pytest

from fakebrokers.rabbitmq_stream.broker import StreamBroker
from fakebrokers.rabbitmq_stream.cluster import Cluster, Node
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.refusals import Refused
from fakebrokers.rabbitmq_stream.stream import Stream


def new_broker(nodes: int = 1, **options: object) -> StreamBroker:
    cluster = Cluster([Node(f"n{number}", port=5552 + number) for number in range(nodes)])
    return StreamBroker(wall=lambda now: now, cluster=cluster, **options)  # type: ignore[arg-type]


def create(broker: StreamBroker, name: str = "s", **arguments: str) -> Stream:
    wire = {key.replace("_", "-"): value for key, value in arguments.items()}
    return broker.create("/", name, wire, broker.cluster.nodes[0])


def refusal(act: object, *arguments: object) -> Code:
    with pytest.raises(Refused) as caught:
        act(*arguments)  # type: ignore[operator]
    return caught.value.code


class Watching:
    """A connection that uses streams."""

    def __init__(self, *streams: Stream) -> None:
        self.lost: list[tuple[str, float]] = []
        for stream in streams:
            stream.watchers[self] = None

    def stream_lost(self, stream: Stream, now: float) -> None:
        self.lost.append((stream.name, now))


def create_super(broker: StreamBroker, *partitions: str, keys: tuple[str, ...] = ()) -> None:
    names = tuple(str(number) for number in range(len(partitions)))
    broker.create_super_stream("/", "super", partitions, keys or names, {}, broker.cluster.nodes[0])
