"""One client of the MQTT broker (3.1.1, clean sessions).

    connecting -> open -> ended

Where the standard leaves a choice it is that of mosquitto 2.0.11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.subscriptions import Subscription
from fakebrokers.moleculer.bus import NodeSession
from fakebrokers.moleculer.mqtt import frames as f
from fakebrokers.moleculer.mqtt.bus import MqttBus
from fakebrokers.moleculer.mqtt.codec import MqttCodec
from fakebrokers.moleculer.packets import Packet
from fakebrokers.moleculer.topics import listener_of

#: Reasons of CONNACK.
BAD_PROTOCOL, BAD_CLIENT_ID, NOT_AUTHORIZED = 1, 2, 5
#: The same in the words of MQTT 5, to a client that speaks it.
UNSUPPORTED_VERSION = 0x84
#: Type of the first packet.
CONNECT = 1
#: SUBACK for a filter that is none.
FAILURE = 0x80
#: The broker gives up a client that is silent for this many keep-alives.
PATIENCE = 1.5
#: How long a client may take for its CONNECT.
CONNECT_S = 30.0
MAX_ID = 0xFFFF


MAX_PENDING = 64 * 1024 * 1024


class MqttSession(NodeSession):
    """The state machine of one connection."""

    bus: MqttBus
    codec: MqttCodec

    def __init__(self, bus: MqttBus, codec: MqttCodec) -> None:
        self.bus = self.broker = bus
        self.codec = codec
        codec.wrap = self._wrap
        self.state = "connecting"
        self.client_id = ""
        self.subscriptions: dict[str, Subscription] = {}
        self.unacknowledged: dict[int, f.Publish] = {}  # by packet id; QoS 2 until PUBCOMP
        self._recorded: set[int] = set()  # ids of those with PUBREC
        self._will: f.Will | None = None
        self._received: dict[int, f.Publish] = {}  # messages with QoS 2 that are not released
        self._last_id = 0
        self._limit_s = 0.0
        self._pending = 0
        self._handlers: Mapping[type[Frame], Callable[[Any], None]] = {
            f.Publish: self._publish,
            f.Puback: lambda frame: self._acknowledged(frame.packet_id, 1),
            f.Pubrec: self._received_there,
            f.Pubrel: self._release,
            f.Pubcomp: lambda frame: self._acknowledged(frame.packet_id, 2),
            f.Subscribe: self._subscribe,
            f.Unsubscribe: self._unsubscribe,
            f.Pingreq: lambda frame: self.link.say(f.Pingresp()),
            f.MqttDisconnect: lambda frame: self._disconnect(),
        }

    # life

    def opened(self, now: float) -> None:
        self._timer = self.link.session_timer(lambda at: self._end())
        self._timer.set(now + CONNECT_S)

    def closed(self, now: float) -> None:
        super().closed(now)
        self.state = "ended"
        if self.bus.sessions.get(self.client_id) is self:
            del self.bus.sessions[self.client_id]
        for subscription in self.subscriptions.values():
            self.bus.subscriptions.remove(subscription)
        self.subscriptions.clear()
        if self._will is not None:
            will, self._will = self._will, None
            self.bus.now = now
            self._say_to_all(f.Publish(will.topic, will.payload, will.qos, retain=will.retain))

    def writable(self, now: float) -> None:
        self._pending = 0

    def _end(self) -> None:
        self.state = "ended"
        self.link.hang_up()

    # what the client says

    def handle(self, frame: Frame, now: float) -> None:
        if self.state == "ended":
            return
        self.bus.now = now
        if self.state == "connecting":
            if isinstance(frame, f.Connect):
                self._connect(frame)
            else:  # the first packet has to be CONNECT (3.1)
                self._end()
            return
        if self._limit_s:
            self._timer.set(now + self._limit_s)
        handler = self._handlers.get(frame.__class__)
        if handler is not None:
            handler(frame)
        elif isinstance(frame, f.Connect):  # a violation (3.1); mosquitto forgets the will
            self._disconnect()
        elif isinstance(frame, f.Connack | Malformed):
            self._end()

    def unfinished(self, size: int, now: float) -> None:
        if self.state == "connecting" and self.codec.begun != CONNECT:
            self._end()

    def _connect(self, frame: f.Connect) -> None:
        code = self._reason_against(frame)
        if code is None:
            self._end()
            return
        if code:
            self.link.say(f.Connack(code))
            self._end()
            return
        self.bus.connected += 1
        self.client_id = frame.client_id or f"auto-{self.bus.connected}"
        other = self.bus.sessions.get(self.client_id)
        if other is not None:
            other.taken_over()
        self.bus.sessions[self.client_id] = self
        self._will = frame.will
        self._limit_s = frame.keep_alive * PATIENCE
        self._timer.set(self.bus.now + self._limit_s if self._limit_s else None)
        self.state = "open"
        self.link.say(f.Connack(0))
        self.link.ready()

    def _reason_against(self, frame: f.Connect) -> int | None:
        """0 if the client may come in, a code, or None if it is not even told."""
        known = {("MQTT", 4), ("MQIsdp", 3)}
        if frame.protocol not in {name for name, _ in known}:
            return None
        if (frame.protocol, frame.level) not in known:
            return UNSUPPORTED_VERSION if frame.level == 5 else BAD_PROTOCOL
        if frame.password is not None and frame.user is None:  # [MQTT-3.1.2-22]
            return None
        if frame.will is not None and not is_topic(frame.will.topic):
            return None
        if not frame.client_id and (not frame.clean or frame.level == 3):
            return BAD_CLIENT_ID
        options = self.bus.options
        shown = (frame.user or "", (frame.password or b"").decode(errors="replace"))
        if options.needs_login and shown != (options.user, options.password):
            return NOT_AUTHORIZED
        return 0

    def taken_over(self) -> None:
        """Another client came with the same id."""
        self._end()

    def _disconnect(self) -> None:
        self._will = None
        self._end()

    def _publish(self, frame: f.Publish) -> None:
        if not is_topic(frame.topic):
            self._end()
            return
        waiting = self._received.get(frame.packet_id) if frame.qos else None
        if waiting is not None and msgspec.structs.replace(waiting, dup=frame.dup) != frame:
            del self._received[frame.packet_id]  # the id is used for another message: the first one is lost
        if frame.qos == 2:
            self._received.setdefault(frame.packet_id, frame)
            self.link.say(f.Pubrec(frame.packet_id))
            return
        self._say_to_all(frame)
        if frame.qos:
            self.link.say(f.Puback(frame.packet_id))

    def _say_to_all(self, frame: f.Publish) -> None:
        if frame.retain:
            self.bus.keep(frame.topic, frame.payload, frame.qos)
        self.bus.route(frame.topic, frame.payload, frame.qos, self.node)

    def _release(self, frame: f.Pubrel) -> None:
        message = self._received.pop(frame.packet_id, None)
        if message is not None:
            self._say_to_all(message)
        self.link.say(f.Pubcomp(frame.packet_id))

    def _acknowledged(self, number: int, qos: int) -> None:
        """PUBACK or PUBCOMP; one that does not fit the message is a violation, one of no message is not."""
        message = self.unacknowledged.get(number)
        if message is not None and (message.qos != qos or (qos == 2 and number not in self._recorded)):
            self._end()
            return
        self.unacknowledged.pop(number, None)
        self._recorded.discard(number)

    def _received_there(self, frame: f.Pubrec) -> None:
        message = self.unacknowledged.get(frame.packet_id)
        if message is not None and message.qos != 2:
            self._end()
            return
        if message is not None:
            self._recorded.add(frame.packet_id)
        self.link.say(f.Pubrel(frame.packet_id))

    def _subscribe(self, frame: f.Subscribe) -> None:
        if not all(is_filter(name) for name, _ in frame.filters):
            self._end()
            return
        self.link.say(f.Suback(frame.packet_id, tuple([qos for _, qos in frame.filters])))
        for name, qos in frame.filters:
            known = self.subscriptions.get(name)
            if known is None:
                known = self.subscriptions[name] = Subscription(name, self, 0)
                self.bus.subscriptions.add(known)
            known.key = qos
            for topic, payload, kept in self.bus.kept_for(name):
                self._say(topic, payload, min(kept, known.key), retain=True)
            node = listener_of(name)
            if node and is_topic(name):
                self.knows(node, name)

    def _unsubscribe(self, frame: f.Unsubscribe) -> None:
        if not all(map(is_filter, frame.filters)):
            self._end()
            return
        for name in frame.filters:
            subscription = self.subscriptions.pop(name, None)
            if subscription is not None:
                self.bus.subscriptions.remove(subscription)
        self.link.say(f.Unsuback(frame.packet_id))

    # what others say

    def deliver(self, subscription: Subscription, topic: str, qos: int, payload: bytes) -> None:
        """A message for this client."""
        self._say(topic, payload, min(qos, subscription.key))
        if not self.link.writable:
            self._pending += len(payload)
            if self._pending > MAX_PENDING:
                self._end()

    def _say(self, topic: str, payload: bytes, qos: int, *, retain: bool = False) -> None:
        if not qos:
            self.link.say(f.Publish(topic, payload, 0, 0, retain))
            return
        number = self._next_id()
        if number:  # all ids are in use: the client acknowledges nothing; mosquitto drops messages then, too
            frame = f.Publish(topic, payload, qos, number, retain)
            self.unacknowledged[number] = frame
            self.link.say(frame)

    def _next_id(self) -> int:
        if len(self.unacknowledged) >= MAX_ID:
            return 0
        while True:
            self._last_id = self._last_id % MAX_ID + 1
            if self._last_id not in self.unacknowledged:
                return self._last_id

    # faults

    def refusal(self, frame: Frame, code: int, now: float) -> Frame | None:
        match frame:
            case f.Connect():
                return f.Connack(code)
            case f.Subscribe(packet_id, filters):
                return f.Suback(packet_id, tuple([code] * len(filters)))
            case _:
                return super().refusal(frame, code, now)

    def _wrap(self, frame: Frame) -> Frame | None:
        if not isinstance(frame, Packet):
            return None
        return f.Publish(self.topic_for(frame), self.payload_of(frame))


def is_topic(name: str) -> bool:
    """Whether one may publish there."""
    return bool(name) and "+" not in name and "#" not in name


def is_filter(name: str) -> bool:
    """Whether one may listen there: wildcards are whole tokens, ``#`` is the last one (4.7)."""
    tokens = name.split("/")
    alone = all(token in ("+", "#") or not set(token) & set("+#") for token in tokens)
    return bool(name) and alone and "#" not in tokens[:-1]
