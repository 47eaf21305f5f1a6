"""Steps and questions that the scenarios of MQTT share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from conformance.clients.adapter.messages import body_bytes
from conformance.suite import Client, Expect
from fakebrokers import MQTT
from fakebrokers.journal import Tap
from fakebrokers.mqtt.frames import Publish
from scenarios._common import until

PUBLISHER = ("publisher",)
CONSUMER = ("consumer",)
ROLES = ("publisher", "consumer")
LASTS = ("auto_reconnect", "lasting")
LASTING: dict[str, Any] = {"client_id": "lasting", "clean": False, "auto_reconnect": True}
BACK_S = 20.0  #: in which a client is back that connects again by itself
T = "orders/a"


def heard(broker: MQTT, kind: str, since: int = 0, tap: Tap = Tap.RECEIVED) -> list[Any]:
    """Packets of that kind that came from the client, in order."""
    return [record.frame for record in broker.journal.select(kind=kind, tap=tap, since=since)]


def copies(broker: MQTT, body: bytes, since: int = 0) -> list[Publish]:
    """The PUBLISH packets of a message that came."""
    return [frame for frame in heard(broker, "Publish", since) if frame.payload == body]


def bodies(client: Client, sub: str = "c1") -> list[bytes]:
    """What the application got."""
    return [body_bytes(cast(dict[str, Any], message.body)) for message in client.messages(sub)]


async def back(broker: MQTT, mark: int) -> bool:
    """Whether a client is let in after the journal's record `mark`."""
    return await until(lambda: broker.journal.select(kind="Connack", tap=Tap.SENT, since=mark), BACK_S)


async def lost(broker: MQTT, expect: Expect) -> int:
    """The connections are reset, and the client is back; returns the mark of the loss."""
    mark = broker.journal.last_seq
    broker.kill(how="rst")
    expect.that(await back(broker, mark), "the client comes back", "not in 20 s", id="the-client-comes-back")
    return mark


async def came(
    client: Client, wanted: Sequence[bytes], sub: str = "c1", within_s: float = 5.0
) -> list[bytes]:
    """The bodies as soon as there are so many, and what comes besides in a moment."""
    await until(lambda: len(client.messages(sub)) >= len(wanted), within_s)
    await until(lambda: len(client.messages(sub)) > len(wanted), 0.3)
    return bodies(client, sub)
