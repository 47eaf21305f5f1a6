"""The connections of a client: the one for requests, and those to further nodes."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.rabbitmq_stream.link import Link

if TYPE_CHECKING:
    from conformance.clients.reference.rabbitmq_stream.client import StreamClient


class Links:
    """Makes connections, and lets others wait for the one that requests go to.

    Args:
        endpoints: ``host:port`` of the servers to begin with.

    Attributes:
        control: The connection that requests go to, or None while there is none.
        all: All open connections.
        is_reconnecting: Whether `control` is being made anew.
    """

    def __init__(self, client: StreamClient, endpoints: Sequence[str]) -> None:
        self.client = client
        self.runtime = client.runtime
        self.endpoints = list(endpoints)
        self.control: Link | None = None
        self.all: list[Link] = []
        self.is_reconnecting = False
        self._waiters: list[asyncio.Future[None]] = []

    async def open(self, endpoint: str, deadline: float) -> Link:
        """A new connection, with its handshake done. Raises `ClientError`."""
        link = self.runtime.part(Link)(self.client, endpoint)
        await link.open(deadline)
        if not link.is_open:  # its end came in one segment with the last answer of the handshake
            raise ClientError("connection", f"{endpoint}: lost right after the handshake", definite=True)
        self.all.append(link)
        return link

    async def connect_control(self, deadline: float) -> None:
        """Try the endpoints in turn, each with its share of the time."""
        problem = ClientError("invalid", "there is no endpoint")
        clock = self.runtime.clock
        for number, endpoint in enumerate(self.endpoints):
            share = (deadline - clock.now()) / (len(self.endpoints) - number)
            try:
                self.control = await self.open(endpoint, clock.now() + share)
            except ClientError as error:
                problem = error
                if error.kind == "auth":
                    break
                continue
            return
        raise problem

    async def control_link(self, deadline: float) -> Link:
        """The connection for requests, as soon as there is one. Raises `ClientError`."""
        await self.until(lambda: self.control is not None, deadline)
        assert self.control is not None
        return self.control

    async def until(self, condition: Callable[[], bool], deadline: float = math.inf) -> None:
        """Wait for something that `progress` announces. Raises `ClientError`."""
        while not condition():
            if self.runtime.is_closed:
                raise ClientError("closed", "the client is closed", definite=True)
            if self.control is None and not self.is_reconnecting:
                raise ClientError("connection", "not connected", definite=True)
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            moment = None if deadline == math.inf else self.runtime.clock.loop_time(deadline)
            try:
                async with asyncio.timeout_at(moment):
                    await waiter
            except TimeoutError:
                raise ClientError("timeout", "no connection in time") from None

    def progress(self) -> None:
        """Something has changed that a task may wait for."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
