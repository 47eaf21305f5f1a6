"""What a fake MQTT server does over the control API, and the options that it is started with."""

from __future__ import annotations

from typing import Any

import msgspec

from fakebrokers.control.describe import BrokerOptions, Control, Operation, TlsOption, name_and_password
from fakebrokers.mqtt.server import MQTT


class MqttOptions(BrokerOptions, frozen=True, kw_only=True):
    """Options of a fake MQTT server.

    Attributes:
        users: NAME:PASSWORD of those who may come in; none: everybody may.
        tls: Listen for TLS too: true, or which bad certificate to show.
    """

    users: tuple[str, ...] = ()
    tls: TlsOption = False

    def keywords(self) -> dict[str, Any]:
        found = super().keywords()
        if self.users:
            found["users"] = dict(map(name_and_password, self.users))
        return found


class FilterRow(msgspec.Struct, frozen=True):
    """Who listens to what, with which QoS at most."""

    client: str
    filter: str
    qos: int


def publish(server: MQTT, topic: str, payload: bytes, qos: int = 0, retain: bool = False) -> int:
    """A message of nobody's; how many clients listen."""
    return server.publish(topic, payload, qos=qos, retain=retain)


def subscriptions(server: MQTT) -> list[FilterRow]:
    """Who listens to what; clients that are away, too."""
    return [FilterRow(*each) for each in server.subscriptions]


def lose_session(server: MQTT, client: str) -> None:
    """Forget a client, with its filters and messages; one that is connected when its connection ends."""
    server.lose_session(client)


def redeliver(server: MQTT, client: str) -> None:
    """Send a client again what it has not acknowledged, with DUP."""
    server.redeliver(client)


CONTROL = Control(
    MqttOptions,
    (
        Operation(publish),
        Operation(subscriptions, reads=True),
        Operation("retained", reads=True),
        Operation("clients", reads=True),
        Operation("unacknowledged", reads=True),
        Operation("client_of", reads=True),
        Operation(lose_session),
        Operation(redeliver),
    ),
)
