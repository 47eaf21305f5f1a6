"""paho-mqtt and aiomqtt, unmodified, against the fake."""

from __future__ import annotations

import asyncio
import queue
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fakebrokers import MQTT
from fakebrokers.core.frames import Role
from fakebrokers.faults import drop, rst
from fakebrokers.journal import Tap
from fakebrokers.mqtt.build import lose_session, redeliver
from fakebrokers.mqtt.faults import refuse_login, refuse_subscription
from fakebrokers.proxy import Proxy
from tests.eventually import PATIENCE_S, eventually
from tests.marked import PASSWORD

paho = pytest.importorskip("paho.mqtt.client", reason="missing: paho-mqtt")
aiomqtt = pytest.importorskip("aiomqtt", reason="missing: aiomqtt")


class Paho:
    """A client on a thread of its own, and what it has heard."""

    def __init__(self, id: str = "", *, manual_ack: bool = False, **options: Any) -> None:
        self.client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, client_id=id, manual_ack=manual_ack, **options
        )
        self.messages = messages = queue.Queue[Any]()
        self.connects = connects = queue.Queue[Any]()
        self.granted = granted = queue.Queue[Any]()
        # A callback that knew `self` would close a cycle: the client closes its pair of sockets only when it
        # is deleted, and in a cycle the sockets may be deleted first.
        self.client.on_message = lambda _, __, message: messages.put(message)
        self.client.on_connect = lambda _, __, flags, reason, ___: connects.put((flags, reason))
        self.client.on_subscribe = lambda _, __, ___, reasons, ____: granted.put(reasons)
        self.client.reconnect_delay_set(min_delay=1, max_delay=1)

    @contextmanager
    def on(self, host: str, port: int) -> Iterator[Paho]:
        """Connected, until the end of the block."""
        self.client.connect(host, port)
        self.client.loop_start()
        try:
            yield self
        finally:
            self.client.disconnect()
            self.client.loop_stop()

    def connected(self) -> tuple[bool, str]:
        """Whether the server remembers it, and how it was let in."""
        flags, reason = self.connects.get(timeout=PATIENCE_S)
        return flags.session_present, str(reason)

    def subscribe(self, *filters: tuple[str, int]) -> list[int]:
        """What the server grants."""
        self.client.subscribe(list(filters))
        return [each.value for each in self.granted.get(timeout=PATIENCE_S)]

    def publish(self, topic: str, body: bytes, qos: int) -> None:
        """Until the server has confirmed it."""
        self.client.publish(topic, body, qos).wait_for_publish(PATIENCE_S)

    def next(self) -> tuple[str, bytes, int, bool]:
        """Topic, body, QoS and DUP of the next message."""
        message = self.messages.get(timeout=PATIENCE_S)
        return message.topic, message.payload, message.qos, message.dup


def test_publish_subscribe_and_roles(fake_mqtt: MQTT) -> None:
    with Paho("one").on(fake_mqtt.host, fake_mqtt.port) as client:
        assert client.subscribe(("o/#", 2)) == [2]
        for qos in range(3):
            client.publish("o/x", b"%d" % qos, qos)
        assert [client.next()[1:3] for _ in range(3)] == [(b"0", 0), (b"1", 1), (b"2", 2)]
        assert fake_mqtt.publish("o/y", "by hand", qos=1) == 1
        assert client.next() == ("o/y", b"by hand", 1, False)
        assert fake_mqtt.subscriptions == [("one", "o/#", 2)]
        eventually(lambda: fake_mqtt.unacknowledged("one") == [], "it acknowledges all")
    select = fake_mqtt.journal.select
    counts = {role: len(select(role=role, tap=Tap.HEARD)) for role in (Role.PUBLISH, Role.ACK)}
    said = {role: len(select(role=role, tap=Tap.SAID)) for role in (Role.CONFIRM, Role.DELIVER)}
    assert (counts, said) == ({Role.PUBLISH: 3, Role.ACK: 3}, {Role.CONFIRM: 2, Role.DELIVER: 4})
    keys = [record.keys for record in select(role="publish", tap=Tap.HEARD)][1:]
    assert keys == [record.keys for record in select(role="confirm", tap=Tap.SAID)]


def test_a_client_gets_what_came_while_it_was_away(fake_mqtt: MQTT) -> None:
    with Paho("shop", clean_session=False).on(fake_mqtt.host, fake_mqtt.port) as first:
        assert first.connected() == (False, "Success")
        first.subscribe(("o/#", 2))
    eventually(lambda: fake_mqtt.clients == {"shop": False}, "it has gone")
    for qos in range(3):
        fake_mqtt.publish("o/x", b"%d" % qos, qos=qos)
    with Paho("shop", clean_session=False).on(fake_mqtt.host, fake_mqtt.port) as again:
        assert again.connected() == (True, "Success")
        assert [again.next()[1:] for _ in range(2)] == [(b"1", 1, False), (b"2", 2, False)]


def test_what_is_not_acknowledged_comes_again_with_dup(fake_mqtt: MQTT) -> None:
    with Paho("shop", clean_session=False, manual_ack=True).on(fake_mqtt.host, fake_mqtt.port) as client:
        client.subscribe(("o", 1))
        fake_mqtt.publish("o", "tea", qos=1)
        assert client.next() == ("o", b"tea", 1, False)
        fake_mqtt.kill()
        assert client.next() == ("o", b"tea", 1, True)


@pytest.mark.parametrize("kind", ["Pubrec", "Pubrel", "Pubcomp"])
def test_a_message_with_qos_2_survives_the_loss_of_each_step(fake_mqtt: MQTT, kind: str) -> None:
    """Both ways, on connections that end there; it comes once all the same."""
    fake_mqtt.faults.add(rst(kind=kind, pass_frame=False, nth=1, scope="run"))
    with Paho("shop", clean_session=False).on(fake_mqtt.host, fake_mqtt.port) as client:
        client.subscribe(("o", 2))
        client.publish("o", b"tea", 2)
        assert client.next()[:3] == ("o", b"tea", 2)
        eventually(lambda: fake_mqtt.unacknowledged("shop") == [], "it acknowledges all")
        assert client.messages.empty()
    assert fake_mqtt.faults.fired


def test_retained_messages_and_wills(fake_mqtt: MQTT) -> None:
    fake_mqtt.publish("state", "on", retain=True)
    dying = Paho("dying")
    dying.client.will_set("state", b"off", qos=1, retain=True)
    with Paho("ears").on(fake_mqtt.host, fake_mqtt.port) as ears:
        ears.subscribe(("state", 1))
        message = ears.messages.get(timeout=PATIENCE_S)
        assert (message.payload, message.retain) == (b"on", True)
        with dying.on(fake_mqtt.host, fake_mqtt.port):
            dying.connected()
            (connection,) = [each["name"] for each in fake_mqtt.connections if each["client"] == "dying"]
            fake_mqtt.kill(connection)
            assert ears.next()[:2] == ("state", b"off")
    assert fake_mqtt.retained == {"state": b"off"}


@pytest.mark.parametrize(
    ("password", "reason"), [(PASSWORD, "Success"), ("x", "Not authorized"), (None, "Not authorized")]
)
def test_logging_in_over_tls(password: str | None, reason: str) -> None:
    with MQTT(users={"u": PASSWORD}, tls=True) as fake:
        assert fake.tls is not None
        client = Paho()
        client.client.tls_set_context(ssl.create_default_context(cafile=fake.tls.ca_file))
        client.client.username_pw_set("u", password)
        with client.on("localhost", fake.tls_port):
            assert client.connected() == (False, reason)


def test_a_client_of_mqtt_5_hears_that_nobody_speaks_it_here(fake_mqtt: MQTT) -> None:
    with Paho(protocol=paho.MQTTv5).on(fake_mqtt.host, fake_mqtt.port) as client:
        assert client.connected() == (False, "Unsupported protocol version")


def test_faults_by_role(fake_mqtt: MQTT) -> None:
    fake_mqtt.faults.add(
        drop(role="deliver", where={"topic": "o/lost"}),
        refuse_subscription(where={"packet_id": 1}, nth=1),
        redeliver(kind="Publish", direction="out", where={"topic": "o/twice"}),
    )
    with Paho("one", manual_ack=True).on(fake_mqtt.host, fake_mqtt.port) as client:
        assert client.subscribe(("o/#", 1)) == [0x80]
        assert client.subscribe(("o/#", 1)) == [1]
        for name in ("lost", "twice"):
            fake_mqtt.publish(f"o/{name}", name, qos=1)
        # what was lost is not acknowledged either, so it comes again, and is lost again
        assert [client.next()[1:] for _ in range(2)] == [(b"twice", 1, False), (b"twice", 1, True)]


def test_a_server_that_has_forgotten_a_client(fake_mqtt: MQTT) -> None:
    fake_mqtt.faults.add(lose_session(kind="Connect", nth=1, after_s=0.0))
    with Paho("shop", clean_session=False).on(fake_mqtt.host, fake_mqtt.port) as client:
        assert client.connected()[0] is False
        client.subscribe(("o", 1))
        fake_mqtt.kill()
        assert client.connected()[0] is False
        assert fake_mqtt.subscriptions == []


def test_a_login_that_is_refused_once(fake_mqtt: MQTT) -> None:
    fake_mqtt.faults.add(refuse_login(3, nth=1, scope="run"))
    with Paho().on(fake_mqtt.host, fake_mqtt.port) as client:
        assert [client.connected()[1] for _ in range(2)] == ["Server unavailable", "Success"]


def test_a_proxy_loses_the_message_that_it_takes() -> None:
    with MQTT() as server, Proxy(f"127.0.0.1:{server.port}", protocol="mqtt") as proxy:
        proxy.faults.add(drop(role="deliver", nth=1))
        with Paho("one").on("127.0.0.1", proxy.port) as client:
            client.subscribe(("o", 0))
            for body in (b"lost", b"comes"):
                client.publish("o", body, 1)
            assert client.next()[1] == b"comes"
        assert len(proxy.journal.select(role="confirm", tap=Tap.SENT)) == 2


def test_aiomqtt(fake_mqtt: MQTT) -> None:
    async def main() -> list[tuple[str, Any, int]]:
        async with (
            aiomqtt.Client(fake_mqtt.host, fake_mqtt.port, identifier="a") as one,
            aiomqtt.Client(fake_mqtt.host, fake_mqtt.port, identifier="b") as other,
        ):
            await one.subscribe("o/+/x", qos=2)
            for qos in range(3):
                await other.publish("o/a/x", b"%d" % qos, qos)
            found = []
            async for message in one.messages:
                found.append((str(message.topic), message.payload, message.qos))
                if len(found) == 3:
                    return found
        return []

    found = asyncio.run(asyncio.wait_for(main(), PATIENCE_S))
    assert found == [("o/a/x", b"%d" % qos, qos) for qos in range(3)]
