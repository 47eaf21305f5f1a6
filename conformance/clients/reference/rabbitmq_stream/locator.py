"""Where streams live: Metadata, and connections to the nodes that it names.

See docs/protocols/rabbitmq-stream.md, 9.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.rabbitmq_stream.link import Link
from conformance.clients.reference.rabbitmq_stream.requests import refused
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import Metadata
from fakebrokers.rabbitmq_stream.wiretypes import StreamMetadata

if TYPE_CHECKING:
    from conformance.clients.reference.rabbitmq_stream.client import StreamClient


class Located:
    """Where a stream lives: ``host:port`` of its leader (None: there is none now) and of its replicas."""

    def __init__(self, leader: str | None, replicas: list[str]) -> None:
        self.leader = leader
        self.replicas = replicas


class Locator:
    """Finds the right connection for a publisher or a subscription."""

    def __init__(self, client: StreamClient) -> None:
        self.client = client
        self.runtime = client.runtime
        self.links = client.links
        self._dialling: dict[str, asyncio.Task[Link]] = {}
        self._dialled: dict[str, float] = {}

    async def metadata(self, streams: list[str], deadline: float) -> Any:
        """The server's answer to Metadata. Raises `ClientError`."""
        link = await self.links.control_link(deadline)
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
        return next((link for link in self.links.all if link.is_open and address in link.addresses), None)

    async def link_to(self, address: str, deadline: float) -> Link:
        """A connection to that server, made if there is none."""
        link = self.find_link(address)
        if link is not None:
            return link
        task = self._dialling.get(address)
        if task is None:
            task = self._dialling[address] = self.runtime.tasks.spawn(self.dial(address, deadline))
            task.add_done_callback(lambda _: self._dialling.pop(address, None))
        found = await self.runtime.tasks.join(task, deadline)
        assert isinstance(found, Link)
        return found

    async def dial(self, address: str, deadline: float) -> Link:
        """Connect, but not more often than the first delay allows."""
        earliest = self._dialled.get(address, 0.0) + self.client.settings.first_delay_s
        await asyncio.sleep(max(0.0, min(earliest, deadline) - self.runtime.clock.now()))
        if self.runtime.is_closed:
            raise ClientError("closed", "the client was closed meanwhile", definite=True)
        self._dialled[address] = self.runtime.clock.now()
        try:
            return await self.links.open(address, deadline)
        except ClientError as error:
            # a code of the handshake says nothing of streams
            raise ClientError("connection", error.text, definite=error.definite) from None

    def leave(self, link: Link) -> None:
        """Nobody may need this connection any more: end it, unless it is the one for requests."""
        is_used = link.core.publishers or link.core.subscriptions
        if link is not self.links.control and link.is_open and not is_used:
            self.runtime.tasks.spawn(self._part(link))

    async def _part(self, link: Link) -> None:
        if link in self.links.all:
            self.links.all.remove(link)
        await link.close(self.runtime.clock.deadline(None))
