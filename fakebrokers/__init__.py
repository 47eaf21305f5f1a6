"""Fake message brokers that live in your test process and break on purpose.

    with fakebrokers.RabbitMQStream() as broker:
        ...  # point a client at broker.url

The server classes are loaded when they are first asked for, so ``import fakebrokers`` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakebrokers.version import __version__ as __version__

if TYPE_CHECKING:
    from fakebrokers.blazingmq.server import BlazingMQ
    from fakebrokers.moleculer.server import Moleculer
    from fakebrokers.mqtt.server import MQTT
    from fakebrokers.narconi.server import Narconi
    from fakebrokers.nats.server import NATS
    from fakebrokers.pzq.server import PZQ
    from fakebrokers.rabbitmq_stream.server import RabbitMQStream
    from fakebrokers.redis.server import Redis

__all__ = ["MQTT", "NATS", "PZQ", "BlazingMQ", "Moleculer", "Narconi", "RabbitMQStream", "Redis"]


def __dir__() -> list[str]:
    return [*globals(), *__all__]


def __getattr__(name: str) -> Any:
    from fakebrokers.protocol import server_named

    if name[:1].isupper() and (server := server_named(name)) is not None:
        return server
    raise AttributeError(f"module 'fakebrokers' has no attribute {name!r}")
