"""Control messages as frames (docs/protocols/blazingmq.md, 6.4).

A class is one choice of a message: its first field is the request's number where the message has one, the
others are the elements of the chosen sequence. `CHOICES` says which message a class belongs to, and under
which id.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import ClassVar

from fakebrokers.blazingmq.codes import Category
from fakebrokers.blazingmq.schema import (
    I32,
    U32,
    U64,
    Blob,
    CategoryCode,
    ConfigureQueueStreamRequest,
    ConfigureStreamRequest,
    Flag,
    HandleParameters,
    Identity,
    OpenQueueRequest,
    QueueStreamParameters,
    RoutingConfiguration,
    Status,
    StreamParameters,
    Text,
)
from fakebrokers.core.frames import MECHANISMS, Frame, FrameSpec, Role


class Message(Enum):
    """The outermost types."""

    NEGOTIATION = "NegotiationMessage"
    CONTROL = "ControlMessage"
    AUTHENTICATION = "AuthenticationMessage"


class ControlFrame(Frame, frozen=True, gc=False):
    """A control message.

    Attributes:
        MESSAGE: What it belongs to.
        ID: Its BER id there.
        HEAD: How many fields come before the elements: 1 where there is a number.
    """

    MESSAGE: ClassVar[Message] = Message.CONTROL
    ID: ClassVar[int]
    HEAD: ClassVar[int] = 1
    code_names: ClassVar[Mapping[int, str]] = {category.value: category.name for category in Category}


class ClientIdentity(ControlFrame, Identity, frozen=True):
    """The client says who it is: its first frame. Fields as in `Identity`."""

    way = "in"
    kind = "clientIdentity"
    spec = FrameSpec(Role.HANDSHAKE)
    MESSAGE: ClassVar = Message.NEGOTIATION
    ID: ClassVar = 0
    HEAD: ClassVar = 0


class BrokerResponse(ControlFrame, frozen=True):
    """The broker takes the client, or says why not in `result`."""

    way = "out"
    kind = "brokerResponse"
    spec = FrameSpec(Role.HANDSHAKE, status="category")
    MESSAGE: ClassVar = Message.NEGOTIATION
    ID: ClassVar = 1
    HEAD: ClassVar = 0
    result: Status
    protocol_version: I32 = 1
    broker_version: I32 = 999_999
    is_deprecated_sdk: Flag = False
    broker_identity: Identity = Identity(1)
    heartbeat_interval_ms: I32 = 3000
    max_missed_heartbeats: I32 = 10

    @property
    def category(self) -> int:
        """That of the result."""
        return self.result.category


class AuthenticationRequest(ControlFrame, frozen=True):
    """Sent before clientIdentity by clients that have credentials."""

    way = "in"
    kind = "authenticationRequest"
    spec = FrameSpec(Role.HANDSHAKE, secret=("data",), words={"mechanism": MECHANISMS})
    MESSAGE: ClassVar = Message.AUTHENTICATION
    ID: ClassVar = 0
    HEAD: ClassVar = 0
    mechanism: Text
    data: Blob | None = None


class AuthenticationResponse(ControlFrame, frozen=True):
    """Its answer; a lifetime says when to authenticate again."""

    way = "out"
    kind = "authenticationResponse"
    spec = FrameSpec(Role.HANDSHAKE, secret=("status",), status="category")
    MESSAGE: ClassVar = Message.AUTHENTICATION
    ID: ClassVar = 1
    HEAD: ClassVar = 0
    status: Status
    lifetime_ms: U64 | None = None

    @property
    def category(self) -> int:
        """That of the status."""
        return self.status.category


class Request(ControlFrame, frozen=True):
    """Expects an answer with the same number; without one, or with a negative one, it is ignored."""

    spec = FrameSpec(Role.REQUEST, key="r_id")
    r_id: I32 | None


class Response(ControlFrame, frozen=True):
    """Answers the request of that number."""

    spec = FrameSpec(Role.RESPONSE, key="r_id")
    r_id: I32 | None


class StatusResponse(Response, frozen=True):
    """The answer to any request that failed."""

    kind = "status"
    spec = FrameSpec(Role.RESPONSE, key="r_id", status="category")
    ID: ClassVar = 0
    category: CategoryCode = Category.E_UNKNOWN
    code: I32 = 0
    message: Text = ""


class Disconnect(Request, frozen=True):
    """The client ends its session; nothing it sends after is looked at."""

    kind = "disconnect"
    spec = FrameSpec(Role.CLOSE, key="r_id")
    ID: ClassVar = 1


class DisconnectResponse(Response, frozen=True):
    """All handles are dropped; the client closes the connection."""

    kind = "disconnectResponse"
    spec = FrameSpec(Role.CLOSE, key="r_id")
    ID: ClassVar = 2


class AdminCommand(Request, frozen=True):
    """A command in words, from a session of the admin type."""

    kind = "adminCommand"
    ID: ClassVar = 7
    command: Text


class AdminCommandResponse(Response, frozen=True):
    """What the command printed."""

    kind = "adminCommandResponse"
    ID: ClassVar = 8
    text: Text


class OpenQueue(Request, frozen=True):
    """Opens a handle to a queue, or more readers and writers on it."""

    way = "in"
    kind = "openQueue"
    spec = FrameSpec(Role.OPEN, key="r_id")
    ID: ClassVar = 10
    handle_parameters: HandleParameters


class OpenQueueResponse(Response, frozen=True):
    """The request again, how the queue delivers, and how long a message's GUID is remembered."""

    way = "out"
    kind = "openQueueResponse"
    ID: ClassVar = 11
    original_request: OpenQueueRequest
    routing_configuration: RoutingConfiguration
    deduplication_time_ms: I32 = 300_000


class CloseQueue(Request, frozen=True):
    """Gives up readers and writers of a handle; all that are left where it is final."""

    way = "in"
    kind = "closeQueue"
    spec = FrameSpec(Role.SHUT, key="r_id")
    ID: ClassVar = 12
    handle_parameters: HandleParameters
    is_final: Flag = False


class CloseQueueResponse(Response, frozen=True):
    """No delivery and no ACK of that handle comes after it."""

    way = "out"
    kind = "closeQueueResponse"
    ID: ClassVar = 13


class ConfigureQueueStream(Request, frozen=True):
    """How much a reader takes: the older form, with one consumer."""

    way = "in"
    kind = "configureQueueStream"
    spec = FrameSpec(Role.FLOW, key="r_id")
    ID: ClassVar = 14
    q_id: U32
    stream_parameters: QueueStreamParameters


class ConfigureQueueStreamResponse(Response, frozen=True):
    """The request again. Deliveries may follow."""

    way = "out"
    kind = "configureQueueStreamResponse"
    ID: ClassVar = 15
    request: ConfigureQueueStreamRequest


class ConfigureStream(Request, frozen=True):
    """How much a reader takes: with subscriptions."""

    way = "in"
    kind = "configureStream"
    spec = FrameSpec(Role.FLOW, key="r_id")
    ID: ClassVar = 16
    q_id: U32
    stream_parameters: StreamParameters


class ConfigureStreamResponse(Response, frozen=True):
    """The request again. Deliveries may follow, each with the `s_id` of a subscription."""

    way = "out"
    kind = "configureStreamResponse"
    ID: ClassVar = 17
    request: ConfigureStreamRequest


CONTROL_FRAMES: tuple[type[ControlFrame], ...] = (
    ClientIdentity,
    BrokerResponse,
    AuthenticationRequest,
    AuthenticationResponse,
    StatusResponse,
    Disconnect,
    DisconnectResponse,
    AdminCommand,
    AdminCommandResponse,
    OpenQueue,
    OpenQueueResponse,
    CloseQueue,
    CloseQueueResponse,
    ConfigureQueueStream,
    ConfigureQueueStreamResponse,
    ConfigureStream,
    ConfigureStreamResponse,
)

#: The classes of each message, by BER id.
CHOICES: Mapping[Message, Mapping[int, type[ControlFrame]]] = {
    message: {each.ID: each for each in CONTROL_FRAMES if each.MESSAGE is message} for message in Message
}
