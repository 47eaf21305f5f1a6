"""Requests about streams and super streams (docs/protocols/rabbitmq-stream.md, 3 and 9)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from fakebrokers.rabbitmq_stream.access import Right
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
from fakebrokers.rabbitmq_stream.refusals import Crashed, Refused
from fakebrokers.rabbitmq_stream.session_base import Handlers, SessionBase
from fakebrokers.rabbitmq_stream.wiretypes import BrokerAddress, StreamMetadata

#: one of these rights is enough for Metadata and Partitions
_LOOK_UP: tuple[Right, ...] = ("read", "write")


class Admin:
    """Creates, deletes and looks up streams and super streams."""

    def __init__(self, session: SessionBase) -> None:
        self._session = session

    def _create(self, frame: Create, now: float) -> None:
        session = self._session
        _check_text(frame.stream)
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
        refused = {name for name in names if not self._may_look_up(name)}
        known = [session.broker.streams.get((session.host, name)) for name in names if name not in refused]
        found = {stream.name: stream for stream in known if stream is not None}
        places = [stream.membership for stream in found.values()]
        members = [node for place in places if place.available for node in place.members if node.up]
        used = {session.address_of(node) for node in members}
        references = {address: reference for reference, address in enumerate(sorted(used))}

        def refer(nodes: Iterable[Node]) -> tuple[int, ...]:
            return tuple([references[session.address_of(node)] for node in nodes if node.up])

        rows = []
        for name in names:
            stream = found.get(name)
            if name in refused:
                rows.append(StreamMetadata(name, Code.ACCESS_REFUSED, NO_LEADER, ()))
            elif stream is None:
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
        checked = session.profile.checks_lookups
        if checked:
            session.require("write", frame.super_stream)
        streams = session.broker.find_exchange(session.host, frame.super_stream).route(frame.routing_key)
        for stream in streams if checked else ():
            session.require("write", stream)
        session.say(RouteResponse(frame.correlation_id, Code.OK, tuple(streams)))

    def _partitions(self, frame: Partitions, now: float) -> None:
        session = self._session
        self._require_look_up(frame.super_stream)
        partitions = session.broker.find_exchange(session.host, frame.super_stream).partitions
        for partition in partitions:
            self._require_look_up(partition)
        session.say(PartitionsResponse(frame.correlation_id, Code.OK, tuple(partitions)))

    def _create_super_stream(self, frame: CreateSuperStream, now: float) -> None:
        session = self._session
        _check_text(*frame.partitions)
        self._require_all(parse_name(frame.name), frame.partitions)
        session.broker.create_super_stream(
            session.host, frame.name, frame.partitions, frame.binding_keys, frame.arguments, session.node
        )
        session.answer(frame)

    def _delete_super_stream(self, frame: DeleteSuperStream, now: float) -> None:
        session = self._session
        session.require("configure", frame.name)
        if not frame.name:  # the exchange to which all streams are bound, and which stays
            partitions = session.broker.find_exchange(session.host, "").partitions
            self._require_all("", partitions)
            streams = [session.broker.remove(session.host, partition) for partition in partitions]
        else:
            self._require_all(
                frame.name, session.broker.find_super_stream(session.host, frame.name).partitions
            )
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

    def _may_look_up(self, resource: str) -> bool:
        """Whether the user may read or write it, or the server does not ask."""
        session = self._session
        return not session.profile.checks_lookups or (
            session.user is not None
            and any(session.user.may(right, session.host, resource) for right in _LOOK_UP)
        )

    def _require_look_up(self, resource: str) -> None:
        """Demand the right to read or to write.

        Raises:
            Refused: Code 16.
        """
        if not self._may_look_up(resource):
            raise Refused(Code.ACCESS_REFUSED)

    #: Who handles what.
    HANDLERS: ClassVar[Handlers] = {
        Create: _create,
        Delete: _delete,
        Metadata: _metadata,
        StreamStats: _stats,
        Route: _route,
        Partitions: _partitions,
        CreateSuperStream: _create_super_stream,
        DeleteSuperStream: _delete_super_stream,
    }


def _check_text(*names: str) -> None:
    """Check that new streams can be called so.

    Raises:
        Crashed: A name is not UTF-8: nobody answers.
    """
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:  # of the bytes that stand for themselves
            raise Crashed(f"expected UTF-8, got {name!r}") from None
