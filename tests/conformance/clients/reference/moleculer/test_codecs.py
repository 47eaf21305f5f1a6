"""The words of the message servers, against the fake ones and byte by byte."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.moleculer.codecs import (
    Broken,
    Codec,
    Granted,
    Message,
    MqttCodec,
    NatsCodec,
    Ready,
    RedisCodec,
    Write,
)
from conformance.clients.reference.moleculer.mesh import FrameReader, frame

#: What each server says: taken in, a subscription granted, a message.
SAID: list[tuple[type[Any], bytes, list[type]]] = [
    (
        NatsCodec,
        b'INFO {"max_payload":9}\r\nPONG\r\nPONG\r\nMSG MOL.INFO 3 5\r\na\r\nbc\r\n',
        [Write, Ready, Granted, Message],
    ),
    (
        RedisCodec,
        b"%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n>3\r\n$9\r\nsubscribe\r\n$8\r\nMOL.INFO\r\n:1\r\n"
        b">3\r\n$7\r\nmessage\r\n$8\r\nMOL.INFO\r\n$5\r\na\r\nbc\r\n",
        [Ready, Granted, Message],
    ),
    (
        MqttCodec,
        b"\x20\x02\x00\x00\x90\x03\x00\x01\x00\x30\x0f\x00\x08MOL.INFOa\r\nbc",
        [Ready, Granted, Message],
    ),
]


@pytest.mark.parametrize(("kind", "said", "wanted"), SAID, ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_what_a_server_says(kind: type[Codec], said: bytes, wanted: list[type], size: int) -> None:
    codec = kind()
    came = [each for at in range(0, len(said), size) for each in codec.feed(said[at : at + size])]
    assert [type(each) for each in came] == wanted
    assert came[-1] == Message("MOL.INFO", b"a\r\nbc")


def test_nats_limits_and_groups() -> None:
    codec = NatsCodec()
    codec.feed(b'INFO {"max_payload":9}\r\n')
    assert codec.max_payload == 9
    assert codec.subscribe("MOL.REQB.a", "a") == b"SUB MOL.REQB.a a 1\r\n"
    assert codec.subscribe("MOL.INFO") == b"SUB MOL.INFO 2\r\n"
    assert codec.unsubscribe_balanced() == b"UNSUB 1\r\n"
    assert codec.unsubscribe_balanced() == b""
    with pytest.raises(ClientError, match="Authorization Violation"):
        codec.feed(b"-ERR 'Authorization Violation'\r\n")


def test_refusals() -> None:
    with pytest.raises(ClientError, match="NOAUTH"):
        RedisCodec().feed(b"-NOAUTH HELLO must be called with the client already authenticated\r\n")
    with pytest.raises(ClientError, match="CONNACK 5"):
        MqttCodec().feed(b"\x20\x02\x00\x05")


def test_mqtt_lengths() -> None:
    codec = MqttCodec()
    for size in (1, 127, 128, 16_383, 16_384, 300_000):
        packet = codec.publish("t", bytes(size))
        assert MqttCodec().feed(packet) == [Message("t", bytes(size))]


def test_frames_between_nodes() -> None:
    hello = bytes.fromhex("370000003f08")
    assert frame(8, bytes(0x3F - 6))[:6] == hello  # as a real node wrote it
    data = frame(2, b"{}") + frame(5, b"[1]")
    reader = FrameReader()
    assert [each for byte in data for each in reader.feed(bytes([byte]))] == [(2, b"{}"), (5, b"[1]")]
    with pytest.raises(ClientError, match="checksum"):
        FrameReader().feed(b"\x00\x00\x00\x00\x08\x02{}")


def test_nats_messages_in_front_of_an_error_count() -> None:
    codec = NatsCodec()
    message, broken = codec.feed(b"MSG MOL.INFO 3 1\r\na\r\n-ERR 'Stale Connection'\r\n")
    assert message == Message("MOL.INFO", b"a")
    assert isinstance(broken, Broken) and "Stale" in str(broken.error)


@pytest.mark.parametrize(
    "said", [b"MSG MOL.INFO 3 x\r\n", b"MSG MOL.INFO 3 1\r\nabc\r\n", b"INFO {\r\n", b"MSG\r\n"]
)
def test_nats_bytes_that_nobody_can_read(said: bytes) -> None:
    with pytest.raises(ClientError) as caught:
        NatsCodec().feed(said)
    assert caught.value.kind == "protocol"


def test_nats_servers_may_tell_of_themselves_again() -> None:
    codec = NatsCodec()
    assert len(codec.feed(b'INFO {"max_payload":9}\r\n')) == 1
    assert codec.feed(b'INFO {"max_payload":7}\r\n') == []
    assert codec.max_payload == 7
