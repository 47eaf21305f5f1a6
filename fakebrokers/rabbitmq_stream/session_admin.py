"""Requests about streams and super streams (docs/protocols/rabbitmq-stream.md, 3 and 9)."""

from __future__ import annotations

from collections.abc import Iterable

from fakebrokers.rabbitmq_stream.arguments import parse_name
from fakebrokers.rabbitmq_stream.cluster import Node
from fakebrokers.rabbitmq_stream.codes import NO_LEADER, Code
from fakebrokers.rabbitmq_stream.frames import (
    Create,
    CreateSuperStream,
    Delete,
    DeleteSuperStream,
    Metadata,
    MetadataResponse,
    Partitions,
    PartitionsResponse,
    Route,
    RouteResponse,
    StreamStats,
    StreamStatsResponse,
)
from fakebrokers.rabbitmq_stream.session_base import Handlers, SessionBase
from fakebrokers.rabbitmq_stream.wiretypes import BrokerAddress, StreamMetadata


class Admin:
    """Creates, deletes and looks up streams and super streams."""

    def __init__(self, session: SessionBase) -> None:
        self.handlers: Handlers = {
            Create: self._create,
            Delete: self._delete,
            Metadata: self._metadata,
            StreamStats: self._stats,
            Route: self._route,
            Partitions: self._partitions,
            CreateSuperStream: self._create_super_stream,
            DeleteSuperStream: self._delete_super_stream,
        }
        self._session = session

    def _create(self, frame: Create, now: float) -> None:
        session = self._session
        session.require("configure", parse_name(frame.stream))
        session.broker.create(session.host, frame.stream, frame.arguments, session.node)
        session.answer(frame)

    def _delete(self, frame: Delete, now: float) -> None:
        session = self._session
        session.require("configure", frame.stream)
        stream = session.broker.remove(session.host, frame.stream)
        session.answer(frame)
        session.broker.announce([stream], now)

    def _metadata(self, frame: Metadata, now: float) -> None:
        """Nodes by address; streams in the order of the server's map, which is not that of the request."""
        session = self._session
        names = sorted(set(frame.streams), key=lambda name: name.encode(errors="surrogateescape"))
        known = [session.broker.streams.get((session.host, name)) for name in names]
        places = [stream.membership for stream in known if stream is not None]
        members = [node for place in places if place.available for node in place.members if node.up]
        used = {session.address_of(node) for node in members}
        references = {address: reference for reference, address in enumerate(sorted(used))}

        def refer(nodes: Iterable[Node]) -> tuple[int, ...]:
            return tuple([references[session.address_of(node)] for node in nodes if node.up])

        rows = []
        for name, stream in zip(names, known, strict=True):
            if stream is None:
                rows.append(StreamMetadata(name, Code.STREAM_DOES_NOT_EXIST, NO_LEADER, ()))
            elif not stream.membership.available:
                rows.append(StreamMetadata(name, Code.STREAM_NOT_AVAILABLE, NO_LEADER, ()))
            else:
                place = stream.membership
                leader = refer([place.leader] if place.leader else [])
                rows.append(
                    StreamMetadata(name, Code.OK, leader[0] if leader else NO_LEADER, refer(place.replicas))
                )
        brokers = tuple([BrokerAddress(number, *address) for address, number in references.items()])
        session.say(MetadataResponse(frame.correlation_id, brokers, tuple(reversed(rows))))

    def _stats(self, frame: StreamStats, now: float) -> None:
        session = self._session
        session.require("read", frame.stream)
        stream = session.broker.find_member(session.host, frame.stream, session.node)
        stats = stream.stats(now)
        numbers = {"committed_chunk_id": stats.committed_chunk_id}
        if session.profile.committed_offset_stat:
            numbers["committed_offset"] = stats.committed_offset
        numbers |= {"first_chunk_id": stats.first_chunk_id, "last_chunk_id": stats.last_chunk_id}
        session.say(StreamStatsResponse(frame.correlation_id, Code.OK, numbers))

    def _route(self, frame: Route, now: float) -> None:
        session = self._session
        streams = session.broker.find_super_stream(session.host, frame.super_stream).route(frame.routing_key)
        session.say(RouteResponse(frame.correlation_id, Code.OK, tuple(streams)))

    def _partitions(self, frame: Partitions, now: float) -> None:
        session = self._session
        partitions = session.broker.find_super_stream(session.host, frame.super_stream).partitions
        session.say(PartitionsResponse(frame.correlation_id, Code.OK, tuple(partitions)))

    def _create_super_stream(self, frame: CreateSuperStream, now: float) -> None:
        session = self._session
        self._require_all(frame.name, frame.partitions)
        session.broker.create_super_stream(
            session.host, frame.name, frame.partitions, frame.binding_keys, frame.arguments, session.node
        )
        session.answer(frame)

    def _delete_super_stream(self, frame: DeleteSuperStream, now: float) -> None:
        session = self._session
        found = session.broker.super_streams.get((session.host, frame.name))
        self._require_all(frame.name, found.partitions if found else ())
        streams = session.broker.remove_super_stream(session.host, frame.name)
        session.answer(frame)
        session.broker.announce(streams, now)

    def _require_all(self, super_stream: str, partitions: Iterable[str]) -> None:
        """Rights on the exchange, on each partition, and to bind them."""
        session = self._session
        session.require("configure", super_stream)
        session.require("read", super_stream)
        for partition in partitions:
            session.require("configure", partition)
            session.require("write", partition)
