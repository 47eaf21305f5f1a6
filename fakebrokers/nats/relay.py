"""Both directions of a connection that a proxy passes on to a NATS server."""

from __future__ import annotations

from msgspec.structs import replace

from fakebrokers.core.frames import Frame
from fakebrokers.core.relay import Relay
from fakebrokers.nats.codec import NatsCodec
from fakebrokers.nats.frames import Info


class NatsRelay(Relay):
    """The real server has the limit of payloads, not the proxy.

    Of the addresses of a cluster clients get to know the proxy's alone, or they would go past it.
    """

    codec = NatsCodec

    def __init__(self) -> None:
        super().__init__(self.codec("server", max_payload=0), self.codec("client", max_payload=0))

    def readdressed(self, frame: Frame, host: str, port: int) -> Frame:
        if isinstance(frame, Info) and "connect_urls" in frame.options:
            return replace(frame, options={**frame.options, "connect_urls": [f"{host}:{port}"]})
        return frame
