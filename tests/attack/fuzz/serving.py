"""The server that a fuzzer talks to, in a process of its own: ``python -m tests.attack.fuzz.serving WIRE``.

It prints its ports. For each line that it reads it raises what went wrong inside, forgets what it has stored,
so that what is stored does not hide what leaks, and prints ``fine``.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from fakebrokers.protocol import find_protocol
from fakebrokers.server import FakeServer

#: Limits of all fakes.
LIMITS = {"journal_limit": 1000}
#: User of the second client at the management API; the attacker is guest.
SECOND = "second"


class Served(NamedTuple):
    """A running server.

    Attributes:
        urls: In the order of `recorded.Talk.port`.
        tidy: Raises what went wrong, and forgets.
    """

    urls: list[str]
    tidy: Callable[[], None]


@contextmanager
def _fake(protocol: str, **options: Any) -> Iterator[Served]:
    with find_protocol(protocol).load()(**LIMITS, **options) as fake:
        yield Served([*fake.urls.values()] or [fake.url], lambda: _tidy(fake))


def _tidy(fake: FakeServer) -> None:
    fake.check()
    fake.reset()


@contextmanager
def _blazingmq() -> Iterator[Served]:
    names = {"priority": (), "fanout": ("foo", "bar"), "broadcast": ()}
    limits = {"queue_messages": 100, "max_queues": 100, "deduplication_time_ms": 0}
    domains = {
        f"bmq.test.mem.{mode}": {"mode": mode, "app_ids": ids, **limits} for mode, ids in names.items()
    }
    domains["second"] = {"mode": "priority", "app_ids": (), **limits}
    with _fake("blazingmq", domains=domains, heartbeats=True, heartbeat_s=0.1) as served:
        yield served


def _bus(transporter: str) -> Callable[[], Any]:
    """A bus with two nodes, which forget their own state: a reset would end them."""

    @contextmanager
    def serve() -> Iterator[Served]:
        from fakebrokers import Moleculer

        with Moleculer(transporter=transporter, profile="0.14", gossip_s=0.1, **LIMITS) as bus:
            for name in ("nA", "nB"):
                bus.node(name, {"bs": {"echo": lambda ctx: ctx.params}}, heartbeat_s=0)

            def tidy() -> None:
                bus.check()
                for node in bus.broker.nodes.values():
                    node.received.clear()
                    node.broken.clear()
                    node.calls.orphans.clear()

            url = bus.node_url("nA") if transporter == "tcp" else bus.url
            yield Served([url], tidy)

    return serve


@contextmanager
def _control() -> Iterator[Served]:
    from fakebrokers.control.api import ControlApi
    from fakebrokers.control.brokers import Brokers

    brokers = Brokers()

    def tidy() -> None:
        for name, server in brokers:
            server.check()
            brokers.remove(name)
        brokers.add("rabbitmq-stream", "b", dict(LIMITS))

    brokers.add("rabbitmq-stream", "b", dict(LIMITS))
    try:
        with ControlApi(brokers) as api:
            yield Served([api.url], tidy)
    finally:
        brokers.close()


@contextmanager
def _management() -> Iterator[Served]:
    from fakebrokers import RabbitMQStream
    from fakebrokers.rabbitmq_stream.access import User

    with RabbitMQStream(management=True, **LIMITS) as fake:

        def furnish() -> None:
            access = fake.broker.access
            for name in [each for each in access.users if each not in ("guest", SECOND)]:
                del access.users[name]
            for name in ("guest", SECOND):
                access.add_user(User(name, name))
            for host in [each for each in access.virtual_hosts if each != "/"]:
                del access.virtual_hosts[host]
            access.virtual_hosts.setdefault("/", None)
            fake.broker.create("/", "orders", {}, fake.broker.cluster.nodes[0])

        def tidy() -> None:
            _tidy(fake)
            fake.call(furnish)

        fake.call(furnish)
        yield Served([fake.urls["management"]], tidy)


@contextmanager
def _proxy() -> Iterator[Served]:
    from fakebrokers.proxy.api import ToxiproxyApi

    with ToxiproxyApi() as api:
        yield Served([api.url], lambda: None)


SERVERS: Mapping[str, Callable[[], Any]] = {
    "rabbitmq-stream": lambda: _fake("rabbitmq-stream"),
    "blazingmq": _blazingmq,
    "pzq": lambda: _fake("pzq"),
    "narconi-http": lambda: _fake("narconi"),
    "narconi-websocket": lambda: _fake("narconi"),
    **{name: _bus(name) for name in ("nats", "redis", "mqtt", "tcp")},
    "nats-alone": lambda: _fake("nats"),
    "redis-alone": lambda: _fake("redis"),
    "mqtt-alone": lambda: _fake("mqtt"),
    "control": _control,
    "management": _management,
    "proxy": _proxy,
}


def _give_back() -> None:
    """Hand memory that is free back to the system, as far as its C library can: the rest is in use."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def main() -> None:
    """Serve until stdin ends."""
    with SERVERS[sys.argv[1]]() as served:
        print(*(urlsplit(url).port for url in served.urls), flush=True)
        for _ in sys.stdin:
            served.tidy()
            _give_back()
            print("fine", flush=True)
        served.tidy()


if __name__ == "__main__":
    main()
