"""What a user of the reference client may set, and the addresses that follow from it."""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from conformance.clients.reference.kit import ClientError


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a user may set.

    Attributes:
        endpoint: ``host:port``.
        project: First part of all addresses.
        keepalive_s: Between pings on a WebSocket; None: no pings.
        auto_reconnect: Make WebSockets that were lost anew.
        first_delay_s, longest_delay_s: See `Backoff`.
    """

    endpoint: str
    project: str
    keepalive_s: float | None = None
    auto_reconnect: bool = False
    first_delay_s: float = 0.5
    longest_delay_s: float = 5.0


class Addresses:
    """Where the queues of a project are."""

    def __init__(self, project: str) -> None:
        self._project = project

    def path(self, queue: str, *more: str) -> str:
        """``/v2/:project/queues/:queue``, each name in one segment."""
        return "/".join(["/v2", self.escape(self._project), "queues", self.escape(queue), *more])

    def websocket(self, queue: str) -> str:
        """Where WebSockets are opened."""
        return self.path(queue, "messages")

    def escape(self, name: str) -> str:
        """A name as one segment of a path. Raises `ClientError` (invalid) for one that would leave none."""
        if not name:
            raise ClientError("invalid", "names of projects and queues are not empty")
        return quote(name, safe=":")
