"""How the fake MQTT server is compared with a real one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import msgspec

from fakebrokers.core.dialect import MARK, Command, Dialect, Known, Login, Speaker, segments
from fakebrokers.core.frames import Frame
from fakebrokers.mqtt import frames as f
from fakebrokers.mqtt.codec import MqttCodec
from fakebrokers.mqtt.lasting import lasting_sequence

CLIENTS = 3

_TOPICS = [f"{MARK}{rest}" for rest in ("", "/a", "/b", "/a/b", "/a/b/c", "//a", "/", "/ä", "/$x")]
_FILTERS = [f"{MARK}{rest}" for rest in ("/+", "/#", "/+/b", "/a/#", "/a/+", "/+/+", "/+/#", "/a/b/#", "/+/")]
_ODD = [f"{MARK}{rest}" for rest in ("/a+", "/#/a", "/+a", "/a#", "/a/##", "/++")] + [""]
#: Packets as bytes that break a rule, or seem to.
_RAW: Mapping[str, bytes] = {
    "type 0": b"\x00\x00",
    "type 15": b"\xf0\x00",
    "PINGREQ with flags": b"\xc1\x00",
    "PINGREQ with a body": b"\xc0\x01x",
    "DISCONNECT with a body": b"\xe0\x01x",
    "DISCONNECT with flags": b"\xe1\x00",
    "SUBSCRIBE with flags 0": b"\x80\x06\x00\x01\x00\x01a\x00",
    "SUBSCRIBE without filters": b"\x82\x02\x00\x01",
    "SUBSCRIBE with id 0": b"\x82\x06\x00\x00\x00\x01a\x00",
    "SUBSCRIBE with QoS 3": b"\x82\x06\x00\x01\x00\x01a\x03",
    "UNSUBSCRIBE without filters": b"\xa2\x02\x00\x01",
    "UNSUBSCRIBE with id 0": b"\xa2\x05\x00\x00\x00\x01a",
    "UNSUBSCRIBE with flags 0": b"\xa0\x05\x00\x01\x00\x01a",
    "PUBLISH with QoS 3": b"\x36\x05\x00\x01a\x00\x01",
    "PUBLISH with id 0": b"\x32\x05\x00\x01a\x00\x00",
    "PUBLISH without a topic": b"\x30\x02\x00\x00",
    "PUBLISH with QoS 0 and DUP": b"\x38" + bytes([2 + len(MARK) + 3]) + b"\0\x06" + MARK.encode() + b"dup",
    "PUBLISH cut short": b"\x30\x03\x00\x09a",
    "PUBLISH not in UTF-8": b"\x30\x04\x00\x02\xff\xfe",
    "PUBLISH with U+0000": b"\x30\x04\x00\x02a\x00",
    "PUBACK with id 0": b"\x40\x02\x00\x00",
    "PUBACK of nothing": b"\x40\x02\x00\x63",
    "PUBACK too long": b"\x40\x03\x00\x01x",
    "PUBREC of nothing": b"\x50\x02\x00\x63",
    "PUBCOMP of nothing": b"\x70\x02\x00\x63",
    "PUBREL of nothing": b"\x62\x02\x00\x63",
    "PUBREL with flags 0": b"\x60\x02\x00\x01",
    "CONNACK": b"\x20\x02\x00\x00",
    "SUBACK": b"\x90\x03\x00\x01\x00",
    "UNSUBACK": b"\xb0\x02\x00\x01",
    "PINGRESP": b"\xd0\x00",
    "a length of five bytes": b"\x30\xff\xff\xff\xff\x01",
    "HTTP": b"GET / HTTP/1.1\r\n\r\n",
}


class MqttSpeaker(Speaker):
    """Asks by PINGREQ, once it is let in."""

    def __init__(self) -> None:
        self.codec = MqttCodec()
        self._let_in = False

    def question(self) -> bytes:
        return b"\xc0\x00" if self._let_in else b""

    def is_answer(self, frame: Frame) -> bool:
        if isinstance(frame, f.Connack) and not frame.code:
            self._let_in = True
        return isinstance(frame, f.Pingresp)


class MqttDialect(Dialect):
    """Filters, retained messages, wills, takeovers, and rubbish.

    Args:
        lasting: How many of 10 sequences have clients that come back; where there are any, packet ids count.
    """

    known = (
        Known("type 0", "end$", "nothing$", "mosquitto ignores type 0, which is reserved (2.2.1)."),
        Known(
            r"PUB(ACK|REC|COMP) \d",
            "",
            "",
            "Of several retained messages the broker chooses which is first, and so has the first id.",
        ),
        Known(
            "SUBSCRIBE|PUBLISH",
            r"QoS [12]",
            r"QoS [01]",
            "Of overlapping filters mosquitto takes the QoS of the first; by 3.3.5 it is the best.",
        ),
    )

    def __init__(self, lasting: int) -> None:
        self._lasting = lasting

    def speaker(self, login: Login) -> Speaker:
        return MqttSpeaker()

    def sequence(self, random: Random, login: Login) -> list[Command]:
        if self._lasting and random.randrange(10) < self._lasting:
            return lasting_sequence(random, login)
        commands = [_connect(random, client, login) for client in range(random.randint(1, CLIENTS))]
        clients = len(commands)
        for _ in range(random.randint(4, 25)):
            make = random.choices(list(_MAKERS), weights=list(_MAKERS.values()))[0]
            commands.append(make(random, random.randrange(clients)))
        return segments(random, commands)

    def is_unordered(self, first: Frame, second: Frame) -> bool:
        """Retained messages stand in a table of the real broker."""
        both = isinstance(first, f.Publish) and isinstance(second, f.Publish)
        return both and first.retain and second.retain  # type: ignore[attr-defined]

    def brief(self, frame: Frame) -> str:
        match frame:
            case f.Publish(topic, payload, qos, number, retain, dup):
                flags = f"{' retained' if retain else ''}{' dup' if dup else ''}"
                shown = payload if len(payload) < 40 else payload[:9] + b"..."
                id = (
                    f" id {number}" if self._lasting and not retain else ""
                )  # of retained ones any may be first
                return f"PUBLISH {topic} {shown!r} QoS {qos}{id}{flags}"
        fields = msgspec.structs.asdict(frame)
        return f"{type(frame).__name__} {' '.join(map(str, fields.values()))}".strip()


def _packet(client: int, frame: Frame, text: str) -> Command:
    return Command(client, MqttCodec().encode(frame), text)


def _connect(random: Random, client: int, login: Login) -> Command:
    will = None
    if random.random() < 0.2:
        will = f.Will(random.choice(_TOPICS), b"will", random.randrange(2), random.random() < 0.3)
    keep_alive = random.choice([0, 60, 60, 65535])
    user, password = (login.user or None, login.password.encode() if login.password else None)
    frame = f.Connect(f"{MARK}{client}", keep_alive, True, will, user, password)
    return _packet(client, frame, f"CONNECT {client}{f' with {will}' if will else ''}")


def _connect_oddly(random: Random, client: int) -> Command:
    frame = random.choice(
        [
            f.Connect(""),
            f.Connect("", clean=False),
            f.Connect(f"{MARK}{random.randrange(CLIENTS)}"),
            f.Connect(f"{MARK}l" + "x" * 40),
            f.Connect(f"{MARK}p", protocol="MQIsdp", level=3),
            f.Connect("", protocol="MQIsdp", level=3),
            f.Connect(f"{MARK}p", protocol="MQTT", level=3),
            f.Connect(f"{MARK}p", protocol="MQTT", level=6),
            f.Connect(f"{MARK}p", protocol="HTTP", level=4),
            f.Connect(f"{MARK}u", user="u"),
            f.Connect(f"{MARK}u", user="u", password=b"p"),
            f.Connect(f"{MARK}u", password=b"p"),
            f.Connect(f"{MARK}w", will=f.Will(f"{MARK}/+", b"x")),
            f.Connect(f"{MARK}w", will=f.Will("", b"x")),
            f.Connect(f"{MARK}w", will=f.Will(f"{MARK}/a", b"")),
        ]
    )
    return _packet(CLIENTS + random.randrange(2), frame, repr(frame))


def _subscribe(random: Random, client: int) -> Command:
    kinds = [_TOPICS, _FILTERS, _ODD]
    filters = tuple(
        (random.choice(random.choices(kinds, [8, 8, 1])[0]), random.randrange(3))
        for _ in range(random.choice([1, 1, 1, 2, 3]))
    )
    number = random.randint(1, 9)
    return _packet(client, f.Subscribe(number, filters), f"SUBSCRIBE {number} {filters}")


def _unsubscribe(random: Random, client: int) -> Command:
    kinds = [_TOPICS, _FILTERS, _ODD]
    filters = tuple(
        random.choice(random.choices(kinds, [8, 8, 1])[0]) for _ in range(random.choice([1, 1, 2]))
    )
    number = random.randint(1, 9)
    return _packet(client, f.Unsubscribe(number, filters), f"UNSUBSCRIBE {number} {filters}")


def _publish(random: Random, client: int) -> Command:
    topic = random.choice(random.choices([_TOPICS, _FILTERS], [20, 1])[0])
    qos = random.choice([0, 0, 1, 1, 2])
    frame = f.Publish(
        topic,
        random.choice([b"", b"hello", b"x" * 200]),
        qos,
        random.randint(1, 5) if qos else 0,
        random.random() < 0.25,
        bool(qos) and random.random() < 0.1,
    )
    return _packet(client, frame, _text(frame))


def _text(frame: f.Publish) -> str:
    flags = f"{' retain' if frame.retain else ''}{' dup' if frame.dup else ''}"
    return f"PUBLISH {frame.topic} {frame.payload[:9]!r} QoS {frame.qos} id {frame.packet_id}{flags}"


def _acknowledge(random: Random, client: int) -> Command:
    number = random.randint(1, 5)
    kind = random.choice([f.Puback, f.Puback, f.Pubrel, f.Pubrel, f.Pubrec, f.Pubcomp])
    return _packet(client, kind(number), f"{kind.__name__.upper()} {number}")


def _disconnect(random: Random, client: int) -> Command:
    return _packet(client, f.Disconnect(), "DISCONNECT")


def _raw(random: Random, client: int) -> Command:
    text, data = random.choice(list(_RAW.items()))
    return Command(client, data, text)


def _leave(random: Random, client: int) -> Command:
    return Command(client, None, "leaves")


_MAKERS: Mapping[Callable[[Random, int], Command], int] = {
    _subscribe: 16,
    _unsubscribe: 5,
    _publish: 30,
    _acknowledge: 6,
    _connect_oddly: 3,
    _disconnect: 1,
    _raw: 3,
    _leave: 2,
}

#: With clients that come back, and without.
MQTT, CLEAN = MqttDialect(lasting=7), MqttDialect(lasting=0)
