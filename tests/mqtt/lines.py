"""Clients of a fake MQTT server without sockets, in frames: see `tests.bench`."""

from __future__ import annotations

from typing import Any

from fakebrokers.core.frames import Frame
from fakebrokers.mqtt import frames as f
from fakebrokers.mqtt.codec import MqttCodec
from tests.bench import Bench, Client


def say(client: Client, *frames: Frame) -> list[Frame]:
    """What comes back."""
    return read(client.say(b"".join(map(MqttCodec().encode, frames))))


def heard(client: Client) -> list[Frame]:
    """What has come since the last look."""
    return read(client.take())


def read(data: bytes) -> list[Frame]:
    return [frame for frame, _ in MqttCodec().feed(data)]


def enter(bench: Bench, name: str = "c", **options: Any) -> Client:
    """A client that is let in, and not remembered."""
    client, known = come_back(bench, name, **options)
    assert known == [f.Connack(0)]
    return client


def come_back(bench: Bench, name: str, **options: Any) -> tuple[Client, list[Frame]]:
    """A client, and what it hears at once."""
    client = bench.connect()
    return client, say(client, f.Connect(name, **options))


def publish(client: Client, topic: str, body: bytes, qos: int = 1, *, number: int = 9) -> None:
    """A message up to the end of its exchange; what else comes is not taken."""
    frames = [f.Publish(topic, body, qos, number if qos else 0), *([f.Pubrel(number)] if qos == 2 else [])]
    client.say(b"".join(map(MqttCodec().encode, frames)))
