"""Peers that are no libzmq of today: old versions of ZMTP, odd handshakes, random bytes.

The daemon is of 2014; libzmq serves ZMTP 1.0 and 2.0 to this day. Whatever such a peer sends, it may only
harm itself: a client that behaves is served before, between and after.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
import zmq

from fakebrokers.pzq.server import PZQ
from tests.pzq.zmtp import (
    GREETING,
    VERSIONS,
    RawPeer,
    command,
    dial,
    handshake,
    message,
    mutated,
    ready,
)

KINDS = {"receive": "DEALER", "send": "ROUTER", "monitor": "REQ"}
MESSAGES = {"receive": [b"id", b"", b"body"], "send": [b"key", b"1"], "monitor": [b"", b"MONITOR"]}
#: A first message of so many parts that some would stay behind if it were left half read.
PARTS = [b"part %d" % number for number in range(40)]


def named(version: str, kind: str) -> str:
    """How the fake calls such a peer: libzmq has metadata of 3.x only."""
    if version in ("1.0", "2.0"):
        return "ZMTP 1.0 or 2.0"
    return "127.0.0.1" if version == "3.0 without metadata" else f"{kind} 127.0.0.1"


class Producer:
    """A client that behaves: libzmq's own, one message at a time."""

    def __init__(self, context: zmq.Context[Any], url: str) -> None:
        self._socket = context.socket(zmq.DEALER)
        self._socket.linger, self._socket.rcvtimeo = 0, 20_000
        self._socket.connect(url)
        self._sent = 0

    def publish(self, count: int = 1) -> None:
        """Every message is acknowledged, in order, with its own id."""
        for _ in range(count):
            self._sent += 1
            self._socket.send_multipart([b"%d" % self._sent, b"", b"good"])
            assert self._socket.recv_multipart() == [b"%d" % self._sent, b"1", b""]

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def pzq() -> Iterator[PZQ]:
    with PZQ() as pzq:
        yield pzq
        assert pzq.call(lambda: pzq.engine.errors) == []


@pytest.fixture
def producer(pzq: PZQ) -> Iterator[Producer]:
    context: zmq.Context[Any] = zmq.Context()
    producer = Producer(context, pzq.url)
    producer.publish()
    yield producer
    producer.publish(10)
    producer.close()
    context.term()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_producer_of_each_version(pzq: PZQ, producer: Producer, version: str) -> None:
    peer = RawPeer(pzq.url, version, "DEALER")
    peer.send(*PARTS)  # no delimiter
    assert peer.receive()[:3] == [b"part 0", b"0", b""]
    peer.send(b"id", b"", b"odd")
    assert peer.receive() == [b"id", b"1", b""]
    assert [m.body for m in pzq.messages()] == [(b"good",), (b"odd",)]
    assert [c["address"] for c in pzq.connections if c["socket"] == "receive"][1] == named(version, "DEALER")
    peer.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_consumer_of_each_version(pzq: PZQ, producer: Producer, version: str) -> None:
    peer = RawPeer(pzq.send_url, version, "ROUTER")
    key, *_, body = peer.receive()
    assert (key, body) == (pzq.messages()[0].key, b"good")
    peer.send(*PARTS)
    peer.send(key, b"1")
    pzq.wait_for(role="ack", count=2)
    assert pzq.messages() == []
    assert [c["address"] for c in pzq.connections if c["socket"] == "send"] == [named(version, "ROUTER")]
    peer.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_monitoring_client_of_each_version(pzq: PZQ, producer: Producer, version: str) -> None:
    peer = RawPeer(pzq.monitor_url, version, "REQ")
    peer.send(*PARTS)
    peer.send(b"", b"MONITOR")
    empty, text = peer.receive()
    assert (empty, text[:12]) == (b"", b"messages: 1\n")
    assert [c["address"] for c in pzq.connections if c["socket"] == "monitor"] == [named(version, "REQ")]
    peer.close()


def test_a_peer_without_a_type_that_ends_amid_a_message(pzq: PZQ, producer: Producer) -> None:
    for _ in range(20):
        peer = RawPeer(pzq.url, "3.0 without metadata", "DEALER")
        peer.socket.sendall(message("3.0", b"id", b"", b"body" * 100)[:-50])
        peer.close()
        producer.publish()


@pytest.mark.parametrize("seed", range(6))
def test_mutated_peers(pzq: PZQ, producer: Producer, seed: int) -> None:
    random = Random(seed)
    for _ in range(25):
        for role in KINDS:
            be_odd_from_the_start(pzq, role, random)
            be_odd_later(pzq, role, random)
        producer.publish()


def odd_handshake(kind: bytes, random: Random) -> bytes:
    """What is wrong from the start; libzmq refuses most of it, and waits for the rest of some."""
    commands = [
        ready(),
        ready(Socket_Type=random.choice((b"", b"PUB", b"dealer", b"\xff\xfe", kind * 99))),
        ready(Identity=b"\0odd", Peer_Address=b"10.0.0.1", Socket_Type=kind),
        command(b"ERROR", b"\x03why"),
        command(b"PING", b"\0\x10context"),
        command(b""),
        b"\x04\x00",
    ]
    match random.randrange(4):
        case 0:
            return mutated(GREETING, random) + ready(Socket_Type=kind)
        case 1:
            return GREETING + mutated(ready(Socket_Type=kind, Identity=b""), random)
        case 2:
            return GREETING + random.choice(commands)
        case _:
            return mutated(handshake(random.choice(("1.0", "2.0")), kind.decode()), random)


def be_odd_from_the_start(pzq: PZQ, role: str, random: Random) -> None:
    """An odd handshake, and messages all the same."""
    with dial(pzq.urls[role]) as sock, contextlib.suppress(OSError):  # it may have been refused by then
        sock.sendall(odd_handshake(KINDS[role].encode(), random))
        sock.settimeout(0.02)
        with contextlib.suppress(TimeoutError):  # libzmq may wait for more
            got = b""
            while b"Identity" not in got and (data := sock.recv(4096)):
                got += data
        sock.sendall(message(random.choice(VERSIONS), *MESSAGES[role]) * random.choice((1, 5)))


def be_odd_later(pzq: PZQ, role: str, random: Random) -> None:
    """A handshake that is right, then commands and messages that are not."""
    version = random.choice(VERSIONS)
    peer = RawPeer(pzq.urls[role], version, KINDS[role])
    messages = b"".join([message(version, *MESSAGES[role]) for _ in range(random.choice((1, 5)))])
    with contextlib.suppress(OSError):
        if random.random() < 0.3:
            odd = [(b"PING", b"\0\x10context"), (b"SUBSCRIBE", b"x"), (b"NOTHING",), (b"READY",)]
            peer.socket.sendall(command(*random.choice(odd)) + messages)
        else:
            data = mutated(messages, random)
            cut = random.randrange(len(data) + 1)
            peer.socket.sendall(data[:cut])
            peer.socket.sendall(data[cut:])
    peer.close()
