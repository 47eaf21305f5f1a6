"""The reference client: connecting, reconnecting, closing, and requests about streams."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any

from conformance.mutants.rabbitmq_stream.consuming import Consuming
from conformance.mutants.rabbitmq_stream.errors import ClientError
from conformance.mutants.rabbitmq_stream.link import Link
from conformance.mutants.rabbitmq_stream.publisher import Publisher
from conformance.mutants.rabbitmq_stream.subscription import Subscription
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import Create, Delete


class StreamClient(Consuming):
    """A small correct client of RabbitMQ Stream; `base.Base` says what its arguments are.

    One connection carries the requests, and everything else whose node it leads to; further nodes get
    connections of their own when a stream lives there.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._failures = 0
        self._connecting: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    # life

    async def connect(self, timeout: float | None = None) -> None:
        """Connect to the first endpoint that works. Raises `ClientError`."""
        deadline = self.deadline(timeout)
        self._connecting = self.spawn(self._connect_first(deadline))
        try:
            await self.join(self._connecting, deadline + 0.1)
        except asyncio.CancelledError:
            self._connecting.cancel()
            raise

    async def _connect_first(self, deadline: float) -> None:
        await self.connect_control(deadline)
        self.tell("connected")  # at once: a loss that follows is told behind it

    async def connect_control(self, deadline: float) -> None:
        """Try the endpoints in turn, each with its share of the time."""
        problem = ClientError("invalid", "there is no endpoint")
        for number, endpoint in enumerate(self.endpoints):
            share = (deadline - self.now()) / (len(self.endpoints) - number)
            try:
                self.control = await self.open_link(endpoint, self.now() + share)
            except ClientError as error:
                problem = error
                if error.kind == "auth":
                    break
                continue
            return
        raise problem

    async def close(self, timeout: float | None = None) -> None:
        """End everything gracefully. May be called twice. Raises `ClientError` (timeout)."""
        deadline = self.deadline(timeout)
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(deadline))
        await self.join(self._closing, deadline + 0.1)

    async def _close(self, deadline: float) -> None:
        self.is_closed = True
        for task in tuple(self.tasks):
            task.cancel()
        for publisher in self.publishers.values():
            publisher.is_closed = True
        ended = list(self.subscriptions)
        for subscription in ended:
            self.stop(subscription)
        closes = [link.close(deadline) for link in self.links]
        answers = await asyncio.gather(*closes, return_exceptions=True)
        self.end_publishers(ClientError("closed", "the client was closed", definite=False))
        self.progress()
        await self.settled(ended, deadline)
        for problem in answers:
            if isinstance(problem, ClientError):
                raise problem

    def abort(self) -> None:
        """Drop everything; no Close is sent."""
        self.is_closed = True
        for task in (*self.tasks, *self.subscriptions.values()):
            task.cancel()
        for subscription in self.subscriptions:
            self.stop(subscription)
        error = ClientError("closed", "the client was dropped", definite=False)
        for link in tuple(self.links):
            link.drop(error)
        self.end_publishers(error)
        self.subscriptions.clear()
        self.progress()

    def end_publishers(self, error: ClientError) -> None:
        """Nothing will be confirmed any more."""
        for publisher in self.publishers.values():
            publisher.is_closed = True
            publisher.end_all(error)
        self.end_timers()

    # losses

    def link_ended(self, link: Link, error: ClientError) -> None:
        if link in self.links:
            self.links.remove(link)
        users = self.users_of(link)
        lost = ClientError("connection", error.text, code=error.code, definite=False)
        for user in users:
            self.detach(user, lost)
        if link is self.control:
            self.control = None
        if self.is_closed:
            return
        if self.now() - (link.opened_at or 0.0) > self.settings.longest_delay_s:
            self._failures = 0
        self.is_reconnecting = self.control is None and self.settings.auto_reconnect
        self.tell("connection_lost", error.text, error.code)
        if self.is_closed:
            return
        if self.is_reconnecting and self.control is None:
            self.spawn(self.reconnect())
        self.recover_all(users, lost)
        self.progress()

    def users_of(self, link: Link, stream: str | None = None) -> list[Publisher | Subscription]:
        """Who lives on a connection."""
        found: list[Publisher | Subscription] = []
        found += link.core.publishers.values()
        found += link.core.subscriptions.values()
        return [user for user in found if stream in (None, user.stream)]

    def detach(self, user: Publisher | Subscription, error: ClientError) -> None:
        """A publisher or a subscription has lost its connection."""
        if isinstance(user, Publisher):
            user.detach(error)
        else:
            user.detach()

    async def reconnect(self) -> None:
        """Try again and again, with growing pauses, until it works or the server refuses the login."""
        self.tell("reconnecting")
        while True:
            await asyncio.sleep(self.delay(self._failures))
            self._failures += 1
            try:
                await self.connect_control(self.deadline(None))
            except ClientError as error:
                if self.is_final(error):
                    self.give_up(error)
                    return
                continue
            self.is_reconnecting = False
            self.tell("reconnected")
            self.progress()
            return

    def is_final(self, error: ClientError) -> bool:
        """Whether another attempt can only fail the same way."""
        return error.kind == "auth"

    def give_up(self, error: ClientError) -> None:
        """There will be no connection any more."""
        self.is_reconnecting = False
        self.trouble("other", error)
        self.tell("disconnected", error.text, error.code)
        self.end_publishers(ClientError("closed", error.text, code=error.code, definite=False))
        self.progress()

    # streams that move or go

    def stream_moved(self, link: Link, stream: str, code: int) -> None:
        users = self.users_of(link, stream)
        error = ClientError("connection", f"{stream} has moved or is gone", code=code, definite=False)
        for user in users:
            self.detach(user, error)
        self.recover_all(users, error)

    def publisher_lost(self, publisher: Publisher) -> None:
        error = ClientError("closed", "the server does not know the publisher", code=18, definite=False)
        publisher.detach(error)
        self.recover_all([publisher], error)

    def recover_all(self, users: list[Publisher | Subscription], error: ClientError) -> None:
        """Bring publishers and subscriptions back to life, or tell that they are gone."""
        for user in users:
            if user.is_closed:
                continue
            if self.settings.auto_reconnect:
                self.recovering.add(user)
                self.spawn(self.recover(user))
            else:
                self.close_user(user, error)

    async def recover(self, user: Publisher | Subscription) -> None:
        """Ask where the stream is now and go there, until it works or there is no such stream."""
        failures = 0
        try:
            while True:
                await self.until(lambda: self.control is not None, math.inf)
                if user.is_closed:
                    return
                try:
                    await self.reattach(user)
                    return
                except ClientError as error:
                    if error.code == Code.STREAM_DOES_NOT_EXIST:
                        self.close_user(user, error)
                        return
                await asyncio.sleep(self.delay(failures))
                failures += 1
        finally:
            self.recovering.discard(user)
            self.progress()

    async def reattach(self, user: Publisher | Subscription) -> None:
        """Declare or subscribe again."""
        if isinstance(user, Publisher):
            await self.declare(user, self.deadline(None))
        else:
            await self.place(user, self.deadline(None))

    def close_user(self, user: Publisher | Subscription, error: ClientError) -> None:
        """A publisher or a subscription is over, and its user has to know."""
        user.is_closed = True
        if isinstance(user, Publisher):
            self.publishers.pop((user.stream, user.name), None)
            user.end_all(error)
        else:
            self.stop(user)
            self.subscriptions.pop(user, None)
        self.tell("target_closed", error.text, error.code, user.stream)

    # streams

    async def create(
        self, stream: str, arguments: Mapping[str, str] | None = None, timeout: float | None = None
    ) -> None:
        """Create a stream. Raises `ClientError`: refused (5) if it exists."""
        deadline = self.deadline(timeout)
        link = await self.control_link(deadline)
        await link.ask(Create, stream, dict(arguments or {}), deadline=deadline)

    async def delete(self, stream: str, timeout: float | None = None) -> None:
        """Delete a stream. Raises `ClientError`: refused (2) if there is none."""
        deadline = self.deadline(timeout)
        link = await self.control_link(deadline)
        await link.ask(Delete, stream, deadline=deadline)

    # what tests turn

    def set_counter(self, which: str, value: int) -> None:
        """Continue counting elsewhere: ``correlation`` and ``request`` ids, or ``publishing`` ids."""
        if which == "publishing":
            for publisher in self.publishers.values():
                publisher.next_id = value
        else:
            for link in self.links:
                link.core.next_correlation = value

    def give_credit(self, subscription: Subscription, chunks: int) -> None:
        """Let more chunks come, besides those that the client asks for by itself."""
        if subscription.connection is not None:
            subscription.connection.give_credit(subscription.subscription_id, chunks)
            subscription.connection.owner.flush()

    # looking

    @property
    def is_open(self) -> bool:
        """Whether there is a connection; without the one for requests others may still carry messages."""
        return not self.is_closed and any(link.is_open for link in self.links)

    @property
    def pending(self) -> int:
        """Requests without an answer, and messages without an outcome."""
        requests = sum(len(link.core.waiting) for link in self.links)
        return requests + sum(len(publisher.pending) for publisher in self.publishers.values())

    @property
    def buffered_bytes(self) -> int:
        """Bodies that are kept here: unconfirmed, or waiting for the application."""
        arrivals = [arrival for one in self.subscriptions for arrival in one.arrivals]
        unconfirmed = sum(publisher.unconfirmed_bytes for publisher in self.publishers.values())
        return unconfirmed + sum(len(arrival.chunk.data) for arrival in arrivals)
