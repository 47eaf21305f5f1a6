"""Where streams live: Metadata, and connections to the nodes that it names.

See docs/protocols/rabbitmq-stream.md, 9.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.mutants.rabbitmq_stream.base import Base
from conformance.mutants.rabbitmq_stream.errors import ClientError, refused
from conformance.mutants.rabbitmq_stream.link import Link
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import Metadata
from fakebrokers.rabbitmq_stream.wiretypes import StreamMetadata


class Located:
    """Where a stream lives: ``host:port`` of its leader (None: there is none now) and of its replicas."""

    def __init__(self, leader: str | None, replicas: list[str]) -> None:
        self.leader = leader
        self.replicas = replicas


class Locating(Base):
    """Finds the right connection for a publisher or a subscription."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._dialling: dict[str, asyncio.Task[Link]] = {}
        self._dialled: dict[str, float] = {}

    async def metadata(self, streams: list[str], deadline: float) -> Any:
        """The server's answer to Metadata. Raises `ClientError`."""
        link = await self.control_link(deadline)
        return await link.request(Metadata, tuple(streams), deadline=deadline)

    async def locate(self, stream: str, deadline: float) -> Located:
        """Where a stream lives now. Raises `ClientError`; refused (2): nowhere."""
        answer = await self.metadata([stream], deadline)
        entry = self.entry_of(answer, stream)
        if entry.code != Code.OK:
            raise refused(f"Metadata of {stream}", entry.code)
        nodes = {broker.reference: f"{broker.host}:{broker.port}" for broker in answer.brokers}
        replicas = [nodes[reference] for reference in entry.replicas if reference in nodes]
        return Located(nodes.get(entry.leader), replicas)

    def entry_of(self, answer: Any, stream: str) -> StreamMetadata:
        """What is said of one stream: by its name, the order is the server's."""
        for entry in answer.streams:
            if entry.stream == stream:
                return entry  # type: ignore[no-any-return]
        raise ClientError("protocol", f"Metadata says nothing of {stream}")

    async def leader_link(self, stream: str, deadline: float) -> Link:
        """The connection to publish on."""
        where = await self.locate(stream, deadline)
        if where.leader is None:
            text = f"{stream} has no leader now"
            raise ClientError("refused", text, code=Code.STREAM_NOT_AVAILABLE)
        return await self.link_to(where.leader, deadline)

    async def reader_link(self, stream: str, deadline: float) -> Link:
        """A connection to consume on: any member will do, one that is connected first."""
        where = await self.locate(stream, deadline)
        members = [*where.replicas, *([where.leader] if where.leader else [])]
        members.sort(key=lambda address: self.find_link(address) is None)
        problem = ClientError("refused", f"{stream} has no member now", code=Code.STREAM_NOT_AVAILABLE)
        for address in members:
            try:
                return await self.link_to(address, deadline)
            except ClientError as error:
                problem = error
        raise problem

    def find_link(self, address: str) -> Link | None:
        """An open connection to that server."""
        return next((link for link in self.links if link.is_open and address in link.addresses), None)

    async def link_to(self, address: str, deadline: float) -> Link:
        """A connection to that server, made if there is none."""
        link = self.find_link(address)
        if link is not None:
            return link
        task = self._dialling.get(address)
        if task is None:
            task = self._dialling[address] = self.spawn(self._dial_node(address, deadline))
            task.add_done_callback(lambda _: self._dialling.pop(address, None))
        found = await self.join(task, deadline)
        assert isinstance(found, Link)
        return found

    async def _dial_node(self, address: str, deadline: float) -> Link:
        """Connect, but not more often than the first delay allows."""
        earliest = self._dialled.get(address, 0.0) + self.settings.first_delay_s
        await asyncio.sleep(max(0.0, min(earliest, deadline) - self.now()))
        self._dialled[address] = self.now()
        return await self.open_link(address, deadline)

    def leave(self, link: Link) -> None:
        """Nobody may need this connection any more: end it, unless it is the one for requests."""
        is_used = link.core.publishers or link.core.subscriptions
        if link is not self.control and link.is_open and not is_used:
            self.spawn(self._part(link))

    async def _part(self, link: Link) -> None:
        if link in self.links:
            self.links.remove(link)
        await link.close(self.deadline(None))
