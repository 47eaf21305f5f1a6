"""The fake MQTT server, as tests see it.

with MQTT() as fake:
    client.connect(fake.host, fake.port)
    fake.publish("orders", "tea", qos=1)
    assert fake.unacknowledged("shop") == [b"tea"]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Unpack

import msgspec

from fakebrokers.bodies import Body, body_of
from fakebrokers.core.engine import Clock
from fakebrokers.core.listeners import Endpoint
from fakebrokers.core.profiles import find_profile
from fakebrokers.core.session import Codec, Session
from fakebrokers.core.tls import Tls, certificate_of
from fakebrokers.errors import UsageError
from fakebrokers.mqtt.broker import MqttBroker
from fakebrokers.mqtt.client import Client
from fakebrokers.mqtt.codec import MqttCodec
from fakebrokers.mqtt.faults import client_on, lose, send_again
from fakebrokers.mqtt.profile import PROFILES, Profile
from fakebrokers.mqtt.protocol import PROTOCOL, WIRE
from fakebrokers.mqtt.session import MqttSession
from fakebrokers.mqtt.topics import is_topic
from fakebrokers.options import ServerOptions, struct_of
from fakebrokers.server import FakeServer


class Filter(NamedTuple):
    """Who listens to what, with which QoS at most."""

    client: str
    filter: str
    qos: int


class MQTT(FakeServer):
    """An MQTT 3.1.1 server.

    Args:
        profile: ``real`` or ``2.0`` (Mosquitto).
        user, password: What clients have to show.
        users: Passwords of further users, by name.
        tls: Listen for TLS too, on a further port; `tls_port` and `tls.ca_file` are what a client needs. A
            name of `Certificate`, such as ``expired``: with that one.
        switches: Further fields of `Profile` to change, such as ``{"max_inflight": 1}``.
        options: Those of `FakeServer`.
    """

    protocol = PROTOCOL
    broker: MqttBroker

    def __init__(
        self,
        *,
        profile: str = "real",
        user: str = "",
        password: str = "",
        users: Mapping[str, str] | None = None,
        tls: bool | str = False,
        switches: Mapping[str, Any] | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        found = find_profile(PROFILES, profile, PROTOCOL.name)
        known = msgspec.structs.asdict(found)
        self._profile = struct_of({**known, **(switches or {})}, Profile, "switches")
        own = {user: password} if user or password else {}
        self._users = {**own, **(users or {})}
        self._wants_tls = tls and certificate_of(tls)
        self.tls: Tls | None = None
        super().__init__(profile=profile, **options)

    def _make_broker(self, clock: Clock) -> MqttBroker:
        return MqttBroker(self._profile, self._users)

    def _endpoints(self) -> list[Endpoint]:
        plain = Endpoint(WIRE, self._new_session, self._wanted_port)
        if not self._wants_tls or not self._has_streams:
            return [plain]
        self.tls = Tls(self.host, show=self._wants_tls)
        return [plain, Endpoint(WIRE, self._new_session, 0, self.tls.context)]

    def _new_session(self, transport: Any) -> tuple[Session, Codec]:
        codec = MqttCodec(self._profile.max_size)
        return MqttSession(self.broker, codec), codec

    def _stopped(self) -> None:
        """Remove the certificates."""
        if self.tls is not None:
            self.tls.close()

    @property
    def _contents(self) -> dict[str, int]:
        return {"client": len(self.broker.clients), "retained message": len(self.broker.retained)}

    @property
    def urls(self) -> dict[str, str]:
        """``tls``: where clients with TLS connect."""
        return {} if self.tls is None else {"tls": f"mqtts://{self.host}:{self.tls_port}"}

    @property
    def tls_port(self) -> int:
        """The port for TLS."""
        if self.tls is None:
            raise UsageError("this fake has no TLS listener: make it with tls=True and start it")
        return self.listeners[1].port

    # what tests do

    def publish(self, topic: str, payload: Body, *, qos: int = 0, retain: bool = False) -> int:
        """A message without a publishing client; returns how many clients listen.

        Args:
            payload: Bytes, or text, which becomes UTF-8.
            qos: 0, 1 or 2; no client gets more than it has asked for.
            retain: Keep it for those who will listen.
        """
        if not is_topic(topic):
            raise UsageError(f"expected a topic without wildcards, got {topic!r}")
        if qos not in (0, 1, 2):
            raise UsageError(f"expected a QoS from 0 to 2, got {qos!r}")
        body = body_of(payload)
        return self.call(lambda: self.broker.route(None, topic, body, qos, retain=retain))

    @property
    def subscriptions(self) -> list[Filter]:
        """Who listens to what; clients that are away, too."""
        return self.call(
            lambda: sorted(
                Filter(client.id, name, each.key)
                for client in self.broker.clients.values()
                for name, each in client.subscriptions.items()
            )
        )

    @property
    def retained(self) -> dict[str, bytes]:
        """The retained messages by topic."""
        return self.call(lambda: {topic: kept.payload for topic, kept in self.broker.retained.items()})

    @property
    def clients(self) -> dict[str, bool]:
        """The clients that the server knows, by their ids: whether they are connected."""
        return self.call(lambda: {each.id: each.session is not None for each in self.broker.clients.values()})

    def unacknowledged(self, client: str) -> list[bytes]:
        """Messages with QoS 1 and 2 that a client has not acknowledged, sent or not, in order."""
        return self.call(lambda: [each.payload for each in self._client(client).messages.values()])

    def client_of(self, connection: str) -> str:
        """The id of the client on a connection; "" before its CONNECT."""
        self.connection(connection)  # or an error that says which there are
        return client_on(self.engine, connection)

    def lose_session(self, client: str) -> None:
        """Forget a client, with its filters and messages; one that is connected when its connection ends."""
        self.call(lose, self.engine, client)

    def redeliver(self, client: str) -> None:
        """Send a client again what it has not acknowledged, with DUP."""
        self.call(send_again, self.engine, client)

    def _client(self, id: str) -> Client:
        found = self.broker.clients.get(id)
        if found is None:
            there = ", ".join(self.broker.clients) or "none"
            raise UsageError(f"there is no client {id!r}; there are: {there}")
        return found
