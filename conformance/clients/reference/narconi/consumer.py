"""What travels over a consuming WebSocket: deliveries in, acknowledgements out. No IO."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from typing import Any, NamedTuple

from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.narconi.websocket import Message
from fakebrokers.narconi.websocket import TEXT

Send = Callable[[int, bytes], None]

#: What is in the metadata besides the stored headers.
OWN_KEYS = ("timestamp", "redelivered", "ackId", "message")


class Delivery(NamedTuple):
    """One message for the application.

    Attributes:
        headers: ``Content-Type`` and the stored headers.
        timestamp: Milliseconds since 1970, or None.
        ack_id: For the acknowledgement; None without ``ack``.
        source: Where it is acknowledged; None for one that came over HTTP.
    """

    body: bytes
    headers: dict[str, Any]
    timestamp: Any
    redelivered: bool | None
    ack_id: str | None
    source: Consumer | None = None


class Consumer:
    """One consuming connection.

    Args:
        send: Writes a message: its opcode and payload.
        deliver: Takes a delivery.
        on_error: Gets an error of the server.
        ack: Whether deliveries wait for an acknowledgement.
        encoding: Of the bodies inside the metadata; None: in messages of their own.

    Attributes:
        outstanding: Ack ids that were not settled, in order of delivery.
    """

    def __init__(
        self,
        send: Send,
        deliver: Callable[[Delivery], None],
        on_error: Callable[[ClientError], None],
        *,
        ack: bool,
        encoding: str | None,
    ) -> None:
        self._send = send
        self._deliver = deliver
        self._on_error = on_error
        self.ack = ack
        self.encoding = encoding
        self.outstanding: list[str] = []
        self._metadata: dict[str, Any] | None = None

    # in

    def message(self, message: Message) -> None:
        """A message of the server. Raises `ClientError` (protocol) for what has no meaning."""
        if self._metadata is not None:
            metadata, self._metadata = self._metadata, None
            self.deliver_message(metadata, message.payload)
            return
        metadata = self.read_metadata(message)
        if "code" in metadata:  # stored headers begin with x-
            self.failed(metadata)
        elif self.encoding is not None:
            self.deliver_message(metadata, self.decode(metadata.get("message")))
        else:
            self._metadata = metadata

    def read_metadata(self, message: Message) -> dict[str, Any]:
        """The JSON object in a message."""
        try:
            value = json.loads(message.payload)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise ClientError("protocol", f"no metadata: {message.payload[:60]!r}")
        return value

    def decode(self, text: Any) -> bytes:
        """The bytes of a body inside the metadata. Raises `ClientError` (protocol) for what is none."""
        try:
            if not isinstance(text, str):
                raise TypeError
            encoding = (self.encoding or "").lower()  # the server takes them in any case
            if encoding == "base64":
                return b64decode(text, validate=True)
            return bytes.fromhex(text) if encoding == "hex" else text.encode()
        except (TypeError, ValueError):
            raise ClientError("protocol", f"no {self.encoding}: {text!r:.60}") from None

    def deliver_message(self, metadata: dict[str, Any], body: bytes) -> None:
        """Hand a message to the application."""
        ack_id = metadata.get("ackId")
        if ack_id is not None:
            self.outstanding.append(ack_id)
        headers = {self.header_name(key): v for key, v in metadata.items() if key not in OWN_KEYS}
        redelivered = metadata.get("redelivered")
        self._deliver(Delivery(body, headers, metadata.get("timestamp"), redelivered, ack_id, self))

    def header_name(self, key: str) -> str:
        """As the application sees it."""
        return key if key == "Content-Type" else key.lower()

    def lost(self) -> None:
        """The connection has ended: metadata without a body is no message."""
        self._metadata = None

    def failed(self, value: dict[str, Any]) -> None:
        """The server reports an error."""
        code = value["code"] if isinstance(value["code"], int) else None
        self._on_error(ClientError("refused", str(value.get("error") or ""), code=code))

    # out

    def settle(self, ack_id: str) -> None:
        """Acknowledge one delivery. Raises `ClientError` (invalid) for one that is settled already."""
        if ack_id not in self.outstanding:
            raise ClientError("invalid", "this delivery waits for no acknowledgement")
        self.outstanding.remove(ack_id)
        self.command({"ackId": ack_id})

    def settle_to(self, ack_id: str) -> None:
        """Acknowledge a delivery and all before it."""
        if ack_id not in self.outstanding:
            raise ClientError("invalid", "this delivery waits for no acknowledgement")
        del self.outstanding[: self.outstanding.index(ack_id) + 1]
        self.command({"ackToId": ack_id})

    def command(self, value: dict[str, Any]) -> None:
        """Send a JSON object."""
        self._send(TEXT, json.dumps(value).encode())

    def stop(self) -> None:
        """Ask for no more deliveries: an empty message."""
        self._send(TEXT, b"")
