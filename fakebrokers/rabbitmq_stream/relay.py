"""Both directions of a connection that a proxy passes on to a RabbitMQ."""

from __future__ import annotations

from msgspec.structs import replace

from fakebrokers.core.frames import Frame
from fakebrokers.core.relay import Relay
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.frames import MetadataResponse, OpenResponse
from fakebrokers.rabbitmq_stream.session import refusal_of

_HOST, _PORT = "advertised_host", "advertised_port"


class StreamRelay(Relay):
    """Clients connect anew to the address that Metadata names as a stream's leader, so this has to be
    the proxy's. What the server calls itself stands in the answer to Open."""

    def __init__(self) -> None:
        super().__init__(StreamCodec("server"), StreamCodec("client"))
        self._own: tuple[str | None, str | None] | None = None

    def refusal(self, frame: Frame, code: int) -> Frame | None:
        return refusal_of(frame, code)

    def readdressed(self, frame: Frame, host: str, port: int) -> Frame:
        if isinstance(frame, OpenResponse) and frame.properties and _PORT in frame.properties:
            self._own = frame.properties.get(_HOST), frame.properties[_PORT]
            return replace(frame, properties={**frame.properties, _HOST: host, _PORT: str(port)})
        if isinstance(frame, MetadataResponse) and self._own is not None:
            brokers = tuple(
                [
                    each._replace(host=host, port=port) if (each.host, str(each.port)) == self._own else each
                    for each in frame.brokers
                ]
            )
            return frame if brokers == frame.brokers else replace(frame, brokers=brokers)
        return frame
