"""Negotiation: who is there, and what the broker can."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from conformance.clients.reference.kit import ClientError
from fakebrokers.blazingmq.codes import Category, ClientType, Language
from fakebrokers.blazingmq.frames import BrokerResponse, ClientIdentity
from fakebrokers.core.frames import Frame, kind_of

if TYPE_CHECKING:
    from conformance.clients.reference.blazingmq.link import Link

FEATURES = "PROTOCOL_ENCODING:BER,JSON;MPS:MESSAGE_PROPERTIES_EX"


class Handshake:
    """Of one connection.

    Attributes:
        features: What the broker said it can.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        self.features = ""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def identity(self) -> ClientIdentity:
        """What the client says of itself."""
        return ClientIdentity(
            1,
            client_type=ClientType.E_TCPCLIENT,
            process_name="reference",
            host_name="localhost",
            features=FEATURES,
            sdk_language=Language.E_JAVA,
        )

    def start(self) -> None:
        """TCP is connected."""
        self.link.send(self.identity())

    def answered(self, frame: BrokerResponse) -> None:
        """The broker says whether it takes the client."""
        if frame.category != Category.E_SUCCESS:
            name = frame.result.category
            text = f"the broker refused the client: {name} {frame.result.message}"
            self.fail(ClientError("refused", text, code=frame.category))
            return
        self.features = frame.broker_identity.features
        self.link.state = "open"
        self.link.watchdog.start(frame.heartbeat_interval_ms / 1000, frame.max_missed_heartbeats)
        if not self.done.done():
            self.done.set_result(None)

    def other(self, frame: Frame) -> None:
        """Anything else came first."""
        self.fail(ClientError("protocol", f"a {kind_of(frame)} instead of brokerResponse"))

    def fail(self, error: ClientError) -> None:
        """There will be no session."""
        if not self.done.done():
            self.done.set_exception(error)
        self.link.end(error)
