"""Hostile requests to all three HTTP APIs end with 4xx, never with 500, and the fake goes on."""

from __future__ import annotations

import contextlib
import json
import socket
from random import Random

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
from fakebrokers.server import FakeServer
from tests.control.hostile import METHODS, Asked, ask, body, broken, defects, fields, name, value

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
            kind = random.choice([*server.wires[0].frames])
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


MANAGEMENT = [
    *("/api/connections", "/api/queues", "/api/exchanges", "/api/bindings", "/api/stream/connections"),
    *("/api/stream/publishers", "/api/users", "/api/overview", "/api/nodes", "/api/../api", "//api", "/"),
]
ARGUMENTS = [
    *("x-max-age", "x-max-length-bytes", "x-stream-max-segment-size-bytes", "x-initial-cluster-size"),
    *("x-stream-filter-size-bytes", "x-queue-leader-locator", "z"),
]


def management(random: Random) -> Asked:
    """A request to the management API."""
    if random.random() < 0.5:
        given = value(random, ("arguments", "x-queue-type"))
        if random.random() < 0.7:
            given = {"arguments": {"x-queue-type": "stream", random.choice(ARGUMENTS): value(random)}}
        path = f"/api/queues/{random.choice(('%2F', '%2f', 'x'))}/{name(random)}"
        return Asked("PUT", path, body(given) if random.random() < 0.9 else broken(random))
    path = random.choice(MANAGEMENT) + "".join(f"/{name(random)}" for _ in range(random.randrange(3)))
    return Asked(random.choice(METHODS), path, body(value(random)))


def test_the_management_api() -> None:
    with RabbitMQStream(management=True) as broker:
        port = int(broker.urls["management"].rpartition(":")[2])
        assert defects(ask(port, management, 3, 800, GUEST)) == []
        for header in ("Basic", "Basic !!", "Basic /w==", "Bearer x", "Basic " + "x" * 5000):
            (told,) = ask(port, lambda random: Asked("GET", "/api/queues"), 1, 1, {"Authorization": header})
            assert told.status == 401


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
        with socket.create_connection(("127.0.0.1", api.port), timeout=5) as client:
            client.sendall(bytes(data))
            client.shutdown(socket.SHUT_WR)
            while part := client.recv(10_000):
                assert b" 500 " not in part
    many = {f"X-{number}": "x" * 8000 for number in range(20)}
    (told,) = ask(api.port, lambda random: Asked("GET", "/brokers"), 1, 1, many)
    assert told.status in (200, 400, 431)
    assert ask(api.port, lambda random: Asked("GET", "/brokers"), 1, 1)[0].status == 200
