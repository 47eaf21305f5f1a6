"""The handshake, from the first frame to an open connection (docs/protocols/rabbitmq-stream.md, 5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.mutants.rabbitmq_stream.errors import ClientError
from conformance.mutants.rabbitmq_stream.requests import Requests
from conformance.mutants.rabbitmq_stream.settings import Settings
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

CHALLENGES_MAX = 5

PROPERTIES = {"product": "fakebrokers reference client", "platform": "Python", "connection_name": "reference"}
VERSIONS = (CommandVersions(Publish.KEY, 1, 1), CommandVersions(Deliver.KEY, 1, 2))


class Handshake(Requests):
    """Each step asks, and its answer leads to the next.

    Attributes:
        frame_max: Largest frame that the client may send; 0: any.
        heartbeat_s: As agreed; 0: none.
        server_properties: What the server is.
        advertised: ``host:port`` under which the server wants to be known; empty if it said nothing.
    """

    settings: Settings

    def __init__(self) -> None:
        super().__init__()
        self.frame_max = 0
        self.heartbeat_s = 0
        self.server_properties: dict[str, str | None] = {}
        self.advertised = ""
        self.tuning = False
        self._deadline = 0.0
        self._challenges = 0

    def fail(self, error: ClientError) -> None:
        """The connection cannot go on."""
        raise NotImplementedError

    def opened(self) -> None:
        """The connection is usable."""
        raise NotImplementedError

    def start(self, now: float, deadline: float) -> None:
        """TCP is connected: say who we are."""
        self.now = now
        self._deadline = deadline
        self._ask(PeerProperties, dict(PROPERTIES), then=self.introduced)

    def _ask(self, kind: type[Request], *fields: Any, then: Callable[[Any], None]) -> None:
        def done(answer: Any) -> None:
            if isinstance(answer, ClientError):
                self.fail(answer)
            else:
                then(answer)

        try:
            self.request(kind, *fields, done=done, deadline=self._deadline)
        except ClientError as error:
            self.fail(error)

    def is_ok(self, answer: Any, kind: str = "refused") -> bool:
        """Whether the server said yes; if not, the connection fails."""
        if answer.code != Code.OK:
            what = type(answer).__name__
            self.fail(ClientError(kind, f"{what} with code {answer.code}", code=answer.code))
        return bool(answer.code == Code.OK)

    def introduced(self, answer: Any) -> None:
        """PeerProperties were answered."""
        if self.is_ok(answer):
            self.server_properties = answer.properties
            self._ask(SaslHandshake, then=self.mechanisms_known)

    def mechanisms_known(self, answer: Any) -> None:
        """SaslHandshake was answered."""
        if not self.is_ok(answer):
            return
        if self.settings.mechanism not in answer.mechanisms:
            offered = ", ".join(answer.mechanisms) or "nothing"
            self.fail(ClientError("auth", f"the server offers {offered}, not {self.settings.mechanism}"))
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
            self.tuning = True

    def tuned(self, offer: Tune) -> None:
        """The server's Tune came: answer it, and open the virtual host in the same breath."""
        if not self.tuning:
            return
        self.tuning = False
        self.frame_max = self.agree_frame_max(offer.frame_max)
        self.heartbeat_s = self.agree_heartbeat(offer.heartbeat)
        self.send(Tune(self.frame_max, self.heartbeat_s))
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
        self.advertised = f"{host}:{port}" if host and port else ""
        if self.knows_versions():
            self._ask(ExchangeCommandVersions, VERSIONS, then=lambda _: self.opened())
        else:
            self.opened()

    def knows_versions(self) -> bool:
        """Servers before 3.11 close the connection on an ExchangeCommandVersions."""
        try:
            major, minor = (self.server_properties.get("version") or "").split(".")[:2]
            return (int(major), int(minor)) >= (3, 11)
        except ValueError:
            return False
