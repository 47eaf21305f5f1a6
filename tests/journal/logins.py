"""Every way in which a credential can reach a fake: all of them show the same marked password."""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fakebrokers.blazingmq.server import BlazingMQ
from fakebrokers.moleculer.server import Moleculer
from fakebrokers.mqtt.server import MQTT
from fakebrokers.narconi.server import Narconi
from fakebrokers.rabbitmq_stream.server import RabbitMQStream
from fakebrokers.server import FakeServer
from tests.marked import PASSWORD

_P = PASSWORD.encode()


class Login(NamedTuple):
    """What a client says; `sent` a list of units, which tests may cut anywhere."""

    name: str
    make: Callable[..., FakeServer]
    options: Mapping[str, Any]
    sent: tuple[bytes, ...]


# RabbitMQ Stream


def _stream(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


_PLAIN = b"\0bob\0" + _P
_DATA = struct.pack(">I", len(_PLAIN)) + _PLAIN
_SASL = struct.pack(">HHI", 0x13, 1, 3)
_PEER = _stream(struct.pack(">HHII", 0x11, 1, 1, 1) + _text("product") + _text("x"))
_SHAKE = _stream(struct.pack(">HHI", 0x12, 1, 2))

_RABBITMQ = {
    "PLAIN": (_PEER, _SHAKE, _stream(_SASL + _text("PLAIN") + _DATA)),
    "SCRAM": (_stream(_SASL + _text("SCRAM-SHA-256") + _DATA),),
    "wrong mechanism": (_stream(_SASL + _text("X" * 200) + _DATA),),
    "overlong mechanism": (_stream(_SASL + _text("PLAIN" * 3000) + _DATA),),
    "mechanism swallows data": (
        _PEER,
        _stream(_SASL + struct.pack(">h", 5 + len(_DATA)) + b"PLAIN" + _DATA + b"\xff\xff\xff\xff"),
    ),
    "password as mechanism": (_stream(_SASL + _text(PASSWORD) + b"\xff\xff\xff\xff"),),
    "null mechanism": (_stream(_SASL + struct.pack(">h", -1) + _DATA),),
    "mechanism beyond the frame": (_stream(_SASL + struct.pack(">h", 9999) + b"PLAIN" + _DATA),),
    "data beyond the frame": (_stream(_SASL + _text("PLAIN") + struct.pack(">I", 9999) + _PLAIN),),
    "no key": (_stream(struct.pack(">HHI", 0x7713, 1, 3) + _text("PLAIN") + _DATA),),
    "other version": (_stream(struct.pack(">HHI", 0x13, 9, 3) + _text("PLAIN") + _DATA),),
    "too large": (struct.pack(">I", 1 << 30) + _SASL + _text("PLAIN") + _DATA,),
    "AMQP 0.9.1": (b"AMQP\0\0\x09\x01" + _PLAIN,),
    "HTTP": (b"GET / HTTP/1.1\r\nAuthorization: Basic " + b64encode(b"bob:" + _P) + b"\r\n\r\n",),
    "cut": (_stream(_SASL + _text("PLAIN") + _DATA)[:-1],),
    "properties": (
        _stream(
            struct.pack(">HHII", 0x11, 1, 1, 2)
            + _text("password")
            + _text(PASSWORD)
            + _text("url")
            + _text(f"amqp://bob:{PASSWORD}@h/")
        ),
    ),
}

# the buses of Moleculer


def _connect(**options: Any) -> bytes:
    return b"CONNECT " + json.dumps(options).encode() + b"\r\n"


_NATS = {
    "pass": (_connect(verbose=True, user="bob", **{"pass": PASSWORD}), b"PING\r\n"),
    "token": (_connect(auth_token=PASSWORD),),
    "jwt": (_connect(jwt=PASSWORD, sig=PASSWORD, nkey=PASSWORD),),
    "unknown field": (_connect(passcode=PASSWORD, my_token=PASSWORD),),
    "no JSON": (b'CONNECT {"user":"bob","pass":"%b"\r\n' % _P,),
    "lower case": (b'connect\t{"pass":"%b"}\r\n' % _P,),
    "wrong verb": (b'CONNECX {"pass":"%b"}\r\n' % _P,),
    "no verb": (b'{"pass":"%b"}\r\n' % _P,),
    "the password alone": (_P + b"\r\n",),
    "blank first": (b' CONNECT {"pass":"%b"}\r\n' % _P,),
    "too long": (_connect(**{"pass": PASSWORD}, name="x" * 5000),),
    "cut": (_connect(**{"pass": PASSWORD})[:-1],),
    "nested": (_connect(**{"pass": {"a": [PASSWORD]}}),),
    "HTTP": (b"GET /?token=%b HTTP/1.1\r\nAuthorization: Bearer %b\r\n\r\n" % (_P, _P),),
}


def _resp(*words: bytes | str) -> bytes:
    found = [word.encode() if isinstance(word, str) else word for word in words]
    return b"*%d\r\n" % len(found) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in found)


_REDIS = {
    "AUTH": (_resp("AUTH", _P),),
    "AUTH with a user": (_resp("auth", "bob", _P),),
    "AUTH of three": (_resp("AUTH", "bob", _P, _P),),
    "inline": (b"AUTH bob %b\r\n" % _P,),
    "quoted": (b'AUTH bob "%b"\r\n' % _P,),
    "unbalanced": (b'AUTH bob "%b\r\n' % _P,),
    "HELLO": (_resp("HELLO", "3", "AUTH", "bob", _P),),
    "HELLO without a version": (_resp("HELLO", "AUTH", "bob", _P),),
    "requirepass": (_resp("CONFIG", "SET", "requirepass", _P), _resp("CONFIG", "GET", "requirepass")),
    "masterauth": (_resp("config", "set", "maxmemory", "1", "MasterAuth", _P),),
    "ACL": (_resp("ACL", "SETUSER", "bob", "on", b">" + _P, "~*", b"<" + _P, b"#" + _P.hex().encode()),),
    "MIGRATE": (_resp("MIGRATE", "h", "1", "k", "0", "9", "AUTH2", "bob", _P),),
    "SENTINEL": (_resp("SENTINEL", "SET", "main", "auth-pass", _P),),
    "a size that is wrong": (b"*2\r\n$4\r\nAUTH\r\n$999\r\n%b\r\n" % _P,),
    "no size": (b"*2\r\n$4\r\nAUTH\r\n%b\r\n" % _P,),
    "cut": (_resp("AUTH", _P)[:-3],),
    "HTTP": (b"GET /?token=%b HTTP/1.1\r\nAuthorization: Bearer %b\r\n\r\n" % (_P, _P),),
}


def _string(text: bytes) -> bytes:
    return struct.pack(">H", len(text)) + text


def _mqtt(body: bytes) -> bytes:
    return b"\x10" + bytes([len(body)]) + body


_WHO = _string(b"cid") + _string(b"bob")
_MQTT = {
    "3.1.1": (_mqtt(_string(b"MQTT") + b"\x04\xc2\0\x3c" + _WHO + _string(_P)),),
    "3.1": (_mqtt(_string(b"MQIsdp") + b"\x03\xc2\0\x3c" + _WHO + _string(_P)),),
    "5": (_mqtt(_string(b"MQTT") + b"\x05\xc2\0\x3c\0" + _WHO + _string(_P)),),
    "5 with AUTH": (
        _mqtt(
            _string(b"MQTT")
            + b"\x05\xc2\0\x3c\x1a\x15\0\x05PLAIN\x16"
            + _string(_P)[:15]
            + _WHO
            + _string(_P)
        ),
    ),
    "a size that is wrong": (_mqtt(_string(b"MQTT") + b"\x04\xc2\0\x3c" + _WHO + b"\x27\x0f" + _P),),
    "flags that are wrong": (_mqtt(_string(b"MQTT") + b"\x04\xc3\0\x3c" + _WHO + _string(_P)),),
    "no user": (_mqtt(_string(b"MQTT") + b"\x04\x42\0\x3c" + _string(b"cid") + _string(_P)),),
    "more behind": (_mqtt(_string(b"MQTT") + b"\x04\x82\0\x3c" + _WHO + _string(_P)),),
    "other protocol": (_mqtt(_string(b"MQTX") + b"\x04\xc2\0\x3c" + _WHO + _string(_P)),),
    "HTTP": (b"GET /?token=%b HTTP/1.1\r\nAuthorization: Bearer %b\r\n\r\n" % (_P, _P),),
}

# BlazingMQ


def _event(kind: int, payload: Any) -> bytes:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    padding = 4 - len(body) % 4
    body += bytes([padding]) * padding
    return struct.pack(">IBBBB", len(body) + 8, 0x40 | kind, 2, 0x20, 0) + body


_BLAZINGMQ = {
    "authentication": (_event(15, {"authenticationRequest": {"mechanism": "PLAIN", "data": PASSWORD}}),),
    "base64": (
        _event(15, {"authenticationRequest": {"mechanism": "PLAIN", "data": b64encode(_P).decode()}}),
    ),
    "password as mechanism": (_event(15, {"authenticationRequest": {"mechanism": PASSWORD}}),),
    "unknown field": (_event(15, {"authenticationRequest": {"mechanism": "PLAIN", "password": PASSWORD}}),),
    "wrong type": (_event(15, {"authenticationRequest": {"mechanism": "PLAIN", "data": [PASSWORD]}}),),
    "no JSON": (_event(15, b'{"authenticationRequest":{"data":"%b"' % _P),),
    "as a control event": (_event(1, {"authenticationRequest": {"mechanism": "PLAIN", "data": PASSWORD}}),),
    "as confirms": (_event(3, {"authenticationRequest": {"mechanism": "PLAIN", "data": PASSWORD}}),),
    "as messages": (_event(2, {"authenticationRequest": {"mechanism": "PLAIN", "data": PASSWORD}}),),
    "as an unknown event": (_event(40, {"authenticationRequest": {"mechanism": "PLAIN", "data": PASSWORD}}),),
    "identity": (_event(1, {"clientIdentity": {"protocolVersion": 1, "password": PASSWORD}}),),
}

# Narconi


def _http(target: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {target} HTTP/1.1", "Host: x", *headers, "", ""]).encode()


_BASIC = b64encode(f"bob:{PASSWORD}".encode()).decode()
_QUEUE = "/v2/p/queues/q/messages"
_UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)
_NARCONI = {
    "Basic": (_http(_QUEUE, f"Authorization: Basic {_BASIC}"),),
    "Bearer": (_http(_QUEUE, f"authorization:bearer {PASSWORD}"),),
    "proxy": (_http(_QUEUE, f"Proxy-Authorization: Basic {_BASIC}"),),
    "folded": (_http(_QUEUE, "Authorization: Basic", f"  {_BASIC}"),),
    "no colon": (_http(_QUEUE, f"Authorization Basic {_BASIC}"),),
    "blank before the colon": (_http(_QUEUE, f"Authorization : Basic {_BASIC}"),),
    "key": (_http(_QUEUE, f"Ocp-Apim-Subscription-Key: {PASSWORD}", f"X-Api-Key: {PASSWORD}"),),
    "cookie": (_http(_QUEUE, f"Cookie: a=b; sid={PASSWORD}"),),
    "query": (_http(f"{_QUEUE}?access_token={PASSWORD}&sig={PASSWORD};password={PASSWORD}"),),
    "fragment": (_http(f"{_QUEUE}#access_token={PASSWORD}"),),
    "userinfo": (_http(f"http://bob:{PASSWORD}@x{_QUEUE}"),),
    "userinfo without a user": (_http(f"http://:{PASSWORD}@x{_QUEUE}"),),
    "userinfo with an at": (_http(f"http://bob:p@{PASSWORD}@x{_QUEUE}"),),
    "escaped name": (_http(f"{_QUEUE}?access%5Ftoken={PASSWORD}"),),
    "WebSocket": (_http(_QUEUE, *_UPGRADE, f"Sec-WebSocket-Protocol: bearer, {PASSWORD}"),),
    "WebSocket in one word": (
        _http(_QUEUE, *_UPGRADE, f"Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.{PASSWORD}"),
    ),
    "no version": (f"GET /?token={PASSWORD}\r\n\r\n".encode(),),
    "other protocol": (f"AUTH bob {PASSWORD}\r\n".encode(),),
    "cut": (_http(_QUEUE, f"Authorization: Basic {_BASIC}")[:-2],),
    "headers without an end": (_http(_QUEUE, f"Authorization: Basic {_BASIC}", "X: " + "x" * 99_999),),
}


def _all() -> list[Login]:
    found = []
    for wire, make, options, cases in (
        ("rabbitmq-stream", RabbitMQStream, {}, _RABBITMQ),
        ("nats", Moleculer, {"transporter": "nats"}, _NATS),
        ("nats with a user", Moleculer, {"transporter": "nats", "user": "bob", "password": PASSWORD}, _NATS),
        ("redis", Moleculer, {"transporter": "redis"}, _REDIS),
        (
            "redis with a user",
            Moleculer,
            {"transporter": "redis", "user": "bob", "password": PASSWORD},
            _REDIS,
        ),
        ("mqtt", Moleculer, {"transporter": "mqtt"}, _MQTT),
        ("mqtt with a user", Moleculer, {"transporter": "mqtt", "user": "bob", "password": PASSWORD}, _MQTT),
        ("mqtt alone", MQTT, {"users": {"bob": PASSWORD}}, _MQTT),
        ("blazingmq", BlazingMQ, {}, _BLAZINGMQ),
        ("narconi", Narconi, {}, _NARCONI),
    ):
        found += [Login(f"{wire}: {name}", make, options, sent) for name, sent in cases.items()]
    return found


LOGINS = _all()
