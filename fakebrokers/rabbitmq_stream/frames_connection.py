"""Frames that set a connection up and end it (docs/protocols/rabbitmq-stream.md, 3 and 5)."""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from fakebrokers.core.frames import MECHANISMS, FrameSpec, Role
from fakebrokers.rabbitmq_stream.frames_base import Request, Response, Sender, StreamFrame
from fakebrokers.rabbitmq_stream.wiretypes import (
    U16,
    U32,
    Challenge,
    Map,
    OptionalReplyMap,
    ReplyMap,
    ReplyTexts,
    ReplyVersions,
    SaslData,
    Text,
    Versions,
)


class PeerProperties(Request, frozen=True):
    """The first frame of a client: what it is."""

    spec = FrameSpec(Role.HANDSHAKE, key="correlation_id", named=("properties",))
    KEY: ClassVar = 0x0011
    properties: Map


class PeerPropertiesResponse(Response, frozen=True):
    """What the server is."""

    spec = FrameSpec(Role.HANDSHAKE, key="correlation_id", status="code")
    KEY: ClassVar = 0x8011
    properties: ReplyMap = field(default_factory=dict)


class SaslHandshake(Request, frozen=True):
    """Asks for the SASL mechanisms."""

    spec = FrameSpec(Role.HANDSHAKE, key="correlation_id")
    KEY: ClassVar = 0x0012


class SaslHandshakeResponse(Response, frozen=True):
    """The SASL mechanisms on offer."""

    spec = FrameSpec(Role.HANDSHAKE, key="correlation_id", status="code")
    KEY: ClassVar = 0x8012
    mechanisms: ReplyTexts = ()


class SaslAuthenticate(Request, frozen=True):
    """Credentials, or one round of them; `data` is secret."""

    spec = FrameSpec(Role.HANDSHAKE, key="correlation_id", secret=("data",), words={"mechanism": MECHANISMS})
    KEY: ClassVar = 0x0013
    mechanism: Text
    data: SaslData = None


class SaslAuthenticateResponse(Response, frozen=True):
    """8: wrong password; 7: mechanism not offered. A challenge comes only with code 10, as a string."""

    spec = FrameSpec(Role.HANDSHAKE, key="correlation_id", status="code")
    KEY: ClassVar = 0x8013
    challenge: Challenge = None


class Tune(StreamFrame, frozen=True):
    """Largest frame (bytes) and heartbeat (seconds): the server's offer, then the client's answer.

    Both are requests without correlation id. A client's 0x8014 is accepted too, and read as 0x0014.
    """

    spec = FrameSpec(Role.HANDSHAKE)
    KEY: ClassVar = 0x0014
    SENDER: ClassVar[Sender] = "both"
    frame_max: U32
    heartbeat: U32


class Open(Request, frozen=True):
    """Enters a virtual host: the end of the handshake."""

    spec = FrameSpec(Role.HANDSHAKE, key="correlation_id")
    KEY: ClassVar = 0x0015
    virtual_host: Text


class OpenResponse(Response, frozen=True):
    """Connection properties such as the advertised address; on error there are none at all."""

    spec = FrameSpec(Role.HANDSHAKE, key="correlation_id", status="code")
    KEY: ClassVar = 0x8015
    properties: OptionalReplyMap = None


class Close(Request, frozen=True):
    """Announces the end of the connection."""

    spec = FrameSpec(Role.CLOSE, key="correlation_id", status="code")
    KEY: ClassVar = 0x0016
    SENDER: ClassVar[Sender] = "both"
    code: U16
    reason: Text


class CloseResponse(Response, frozen=True):
    """Answers Close; the server hangs up after it, whichever side has asked."""

    spec = FrameSpec(Role.CLOSE, key="correlation_id", status="code")
    KEY: ClassVar = 0x8016
    SENDER: ClassVar[Sender] = "both"


class Heartbeat(StreamFrame, frozen=True):
    """Sent when nothing else was for an interval; any other traffic counts as well."""

    spec = FrameSpec(Role.HEARTBEAT)
    KEY: ClassVar = 0x0017
    SENDER: ClassVar[Sender] = "both"


class ExchangeCommandVersions(Request, frozen=True):
    """The command versions that the client understands."""

    spec = FrameSpec(Role.HANDSHAKE, key="correlation_id")
    KEY: ClassVar = 0x001B
    commands: Versions = ()


class ExchangeCommandVersionsResponse(Response, frozen=True):
    """The command versions that the server understands, ascending by key."""

    spec = FrameSpec(Role.HANDSHAKE, key="correlation_id", status="code")
    KEY: ClassVar = 0x801B
    commands: ReplyVersions = ()
