"""What travels over a publishing WebSocket: messages out, confirms and errors in. No IO."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.narconi.websocket import Message
from fakebrokers.narconi.websocket import BINARY, TEXT

Send = Callable[[int, bytes], None]
Done = Callable[[ClientError | None], None]

#: The server accepts no more (docs/protocols/narconi.md, "Size").
BODY_MAX = 65536


class Publisher:
    """One publishing connection.

    Args:
        send: Writes a message: its opcode and payload.
        on_error: Gets an error that answers no message.

    Attributes:
        pending: What was sent and has no answer, oldest first. What its caller gave up stays in line, because
            answers are matched by order (document, Publishing over WebSocket).
        is_spent: The server has reported an error; it closes the connection after it.
    """

    def __init__(self, send: Send, on_error: Callable[[ClientError], None]) -> None:
        self._send = send
        self._on_error = on_error
        self.pending: deque[Done] = deque()
        self.is_spent = False

    def publish(self, metadata: Mapping[str, Any], body: bytes, done: Done) -> None:
        """Send one message; `done` is called once with None or with what went wrong."""
        self._send(TEXT, self.encode_metadata(metadata))
        self._send(BINARY, body)
        self.pending.append(done)  # not if it could not be sent

    def encode_metadata(self, metadata: Mapping[str, Any]) -> bytes:
        """A JSON object, also when it is empty: the server refuses an empty message.

        See docs/protocols/narconi.md, "publish".
        """
        return json.dumps(metadata, ensure_ascii=False).encode()

    def message(self, message: Message) -> None:
        """An answer of the server. Raises `ClientError` (protocol) for what is none."""
        if not message.payload:
            self.confirmed()
            return
        self.refused(read_error(message.payload))

    def confirmed(self) -> None:
        """An empty message: the oldest one is stored."""
        if not self.pending:
            raise ClientError("protocol", "a confirm that answers no message")
        self.pending.popleft()(None)

    def refused(self, error: ClientError) -> None:
        """An error in place of a confirm, or one that answers nothing."""
        self.is_spent = True
        if self.pending:
            self.pending.popleft()(error)
        else:
            self._on_error(error)

    def lost(self, error: ClientError) -> None:
        """The connection has ended: whether the others were stored, nobody knows."""
        while self.pending:
            self.pending.popleft()(error)


def read_error(payload: bytes) -> ClientError:
    """The error in a message. Raises `ClientError` (protocol) if there is none."""
    try:
        value = json.loads(payload)
    except ValueError:
        raise ClientError("protocol", f"neither a confirm nor an error: {payload[:60]!r}") from None
    if not isinstance(value, dict) or not isinstance(value.get("code"), int):
        raise ClientError("protocol", f"neither a confirm nor an error: {payload[:60]!r}")
    return ClientError("refused", str(value.get("error") or ""), code=value["code"])
