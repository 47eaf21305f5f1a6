"""What a client does when it has lost a connection, or when a stream moves or goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.clients.reference.kit import Backoff, ClientError
from conformance.clients.reference.kit.ordered import OrderedSet
from conformance.clients.reference.rabbitmq_stream.link import Link
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from conformance.clients.reference.rabbitmq_stream.subscription import Subscription
from fakebrokers.rabbitmq_stream.codes import Code

if TYPE_CHECKING:
    from conformance.clients.reference.rabbitmq_stream.client import StreamClient

User = Publisher | Subscription


class Recovery:
    """Makes anew what was lost, or reports that it is gone.

    Attributes:
        recovering: Publishers and subscriptions that are being brought back.
    """

    def __init__(self, client: StreamClient) -> None:
        self.client = client
        self.runtime = client.runtime
        self.links = client.links
        self.recovering: OrderedSet[User] = OrderedSet()
        self._backoff = self.new_backoff()

    def new_backoff(self) -> Backoff:
        """Pauses as the user wants them."""
        settings = self.client.settings
        return self.runtime.backoff(settings.first_delay_s, settings.longest_delay_s)

    # connections

    def link_ended(self, link: Link, error: ClientError) -> None:
        """A connection is gone."""
        links, callbacks, settings = self.links, self.runtime.callbacks, self.client.settings
        if link in links.all:
            links.all.remove(link)
        users = self.users_of(link)
        lost = ClientError("connection", error.text, code=error.code, definite=False)
        for user in users:
            self.detach(user, lost)
        if link is links.control:
            links.control = None
        if self.runtime.is_closed:
            return
        if self.runtime.clock.now() - (link.opened_at or 0.0) > settings.longest_delay_s:
            self._backoff.reset()
        links.is_reconnecting = links.control is None and settings.auto_reconnect
        callbacks.report("connection_lost", error.text, error.code)
        if self.runtime.is_closed:
            return
        if links.is_reconnecting and links.control is None:
            self.runtime.tasks.spawn(self.reconnect())
        self.recover_all(users, lost)
        self.client.progress()

    def users_of(self, link: Link, stream: str | None = None) -> list[User]:
        """Who lives on a connection."""
        found: list[User] = [*link.core.publishers.values(), *link.core.subscriptions.values()]
        return [user for user in found if stream in (None, user.stream)]

    def detach(self, user: User, error: ClientError) -> None:
        """A publisher or a subscription has lost its connection."""
        if isinstance(user, Publisher):
            user.detach(error)
        else:
            user.detach()

    async def reconnect(self) -> None:
        """Try again and again, with growing pauses, until it works or the server refuses the login."""
        self.runtime.callbacks.report("reconnecting")
        deadline = self.runtime.clock.deadline
        try:
            await self._backoff.retry(lambda: self.links.connect_control(deadline(None)), self.is_final)
        except ClientError as error:
            self.give_up(error)
            return
        self.links.is_reconnecting = False
        self.runtime.callbacks.report("reconnected")
        self.client.progress()

    def is_final(self, error: ClientError) -> bool:
        """Whether another attempt can only fail the same way."""
        return error.kind == "auth"

    def give_up(self, error: ClientError) -> None:
        """There will be no connection any more."""
        self.links.is_reconnecting = False
        self.runtime.callbacks.trouble("other", error)
        self.runtime.callbacks.report("disconnected", error.text, error.code)
        closed = ClientError("closed", error.text, code=error.code, definite=False)
        self.client.publishing.end(closed)
        self.client.progress()

    # streams that move or go

    def stream_moved(self, link: Link, stream: str, code: int) -> None:
        """A connection does not serve a stream any more."""
        users = self.users_of(link, stream)
        error = ClientError("connection", f"{stream} has moved or is gone", code=code, definite=False)
        for user in users:
            self.detach(user, error)
        self.recover_all(users, error)

    def publisher_lost(self, publisher: Publisher) -> None:
        """The server does not know a publisher any more."""
        error = ClientError("closed", "the server does not know the publisher", code=18, definite=False)
        publisher.detach(error)
        self.recover_all([publisher], error)

    def recover_all(self, users: list[User], error: ClientError) -> None:
        """Bring publishers and subscriptions back to life, or report that they are gone."""
        for user in users:
            if user.is_closed:
                continue
            if self.client.settings.auto_reconnect:
                self.recovering.add(user)
                self.runtime.tasks.spawn(self.recover(user))
            else:
                self.close_user(user, error)

    async def recover(self, user: User) -> None:
        """Ask where the stream is now and go there, until it works or there is no such stream."""
        backoff = self.new_backoff()
        try:
            while True:
                await self.links.until(lambda: self.links.control is not None)
                if user.is_closed:
                    return
                try:
                    await self.reattach(user)
                    return
                except ClientError as error:
                    if error.code == Code.STREAM_DOES_NOT_EXIST:
                        self.close_user(user, error)
                        return
                await backoff.pause()
        finally:
            self.recovering.discard(user)
            self.client.progress()

    async def reattach(self, user: User) -> None:
        """Declare or subscribe again."""
        deadline = self.runtime.clock.deadline(None)
        if isinstance(user, Publisher):
            await self.client.publishing.declare(user, deadline)
        else:
            await self.client.consuming.place(user, deadline)

    def close_user(self, user: User, error: ClientError) -> None:
        """A publisher or a subscription is over, and its user has to know."""
        user.is_closed = True
        if isinstance(user, Publisher):
            self.client.publishing.publishers.pop((user.stream, user.name), None)
            user.end_all(error)
        else:
            self.client.consuming.stop(user)
            self.client.consuming.subscriptions.discard(user)
        self.runtime.callbacks.report("target_closed", error.text, error.code, user.stream)
