"""Every frame of the protocol and what faults, journal and checkers need to know about it.

The classes stand in `frames_connection`, `frames_messages` and `frames_streams`.
"""

from __future__ import annotations

from fakebrokers.frames import MALFORMED_SPEC, Frame, FrameSpec, FrameTable, Malformed, Role
from fakebrokers.rabbitmq_stream.frames_base import (
    RESPONSE_BIT,
    Correlated,
    Request,
    Response,
    Sender,
    StreamFrame,
)
from fakebrokers.rabbitmq_stream.frames_connection import (
    Close,
    CloseResponse,
    ExchangeCommandVersions,
    ExchangeCommandVersionsResponse,
    Heartbeat,
    Open,
    OpenResponse,
    PeerProperties,
    PeerPropertiesResponse,
    SaslAuthenticate,
    SaslAuthenticateResponse,
    SaslHandshake,
    SaslHandshakeResponse,
    Tune,
)
from fakebrokers.rabbitmq_stream.frames_messages import (
    ConsumerUpdate,
    ConsumerUpdateResponse,
    Credit,
    CreditResponse,
    DeclarePublisher,
    DeclarePublisherResponse,
    DeletePublisher,
    DeletePublisherResponse,
    Deliver,
    Publish,
    PublishConfirm,
    PublishError,
    QueryOffset,
    QueryOffsetResponse,
    QueryPublisherSequence,
    QueryPublisherSequenceResponse,
    ResolveOffsetSpec,
    ResolveOffsetSpecResponse,
    StoreOffset,
    Subscribe,
    SubscribeResponse,
    Unsubscribe,
    UnsubscribeResponse,
)
from fakebrokers.rabbitmq_stream.frames_streams import (
    Create,
    CreateResponse,
    CreateSuperStream,
    CreateSuperStreamResponse,
    Delete,
    DeleteResponse,
    DeleteSuperStream,
    DeleteSuperStreamResponse,
    Metadata,
    MetadataResponse,
    MetadataUpdate,
    Partitions,
    PartitionsResponse,
    Route,
    RouteResponse,
    StreamStats,
    StreamStatsResponse,
)
from fakebrokers.rabbitmq_stream.items import ConfirmedItems, DeliveredItems, FailedItems, PublishedItems


def _question(role: Role) -> FrameSpec:
    return FrameSpec(role, key="correlation_id")


def _answer(role: Role = Role.RESPONSE) -> FrameSpec:
    return FrameSpec(role, key="correlation_id", status="code")


FRAMES: FrameTable = {
    PeerProperties: _question(Role.HANDSHAKE),
    PeerPropertiesResponse: _answer(Role.HANDSHAKE),
    SaslHandshake: _question(Role.HANDSHAKE),
    SaslHandshakeResponse: _answer(Role.HANDSHAKE),
    SaslAuthenticate: FrameSpec(Role.HANDSHAKE, key="correlation_id", secret=("data",)),
    SaslAuthenticateResponse: _answer(Role.HANDSHAKE),
    Tune: FrameSpec(Role.HANDSHAKE),
    Open: _question(Role.HANDSHAKE),
    OpenResponse: _answer(Role.HANDSHAKE),
    Close: FrameSpec(Role.CLOSE, key="correlation_id", status="code"),
    CloseResponse: _answer(Role.CLOSE),
    Heartbeat: FrameSpec(Role.HEARTBEAT),
    ExchangeCommandVersions: _question(Role.HANDSHAKE),
    ExchangeCommandVersionsResponse: _answer(Role.HANDSHAKE),
    DeclarePublisher: _question(Role.OPEN),
    DeclarePublisherResponse: _answer(),
    Publish: FrameSpec(
        Role.PUBLISH, "publishing_ids", PublishedItems(), bulk=("entries",), scope="publisher_id"
    ),
    PublishConfirm: FrameSpec(Role.CONFIRM, "publishing_ids", ConfirmedItems(), scope="publisher_id"),
    PublishError: FrameSpec(Role.REJECT, "publishing_ids", FailedItems(), scope="publisher_id"),
    QueryPublisherSequence: _question(Role.REQUEST),
    QueryPublisherSequenceResponse: _answer(),
    DeletePublisher: _question(Role.SHUT),
    DeletePublisherResponse: _answer(),
    Subscribe: _question(Role.OPEN),
    SubscribeResponse: _answer(),
    Deliver: FrameSpec(
        Role.DELIVER, "first_offset", DeliveredItems(), bulk=("chunk",), scope="subscription_id"
    ),
    Credit: FrameSpec(Role.FLOW, key="subscription_id"),
    CreditResponse: FrameSpec(Role.FLOW, key="subscription_id", status="code"),
    StoreOffset: FrameSpec(Role.ACK, key="offset"),
    QueryOffset: _question(Role.REQUEST),
    QueryOffsetResponse: _answer(),
    Unsubscribe: _question(Role.SHUT),
    UnsubscribeResponse: _answer(),
    ConsumerUpdate: _question(Role.EVENT),
    ConsumerUpdateResponse: _answer(),
    ResolveOffsetSpec: _question(Role.REQUEST),
    ResolveOffsetSpecResponse: _answer(),
    Create: _question(Role.REQUEST),
    CreateResponse: _answer(),
    Delete: _question(Role.REQUEST),
    DeleteResponse: _answer(),
    Metadata: _question(Role.REQUEST),
    MetadataResponse: _question(Role.RESPONSE),
    MetadataUpdate: FrameSpec(Role.EVENT, key="stream", status="code"),
    StreamStats: _question(Role.REQUEST),
    StreamStatsResponse: _answer(),
    Route: _question(Role.REQUEST),
    RouteResponse: _answer(),
    Partitions: _question(Role.REQUEST),
    PartitionsResponse: _answer(),
    CreateSuperStream: _question(Role.REQUEST),
    CreateSuperStreamResponse: _answer(),
    DeleteSuperStream: _question(Role.REQUEST),
    DeleteSuperStreamResponse: _answer(),
    Malformed: MALFORMED_SPEC,
}

_BY_KEY: dict[int, type[StreamFrame]] = {kind.KEY: kind for kind in FRAMES if issubclass(kind, StreamFrame)}


def answer(request: Frame, code: int) -> Response | None:
    """The plain answer to `request` with this code and nothing found; None if there is no such frame.

    Metadata has no code of its own; one-way commands have no answer.
    """
    if not isinstance(request, Request):
        return None
    kind = _BY_KEY.get(request.KEY | RESPONSE_BIT)
    return kind(request.correlation_id, code) if kind and issubclass(kind, Response) else None


__all__ = [
    "FRAMES",
    "RESPONSE_BIT",
    "Close",
    "CloseResponse",
    "ConsumerUpdate",
    "ConsumerUpdateResponse",
    "Correlated",
    "Create",
    "CreateResponse",
    "CreateSuperStream",
    "CreateSuperStreamResponse",
    "Credit",
    "CreditResponse",
    "DeclarePublisher",
    "DeclarePublisherResponse",
    "Delete",
    "DeletePublisher",
    "DeletePublisherResponse",
    "DeleteResponse",
    "DeleteSuperStream",
    "DeleteSuperStreamResponse",
    "Deliver",
    "ExchangeCommandVersions",
    "ExchangeCommandVersionsResponse",
    "Heartbeat",
    "Malformed",
    "Metadata",
    "MetadataResponse",
    "MetadataUpdate",
    "Open",
    "OpenResponse",
    "Partitions",
    "PartitionsResponse",
    "PeerProperties",
    "PeerPropertiesResponse",
    "Publish",
    "PublishConfirm",
    "PublishError",
    "QueryOffset",
    "QueryOffsetResponse",
    "QueryPublisherSequence",
    "QueryPublisherSequenceResponse",
    "Request",
    "ResolveOffsetSpec",
    "ResolveOffsetSpecResponse",
    "Response",
    "Route",
    "RouteResponse",
    "SaslAuthenticate",
    "SaslAuthenticateResponse",
    "SaslHandshake",
    "SaslHandshakeResponse",
    "Sender",
    "StoreOffset",
    "StreamFrame",
    "StreamStats",
    "StreamStatsResponse",
    "Subscribe",
    "SubscribeResponse",
    "Tune",
    "Unsubscribe",
    "UnsubscribeResponse",
    "answer",
]
