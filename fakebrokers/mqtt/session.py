"""One connection to the MQTT server.

    connecting -> open -> ended

Where the standard leaves a choice it is that of Mosquitto 2.0.11 (docs/protocols/mqtt.md, 3 "Life of a
connection").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.session import Session
from fakebrokers.mqtt import frames as f
from fakebrokers.mqtt.broker import MqttBroker
from fakebrokers.mqtt.client import Client
from fakebrokers.mqtt.codec import MqttCodec
from fakebrokers.mqtt.topics import SYSTEM, is_filter, is_topic, subscription

#: Reasons of CONNACK.
BAD_PROTOCOL, BAD_CLIENT_ID, NOT_AUTHORIZED = 1, 2, 5
#: Names of the protocol, with the level that belongs to each: MQTT 3.1.1 and 3.1.
LEVELS = {"MQTT": 4, "MQIsdp": 3}
#: Type of the first packet.
CONNECT = 1
#: Bytes said to a client that does not read before the server ends its connection.
MAX_PENDING = 64 * 1024 * 1024


class MqttSession(Session):
    """The state machine of one connection.

    Attributes:
        client: Who it is, from CONNECT on.
    """

    def __init__(self, broker: MqttBroker, codec: MqttCodec) -> None:
        self.broker = broker
        self.codec = codec
        self.state = "connecting"
        self.client: Client | None = None
        self._publish_kind = codec.kinds.publish
        self._will: f.Will | None = None
        self._repeated: set[int] = set()  # ids of messages with QoS 2 that came twice on this connection
        self._limit_s = 0.0
        self._pending = 0
        self._handlers: Mapping[type[Frame], Callable[[Any, Client], None]] = {
            codec.kinds.publish: self._publish,
            f.Puback: self._acknowledge,
            f.Pubrec: self._note_receipt,
            f.Pubrel: self._release,
            f.Pubcomp: self._acknowledge,
            f.Subscribe: self._subscribe,
            f.Unsubscribe: self._unsubscribe,
            f.Pingreq: lambda frame, client: self.link.say(f.Pingresp()),
            codec.kinds.disconnect: lambda frame, client: self._disconnect(),
            f.Connect: lambda frame, client: (
                self._disconnect()
            ),  # a violation (3.1); Mosquitto forgets the will
        }

    # life

    def opened(self, now: float) -> None:
        self._timer = self.link.session_timer(lambda at: self.end())
        self._timer.set(now + self.broker.profile.connect_s)

    def closed(self, now: float) -> None:
        super().closed(now)
        self.broker.now = now
        self._leave()

    def writable(self, now: float) -> None:
        self._pending = 0

    def describe(self) -> dict[str, Any]:
        client = self.client
        filters = 0 if client is None else len(client.subscriptions)
        return {"state": self.state, "client": "" if client is None else client.id, "subscriptions": filters}

    def end(self) -> None:
        """Hang up."""
        self._leave()
        self.link.hang_up()

    def _leave(self) -> None:
        """The client has no connection any more; its will is said. Safe to call twice."""
        self.state = "ended"
        client = self.client
        if client is None or client.session is not self:
            return
        client.session = None
        self._say_will()  # which may come to a filter of its own, and is lost there
        if not client.lasts:
            self.broker.forget(client)

    def _say_will(self) -> None:
        will, self._will = self._will, None
        if will is not None:
            self._say_to_all(will)

    def taken_over(self, *, clean: bool) -> None:
        """Another connection came with the same client id, a clean one or not.

        Mosquitto says no will where it goes on with what is remembered; and where a clean one is followed by
        one that is not, that which ends may hear its own.
        """
        if not clean and self.client is not None:
            if self.client.lasts:
                self._will = None
            else:
                self._say_will()
        self.end()

    def _disconnect(self) -> None:
        self._will = None
        self.end()

    # what the client says

    def handle(self, frame: Frame, now: float) -> None:
        if self.state == "ended":
            return
        self.broker.now = now
        client = self.client
        if client is None:
            if isinstance(frame, f.Connect):
                self._connect(frame)
            else:  # the first packet has to be CONNECT (3.1)
                self.end()
            return
        if self._limit_s:
            self._timer.set(now + self._limit_s)
        handler = self._handlers.get(frame.__class__)
        if handler is not None:
            handler(frame, client)
        elif isinstance(frame, f.Connack | Malformed):
            self.end()

    def unfinished(self, size: int, now: float) -> None:
        if self.state == "connecting" and self.codec.begun != CONNECT:
            self.end()

    def _connect(self, frame: f.Connect) -> None:
        code = self._reason_against(frame)
        if code:
            self.link.say(f.Connack(code))
        if code != 0:
            self.end()
            return
        broker = self.broker
        broker.connected += 1
        id = frame.client_id or f"auto-{broker.connected}"
        client, known = broker.client_for(id, clean=frame.clean)
        self.client, client.session = client, self
        self._will = None if frame.will is None or frame.will.topic.startswith(SYSTEM) else frame.will
        self._limit_s = frame.keep_alive * broker.profile.patience
        self._timer.set(broker.now + self._limit_s if self._limit_s else None)
        self.state = "open"
        self.entered(frame.client_id)
        self.link.say(f.Connack(0, known and frame.level > LEVELS["MQIsdp"]))
        self.link.ready()
        client.send_again()
        client.send_waiting()

    def entered(self, id: str) -> None:
        """A client is let in; faults may go by its id, also when it comes back."""
        if id:
            self.link.identify(id)

    def _reason_against(self, frame: f.Connect) -> int | None:
        """0 if the client may come in, a code, or None if it gets no answer."""
        broker = self.broker
        if frame.protocol not in LEVELS:
            return None
        if frame.level != LEVELS[frame.protocol]:
            return broker.profile.code_for_mqtt_5 if frame.level == 5 else BAD_PROTOCOL
        if frame.password is not None and frame.user is None:  # [MQTT-3.1.2-22]
            return None
        if frame.will is not None and not is_topic(frame.will.topic):
            return None
        if not frame.client_id and (not frame.clean or frame.level == LEVELS["MQIsdp"]):
            return BAD_CLIENT_ID
        return 0 if broker.admits(frame.user, frame.password) else NOT_AUTHORIZED

    def _publish(self, frame: f.Publish, client: Client) -> None:
        if not is_topic(frame.topic):
            self.end()
            return
        if frame.topic.startswith(SYSTEM):  # goes nowhere, though it is acknowledged
            if frame.qos:
                self.link.say((f.Puback if frame.qos == 1 else f.Pubrec)(frame.packet_id))
            return
        is_new = not frame.qos or self._is_new(frame, client)
        if frame.qos < 2:
            self._say_to_all(frame)
            if frame.qos:
                self.link.say(f.Puback(frame.packet_id))
        elif not is_new and frame.packet_id in self._repeated:  # Mosquitto takes no third copy
            self.end()
        else:
            if not is_new:
                self._repeated.add(frame.packet_id)
            client.received[frame.packet_id] = frame
            self.link.say(f.Pubrec(frame.packet_id))

    def _is_new(self, frame: f.Publish, client: Client) -> bool:
        """Whether this is no copy of a message with QoS 2; another one with the same packet id is lost."""
        known = client.received.get(frame.packet_id)
        if known is not None and msgspec.structs.replace(known, dup=frame.dup) == frame:
            return False
        self._forget(frame.packet_id, client)
        return True

    def _say_to_all(self, message: f.Publish | f.Will) -> None:
        self.broker.route(self, message.topic, message.payload, message.qos, retain=message.retain)

    def _release(self, frame: f.Pubrel, client: Client) -> None:
        message = self._forget(frame.packet_id, client)
        if message is not None:
            self._say_to_all(message)
        self.link.say(f.Pubcomp(frame.packet_id))

    def _forget(self, number: int, client: Client) -> f.Publish | None:
        """A message with QoS 2 is released, or lost."""
        self._repeated.discard(number)
        return client.received.pop(number, None)

    def _acknowledge(self, frame: f.Puback | f.Pubcomp, client: Client) -> None:
        """One that does not fit the message is a violation, one of no message is not."""
        message = client.sent(frame.packet_id)
        if message is None:
            return
        if message.is_received if isinstance(frame, f.Pubcomp) else message.qos == 1:
            client.acknowledged(message)
        else:
            self.end()

    def _note_receipt(self, frame: f.Pubrec, client: Client) -> None:
        message = client.sent(frame.packet_id)
        if message is not None and message.qos != 2:
            self.end()
            return
        if message is not None:
            message.is_received = True
        self.release(frame.packet_id)

    def _subscribe(self, frame: f.Subscribe, client: Client) -> None:
        if not all(is_filter(name) for name, _ in frame.filters):
            self.end()
            return
        self.link.say(f.Suback(frame.packet_id, tuple([qos for _, qos in frame.filters])))
        for name, qos in frame.filters:
            known = client.subscriptions.get(name)
            if known is None:
                known = client.subscriptions[name] = subscription(name, client, qos)
                self.broker.subscriptions.add(known)
            known.key = qos
            for topic, kept in self.broker.kept_for(known.pattern):
                client.send(topic, kept.payload, min(kept.qos, qos), retain=True)
            self.subscribed(name)

    def subscribed(self, name: str) -> None:
        """The client listens to a filter from now on."""

    def _unsubscribe(self, frame: f.Unsubscribe, client: Client) -> None:
        if not all(map(is_filter, frame.filters)):
            self.end()
            return
        for name in frame.filters:
            known = client.subscriptions.pop(name, None)
            if known is not None:
                self.broker.subscriptions.remove(known)
        self.link.say(f.Unsuback(frame.packet_id))

    # what others say

    def push(
        self, topic: str, payload: bytes, qos: int, number: int, *, retain: bool = False, dup: bool = False
    ) -> None:
        """Send a message to the client."""
        link = self.link
        link.say(self._publish_kind(topic, payload, qos, number, retain, dup))
        if not link.writable:
            self._pending += len(payload)
            if self._pending > MAX_PENDING:
                self.end()

    def release(self, number: int) -> None:
        """The second step of QoS 2: the client may forget a packet id."""
        self.link.say(f.Pubrel(number))

    # faults

    def refusal(self, frame: Frame, code: int, now: float) -> Frame | None:
        """CONNACK or SUBACK with that code; a message cannot be refused in MQTT 3.1.1."""
        match frame:
            case f.Connect():
                return f.Connack(code)
            case f.Subscribe(packet_id, filters):
                return f.Suback(packet_id, tuple([code] * len(filters)))
        return super().refusal(frame, code, now)
