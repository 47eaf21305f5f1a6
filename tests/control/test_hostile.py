"""Hostile requests to all three HTTP APIs end with 4xx, never with 500, and the fake goes on."""

from __future__ import annotations

import contextlib
import json
import re
import socket
from random import Random
from typing import Any

import pytest

from fakebrokers import RabbitMQStream
from fakebrokers.control.api import ControlApi
from fakebrokers.control.brokers import Brokers, operations_of
from fakebrokers.core.frames import kind_of
from fakebrokers.errors import WaitTimeout
from fakebrokers.faults.match import Match
from fakebrokers.faults.registry import effect_types
from fakebrokers.protocol import Protocol, protocols
from fakebrokers.proxy.api import ToxiproxyApi
from fakebrokers.rabbitmq_stream.access import Permission, User
from fakebrokers.rabbitmq_stream.management.api import ROUTES as MANAGEMENT_ROUTES
from fakebrokers.rabbitmq_stream.superstreams import SuperStream
from fakebrokers.server import FakeServer
from tests.control.hostile import METHODS, Asked, ask, body, broken, defects, fields, name, value
from tests.eventually import PATIENCE_S

GUEST = {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}
SHIPPED = [each for each in protocols() if each.server.startswith("fakebrokers.")]
#: Files anywhere on the machine are not for a test to try.
PATHS = ("domains", "monitor")


class Requests:
    """Hostile requests to the control API, for the brokers of one protocol."""

    def __init__(self, protocol: Protocol, brokers: Brokers) -> None:
        self.protocol = protocol
        self.clients: list[socket.socket] = []
        self.brokers = brokers
        self.operations = list(operations_of(protocol).values())
        self.options = protocol.load_control().options
        self.effects = effect_types(protocol.own_effects)

    def __call__(self, random: Random) -> Asked:
        if not list(self.brokers):
            self.brokers.add(self.protocol.name, "b", {})
        kind = random.choice((self.operate, self.operate, self.fault, self.fault, self.other, self.start))
        asked = kind(random)
        return asked._replace(body=broken(random)) if random.random() < 0.05 else asked

    def operate(self, random: Random) -> Asked:
        operation = random.choice(self.operations)
        given = fields(random, operation.arguments, 0.4)
        server = self.brokers.find("b")
        if "connection" in given and random.random() < 0.8:
            given["connection"] = self.connection(server)
        if operation.name == "say" and random.random() < 0.8:
            kind = random.choice([*server._wires[0].frames])
            given |= {"kind": kind_of(kind), "fields": fields(random, kind, 0.5)}
        for each in ("timeout", "timeout_s"):
            if each in given and random.random() < 0.9:
                given[each] = 0.01
        if operation.name == "shift_clock" or random.random() < 0.9:
            return Asked("POST", f"/brokers/b/{operation.name}", body(given))
        query = "&".join(f"{each}={name(random)}" for each in given)
        return Asked(random.choice(METHODS), f"/brokers/b/{operation.name}?{query}")

    def connection(self, server: FakeServer) -> str:
        """The name of a connection that stands, made if there is none."""
        if not server.connections:
            with contextlib.suppress(OSError, WaitTimeout):  # it may refuse, or be silent
                self.clients.append(socket.create_connection((server.host, server.port), 0.05))
                server.wait_for(kind="accepted", timeout=0.05)
        return next((row["name"] for row in server.connections), "c1")

    def close(self) -> None:
        """End the clients' connections."""
        for client in self.clients:
            client.close()

    def fault(self, random: Random) -> Asked:
        effect = random.choice([*self.effects.values()])
        settings = fields(random, effect, 0.5)
        match = fields(random, Match, 0.1)
        one = {"effect": {"type": effect.__struct_config__.tag, **settings}, "match": match}
        given = random.choice(
            (one, {"faults": [one]}, {"faults": value(random), "seed": value(random)}, value(random))
        )
        return Asked("POST", "/brokers/b/faults", body(given))

    def start(self, random: Random) -> Asked:
        drawn = fields(random, self.options, 0.2)
        options = {each: given for each, given in drawn.items() if each not in PATHS}
        given = {"protocol": self.protocol.name, "name": random.choice(("z", "", 5)), "options": options}
        return Asked(
            "POST", "/brokers", body(random.choice((given, given, value(random, ("protocol", "name")))))
        )

    def other(self, random: Random) -> Asked:
        for each, _ in list(self.brokers):
            if each != "b":
                return Asked("DELETE", f"/brokers/{each}")
        path = random.choice(
            (
                "/brokers/b/faults",
                "/brokers/b/connections",
                "/brokers/b/journal",
                "/brokers/b/hold",
                "/brokers",
            )
        )
        path += random.choice(
            ("", f"/{name(random)}", f"/{name(random)}/release", f"?{name(random)}=1", "?since=-1")
        )
        return Asked(random.choice(METHODS), path, body(value(random, ("match", "name"))))


@pytest.mark.parametrize("protocol", SHIPPED, ids=lambda protocol: protocol.name)
def test_the_control_api(brokers: Brokers, api: ControlApi, protocol: Protocol) -> None:
    requests = Requests(protocol, brokers)
    told = ask(api.port, requests, 7, 300)
    requests.close()
    assert defects(told) == []
    refused = [json.loads(each.body) for each in told if each.status >= 400 and each.body]
    assert len(refused) > 80
    assert all({"status", "path", "problem"} <= each.keys() for each in refused)
    assert ask(api.port, lambda random: Asked("POST", "/brokers/b/reset"), 1, 1)[0].status == 204
    brokers.check()


MANAGEMENT = ["/api/../api", "//api", "/", "/api", "/api/", "/api/nothing", "/api/queues/%2F/x/y/z"]
ARGUMENTS = [
    *("x-max-age", "x-max-length-bytes", "x-stream-max-segment-size-bytes", "x-initial-cluster-size"),
    *("x-stream-filter-size-bytes", "x-queue-leader-locator", "x-stream-partition-order", "z"),
]
#: Fields of the bodies that the management API reads.
FIELDS = (
    *(
        "arguments",
        "type",
        "durable",
        "routing_key",
        "tags",
        "password",
        "password_hash",
        "configure",
        "write",
    ),
    *("read", "value", "users", "vhosts", "permissions", "policies", "queues", "exchanges", "bindings"),
    *("pattern", "definition", "priority", "apply-to", "name", "vhost", "source", "destination", "user"),
)
#: What each name in a path is when it is there.
THERE = {
    **{"vhost": "%2F", "name": "orders", "user": "guest", "limit": "max-connections", "connection": "c1"},
    **{"source": "all", "destination": "orders", "properties": "0", "port": "5552", "protocol": "stream"},
}
QUERIES = ("", "", "?page=1", "?page=x", "?page=1&page_size=-1", "?columns=name,,", "?page=2", "?%ff=%ff")


def management(random: Random) -> Asked:
    """A request to the management API: one of its routes, or something beside them."""
    if random.random() < 0.1:
        return Asked(random.choice(METHODS), random.choice(MANAGEMENT), body(value(random)))
    route = random.choice(MANAGEMENT_ROUTES)
    path = re.sub(r"\{(\w+)[^}]*\}", lambda found: _place(random, found[1]), f"/api{route.path}")
    given = fields_of(random) if random.random() < 0.8 else value(random, FIELDS)
    if route.act.__name__ == "_create" and isinstance(given, dict):
        given["arguments"] = {"x-queue-type": "stream", random.choice(ARGUMENTS): value(random)}
    asked = Asked(route.method, path + random.choice(QUERIES), body(given))
    return asked._replace(body=broken(random)) if random.random() < 0.05 else asked


def _place(random: Random, name_: str) -> str:
    return THERE.get(name_, "x") if random.random() < 0.7 else name(random)


def fields_of(random: Random) -> dict[str, Any]:
    """An object with some of the fields, a few of them of the right type."""
    right = {
        **{"tags": "", "password": "x", "configure": ".*", "write": "", "read": "(", "value": 5},
        **{"users": ["guest"], "pattern": "^o", "definition": {"max-age": "1h"}, "durable": "true"},
        **{"arguments": {"x-stream-partition-order": "0"}, "routing_key": "k", "queues": [{"name": "a"}]},
        **{"vhosts": [{"name": "v"}], "permissions": [{"user": "guest"}], "policies": [{"pattern": "x"}]},
    }
    return {
        each: right[each] if each in right and random.random() < 0.6 else value(random)
        for each in FIELDS
        if random.random() < 0.5
    }


#: The answer to a health check that found something is 503, as a real server's is.
UNHEALTHY = b'{"status":"failed","reason":'


def test_the_management_api() -> None:
    """500 never comes, and whatever is refused says why."""
    with RabbitMQStream(management=True) as broker:
        port = int(broker.urls["management"].rpartition(":")[2])

        def prepared(random: Random) -> Asked:
            access = broker.broker.access
            access.users.setdefault("guest", User("guest", "guest"))
            access.users["guest"].password, access.users["guest"].tags = "guest", ("administrator",)
            access.virtual_hosts.setdefault("/", None)
            access.users["guest"].permissions.setdefault("/", Permission())
            if ("/", "orders") not in broker.broker.streams:
                broker.create_stream("orders")
            broker.broker.super_streams.setdefault(("/", "all"), SuperStream("/", "all", []))
            return management(random)

        told = ask(port, prepared, 3, 2000, GUEST)
        assert defects([each for each in told if not each.body.startswith(UNHEALTHY)]) == []
        refused = [json.loads(each.body) for each in told if 400 <= each.status < 500 and each.body]
        assert len(refused) > 500 and all(each.keys() >= {"error", "reason"} for each in refused)
        assert sum(1 for each in told if each.status < 300) > 500
        prepared(Random(0))
        for header in ("Basic", "Basic !!", "Basic /w==", "Bearer x", "Basic " + "x" * 5000):
            (told_,) = ask(port, lambda random: Asked("GET", "/api/queues"), 1, 1, {"Authorization": header})
            assert told_.status == 401


TOXICS = [
    "latency",
    "bandwidth",
    "slow_close",
    "timeout",
    "reset_peer",
    "slicer",
    "limit_data",
    "down",
    "nope",
]
ATTRIBUTES = ["latency", "jitter", "rate", "delay", "timeout", "average_size", "size_variation", "bytes"]


def toxiproxy(random: Random) -> Asked:
    """A request to the Toxiproxy API."""
    proxy, toxic = random.choice(("p", "p", "p2", name(random))), random.choice(("t", name(random)))
    address = random.choice(("127.0.0.1:0", value(random)))
    kind = random.choice(TOXICS)
    attributes = random.choice(({}, value(random), {random.choice(ATTRIBUTES): value(random)}))
    row = {"name": random.choice(("t", value(random))), "type": kind, "attributes": attributes}
    row |= {
        "toxicity": random.choice((1, value(random))),
        "stream": random.choice(("upstream", value(random))),
    }
    made = {
        "name": random.choice(("p", "p2", value(random))),
        "listen": address,
        "toxics": random.choice(([row], value(random))),
    }
    made |= {
        "upstream": random.choice(("127.0.0.1:1", value(random))),
        "enabled": random.choice((True, value(random))),
    }
    asked = random.choice(
        (
            Asked("POST", "/proxies", body(made)),
            Asked("POST", f"/proxies/{proxy}/toxics", body(row)),
            Asked(random.choice(("POST", "PATCH")), f"/proxies/{proxy}/toxics/{toxic}", body(row)),
            Asked(random.choice(("POST", "PATCH")), f"/proxies/{proxy}", body(made)),
            Asked("POST", "/populate", body(random.choice(([made], value(random))))),
            Asked("DELETE", f"/proxies/{proxy}"),
            Asked(
                random.choice(METHODS), random.choice(("/proxies", "/reset", "/version", f"/proxies/{proxy}"))
            ),
        )
    )
    return asked._replace(body=broken(random)) if random.random() < 0.1 else asked


def test_the_toxiproxy_api() -> None:
    """Toxiproxy itself answers 500 where it cannot listen, in JSON; anything else would be a defect."""
    with ToxiproxyApi() as api:
        told = ask(api.port, toxiproxy, 5, 1000)
        told += ask(api.port, toxiproxy, 105, 400)
    bad = [
        each
        for each in told
        if not (each.body.startswith(b'{"error":"listen tcp') or b'"error": "listen tcp' in each.body)
    ]
    assert defects(bad) == []


def test_bytes_that_are_no_http(api: ControlApi, brokers: Brokers) -> None:
    brokers.add("pzq", "b", {})
    whole = (
        b"POST /brokers/b/put HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 14\r\n\r\n" + b'{"body":["a"]}'
    )
    random = Random(11)
    for _ in range(200):
        data = bytearray(whole)
        for _ in range(random.choice((1, 2, 8))):
            place = random.randrange(len(data))
            data[place : place + random.randrange(4)] = random.randbytes(random.randrange(4))
        with socket.create_connection(("127.0.0.1", api.port), timeout=PATIENCE_S) as client:
            client.sendall(bytes(data))
            client.shutdown(socket.SHUT_WR)
            while part := client.recv(10_000):
                assert b" 500 " not in part
    many = {f"X-{number}": "x" * 8000 for number in range(20)}
    (told,) = ask(api.port, lambda random: Asked("GET", "/brokers"), 1, 1, many)
    assert told.status in (200, 400, 431)
    assert ask(api.port, lambda random: Asked("GET", "/brokers"), 1, 1)[0].status == 200
