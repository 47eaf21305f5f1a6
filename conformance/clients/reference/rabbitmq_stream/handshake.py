"""The handshake, from the first frame to an open connection (docs/protocols/rabbitmq-stream.md, 5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from conformance.clients.reference.kit import ClientError
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import (
    Deliver,
    ExchangeCommandVersions,
    Open,
    PeerProperties,
    Publish,
    Request,
    SaslAuthenticate,
    SaslHandshake,
    Tune,
)
from fakebrokers.rabbitmq_stream.wiretypes import CommandVersions

if TYPE_CHECKING:
    from conformance.clients.reference.rabbitmq_stream.connection import Connection

CHALLENGES_MAX = 5

PROPERTIES = {"product": "fakebrokers reference client", "platform": "Python", "connection_name": "reference"}
VERSIONS = (CommandVersions(Publish.KEY, 1, 1), CommandVersions(Deliver.KEY, 1, 2))


class Handshake:
    """Each step asks, and its answer leads to the next; what is agreed is noted in the connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.settings = connection.settings
        self._is_tuning = False
        self._deadline = 0.0
        self._challenges = 0

    def start(self, deadline: float) -> None:
        """TCP is connected: say who we are."""
        self._deadline = deadline
        self._ask(PeerProperties, dict(PROPERTIES), then=self.introduced)

    def _ask(self, kind: type[Request], *fields: Any, then: Callable[[Any], None]) -> None:
        def done(answer: Any) -> None:
            if isinstance(answer, ClientError):
                self.connection.end(answer)
            else:
                then(answer)

        try:
            self.connection.requests.ask(kind, *fields, done=done, deadline=self._deadline)
        except ClientError as error:
            self.connection.end(error)

    def is_ok(self, answer: Any, kind: str = "refused") -> bool:
        """Whether the server said yes; if not, the connection fails."""
        if answer.code != Code.OK:
            what = type(answer).__name__
            self.connection.end(ClientError(kind, f"{what} with code {answer.code}", code=answer.code))
        return bool(answer.code == Code.OK)

    def introduced(self, answer: Any) -> None:
        """PeerProperties were answered."""
        if self.is_ok(answer):
            self.connection.server_properties = answer.properties
            self._ask(SaslHandshake, then=self.mechanisms_known)

    def mechanisms_known(self, answer: Any) -> None:
        """SaslHandshake was answered."""
        if not self.is_ok(answer):
            return
        if self.settings.mechanism not in answer.mechanisms:
            offered = ", ".join(answer.mechanisms) or "nothing"
            self.connection.end(
                ClientError("auth", f"the server offers {offered}, not {self.settings.mechanism}")
            )
            return
        self.authenticate()

    def authenticate(self) -> None:
        """Send the credentials, at first and after each challenge."""
        credentials = f"\0{self.settings.user}\0{self.settings.password}".encode()
        self._ask(SaslAuthenticate, self.settings.mechanism, credentials, then=self.authenticated)

    def authenticated(self, answer: Any) -> None:
        """SaslAuthenticate was answered."""
        if answer.code == Code.SASL_CHALLENGE and self._challenges < CHALLENGES_MAX:
            self._challenges += 1
            self.authenticate()
        elif self.is_ok(answer, "auth"):
            self._is_tuning = True

    def tuned(self, offer: Tune) -> None:
        """The server's Tune came: answer it, and open the virtual host in the same breath."""
        if not self._is_tuning:
            return
        self._is_tuning = False
        connection = self.connection
        connection.frame_max = self.agree_frame_max(offer.frame_max)
        connection.heartbeat_s = self.agree_heartbeat(offer.heartbeat)
        connection.send(Tune(connection.frame_max, connection.heartbeat_s))
        self._ask(Open, self.settings.vhost, then=self.entered)

    def agree_frame_max(self, offered: int) -> int:
        """The smaller one; 0 is no limit of that side."""
        return min([size for size in (offered, self.settings.frame_max) if size], default=0)

    def agree_heartbeat(self, offered: int) -> int:
        """The smaller one; a server without a wish gets ours, and we may want none."""
        own = self.settings.heartbeat_s
        return min(offered, own) if offered and own else own

    def entered(self, answer: Any) -> None:
        """Open was answered."""
        if not self.is_ok(answer, "auth"):
            return
        properties = answer.properties or {}
        host, port = properties.get("advertised_host"), properties.get("advertised_port")
        self.connection.advertised = f"{host}:{port}" if host and port else ""
        if self.knows_versions():
            self._ask(ExchangeCommandVersions, VERSIONS, then=lambda _: self.connection.opened())
        else:
            self.connection.opened()

    def knows_versions(self) -> bool:
        """Servers before 3.11 close the connection on an ExchangeCommandVersions."""
        try:
            major, minor = (self.connection.server_properties.get("version") or "").split(".")[:2]
            return (int(major), int(minor)) >= (3, 11)
        except ValueError:
            return False
