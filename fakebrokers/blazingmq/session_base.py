"""What the parts of a session share: who the client is, its queues, and its answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fakebrokers.blazingmq.broker import BlazingBroker
from fakebrokers.blazingmq.cluster import Node
from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.codes import Category
from fakebrokers.blazingmq.frames import ClientIdentity, Request, StatusResponse
from fakebrokers.blazingmq.handle import Handle
from fakebrokers.blazingmq.message import Message
from fakebrokers.blazingmq.options import SubscriptionInfo
from fakebrokers.blazingmq.profile import PROPERTIES_EX
from fakebrokers.blazingmq.refusals import Refused
from fakebrokers.blazingmq.states import STATES, State
from fakebrokers.core.frames import Frame
from fakebrokers.core.session import Session

Handlers = Mapping[type[Frame], Callable[[Any, float], None]]


class SessionBase(Session):
    """The core that handlers work with.

    Attributes:
        broker: What all connections share.
        profile: Which broker this is.
        codec: Of this connection.
        node: The broker that the client has reached.
        identity: What the client says of itself, once it has.
        handles: To queues, by the client's numbers.
        lost: Whether the client, if it were gone now, would be lost: it has not said that it goes, and the
            broker has not ended the connection itself.
    """

    state: State

    def __init__(self, broker: BlazingBroker, codec: BlazingCodec, node: Node) -> None:
        self.broker = broker
        self.profile = broker.profile
        self.codec = codec
        self.node = node
        self.state = State.CONNECTED
        self.identity: ClientIdentity | None = None
        self.handles: dict[int, Handle] = {}
        self.lost = True

    @property
    def makes_guids(self) -> bool:
        """Whether the client makes the GUIDs of its messages (the C++ SDK); else it counts them."""
        info = self.identity.guid_info if self.identity is not None else None
        return info is not None and bool(info.client_id)

    @property
    def knows_new_properties(self) -> bool:
        """Whether the client reads properties in the new style."""
        return self.identity is not None and has_feature(self.identity.features, PROPERTIES_EX)

    @property
    def takes_messages(self) -> bool:
        """Whether messages may be delivered to the client."""
        return STATES[self.state].delivers and self.link.writable

    @abstractmethod
    def push(
        self, handle: Handle, message: Message, infos: Sequence[SubscriptionInfo], out_of_order: bool
    ) -> None:
        """Deliver a message; see `handle.Client`."""

    def refuse(self, request: Request, refused: Refused) -> None:
        """Answer a request with a status."""
        self.link.say(StatusResponse(request.r_id, refused.category, refused.code, refused.text))

    def end(self) -> None:
        """Hang up."""
        if self.state is not State.ENDED:
            self.state = State.ENDED
            self.link.hang_up()


def has_feature(features: str, wanted: str) -> bool:
    """Whether ``FIELD:VALUE`` is among ``FIELD:VALUE,VALUE;FIELD:VALUE``."""
    field, _, value = wanted.partition(":")
    for part in features.split(";"):
        name, _, values = part.partition(":")
        if name == field:
            return value in values.split(",")
    return False


def unknown(text: str) -> Refused:
    """The broker has no such thing."""
    return Refused(Category.E_UNKNOWN, text)
