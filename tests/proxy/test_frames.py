"""The proxy with a protocol: plans by role and kind act in front of a server, and the journal has frames."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fakebrokers import Moleculer, RabbitMQStream
from fakebrokers.errors import PlanError
from fakebrokers.faults import (
    Fault,
    corrupt,
    crash,
    delay,
    drop,
    duplicate,
    fault,
    latency,
    reorder,
    reply,
    rewrite,
)
from fakebrokers.faults.effects import Inject
from fakebrokers.journal import Tap
from fakebrokers.proxy import Proxy
from fakebrokers.rabbitmq_stream.faults import DeleteStream
from fakebrokers.rabbitmq_stream.frames import (
    Heartbeat,
    Metadata,
    MetadataResponse,
    PublishConfirm,
    PublishError,
)
from tests.eventually import PATIENCE_S
from tests.proxy.stream_client import StreamClient
from tests.proxy.test_half_closed import read_all, server


@contextmanager
def stream_proxy(*faults: Fault, **options: Any) -> Iterator[tuple[RabbitMQStream, Proxy]]:
    with (
        RabbitMQStream(exact=True) as broker,
        Proxy(broker.url, protocol="rabbitmq-stream", **options) as proxy,
    ):
        broker.create_stream("orders")
        proxy.faults.add(*faults)
        yield broker, proxy


def bodies(broker: RabbitMQStream) -> list[bytes]:
    return [message.body for message in broker.messages("orders")]


def test_the_journal_has_the_frames_of_the_protocol() -> None:
    with stream_proxy() as (broker, proxy), StreamClient(proxy.port) as client:
        client.create("orders")
        client.publish(b"tea")
        assert client.confirmed(1) == [3]
        (sent,) = proxy.journal.select(role="publish")
        assert (sent.kind, sent.tap, sent.connection) == ("Publish", Tap.IN, "c1")
        assert proxy.journal.select(kind="SaslAuthenticate")
        assert not proxy.journal.select(kind="ClientBytes")
        assert not proxy.journal.select(kind="ServerBytes")
        frames = ("Publish", "PublishConfirm", "DeclarePublisher", "Tune")
        passed = [(r.kind, r.size) for r in proxy.journal.select() if r.kind in frames]
        assert passed == [(r.kind, r.size) for r in broker.journal.select() if r.kind in frames]


def test_a_plan_by_role_loses_the_third_confirm() -> None:
    with stream_proxy(drop(role="confirm", nth=3, name="lost")) as (broker, proxy):
        with StreamClient(proxy.port, ids=10) as client:
            client.create("orders")
            for count, body in enumerate((b"a", b"b", b"c", b"d"), 1):
                client.publish(body)
                broker.wait_for(kind="PublishConfirm", count=count)
            assert client.confirmed(3) == [12, 13, 15]
        assert bodies(broker) == [b"a", b"b", b"c", b"d"]
        assert proxy.faults.fired("lost") == 1


def test_a_single_item_of_a_batch() -> None:
    with stream_proxy(drop(role="publish", nth=2, unit="item")) as (broker, proxy):
        with StreamClient(proxy.port, ids=10) as client:
            client.create("orders")
            client.publish(b"a", b"b", b"c")
            assert client.confirmed(2) == [12, 14]
        assert bodies(broker) == [b"a", b"c"]


LINES = [b'connect  {"verbose" : false}\r\n', b"Sub  MOL.INFO\t7\r\n", b"pub MOL.INFO 00002\r\n{}\r\n"]


@pytest.mark.parametrize(
    ("disturbance", "order"),
    [
        (latency(0.01, direction="in"), [0, 1, 2]),
        (delay(0.05, kind="Sub", direction="in"), [0, 2, 1]),
        (duplicate(kind="Sub", direction="in"), [0, 1, 1, 2]),
        (reorder(window=3, direction="in"), [2, 1, 0]),
        (drop(kind="Sub", direction="in"), [0, 2]),
    ],
    ids=["latency", "delay", "duplicate", "reorder", "drop"],
)
def test_what_waits_in_the_proxy_reaches_the_server_as_it_came(disturbance: Fault, order: list[int]) -> None:
    """Also where the codec would write it in another way."""
    heard = []
    with (
        server(lambda sock: heard.append(read_all(sock))) as address,
        Proxy(address, protocol="moleculer", wire="nats") as proxy,
    ):
        proxy.faults.add(disturbance)
        with socket.create_connection((proxy.host, proxy.port), PATIENCE_S) as sock:
            sock.sendall(b"".join(LINES))
            sock.shutdown(socket.SHUT_WR)
            assert read_all(sock) == b""
    assert heard == [b"".join([LINES[number] for number in order])]


def test_bytes_that_a_fault_changes_reach_the_server() -> None:
    with stream_proxy(corrupt(at=-1, xor=0x01, role="publish")) as (broker, proxy):
        with StreamClient(proxy.port) as client:
            client.create("orders")
            client.publish(b"`")
            client.confirmed(1)
        assert bodies(broker) == [b"a"]


def test_fields_that_a_fault_changes() -> None:
    change = rewrite({"publisher_id": 9}, kind="PublishConfirm")
    with stream_proxy(change) as (_, proxy), StreamClient(proxy.port) as client:
        client.create("orders")
        client.publish(b"a")
        assert client.wait(PublishConfirm).publisher_id == 9


def test_a_frame_that_nobody_asked_for_and_a_refusal() -> None:
    faults = [
        fault(Inject(kind="Heartbeat"), kind="PublishConfirm", direction="out"),
        reply(17, role="publish", nth=2),
    ]
    with stream_proxy(*faults) as (broker, proxy), StreamClient(proxy.port) as client:
        client.create("orders")
        client.publish(b"a")
        client.wait(Heartbeat)
        client.publish(b"b")
        assert client.wait(PublishError).errors == ((4, 17),)
        assert bodies(broker) == [b"a"]


def test_clients_are_told_the_proxys_address() -> None:
    with stream_proxy() as (_, proxy), StreamClient(proxy.port) as client:
        assert client.opened.properties == {
            "advertised_host": "127.0.0.1",
            "advertised_port": str(proxy.port),
        }
        client.say(Metadata(8, ("orders",)))
        assert [each.port for each in client.wait(MetadataResponse).brokers] == [proxy.port]


def test_clients_are_told_the_name_that_is_wanted() -> None:
    with stream_proxy(advertised_host="proxy.test") as (_, proxy), StreamClient(proxy.port) as client:
        client.say(Metadata(8, ("orders",)))
        brokers = client.wait(MetadataResponse).brokers
        assert [(each.host, each.port) for each in brokers] == [("proxy.test", proxy.port)]


def test_clients_are_told_what_the_server_says_if_that_is_wanted() -> None:
    with stream_proxy(readdress=False) as (broker, proxy), StreamClient(proxy.port) as client:
        assert client.opened.properties == {
            "advertised_host": "127.0.0.1",
            "advertised_port": str(broker.port),
        }


def test_a_crash_is_one_of_the_proxy_and_the_server_goes_on() -> None:
    with stream_proxy(crash(role="publish", nth=2, restart_s=0.05)) as (broker, proxy):
        with StreamClient(proxy.port) as client:
            client.create("orders")
            client.publish(b"a")
            client.confirmed(1)
            client.publish(b"b")
        proxy.wait_for(kind="listening")
        with StreamClient(proxy.port) as client:
            client.create("orders")
        assert broker.messages("orders")


def test_faults_on_what_a_broker_keeps_are_refused() -> None:
    with stream_proxy() as (_, proxy):
        with pytest.raises(PlanError, match="delete-stream"):
            proxy.faults.add(fault(DeleteStream(stream="orders"), role="confirm"))
        with pytest.raises(PlanError, match="confrim"):
            proxy.faults.add(drop(role="confrim"))


def test_what_is_no_frame_passes_as_it_came() -> None:
    with (
        stream_proxy() as (broker, proxy),
        socket.create_connection((proxy.host, proxy.port), PATIENCE_S) as sock,
    ):
        sock.settimeout(PATIENCE_S)
        sock.sendall(b"\0\0\0\x04\x7f\xff\0\1")
        assert sock.recv(100) == b""  # the server ends it
        broker.wait_for(kind="Malformed")
        assert proxy.journal.select(kind="Malformed")


def test_a_plan_for_the_packets_on_a_bus() -> None:
    """Names of packets hold in front of a bus that somebody else runs."""
    with (
        Moleculer(transporter="nats") as bus,
        Proxy(bus.url, protocol="moleculer", wire="nats") as proxy,
        socket.create_connection((proxy.host, proxy.port), PATIENCE_S) as sock,
    ):
        proxy.faults.add(drop(kind="Info", direction="out", nth=1, name="lost"))
        sock.settimeout(PATIENCE_S)
        stream = sock.makefile("rb")
        assert stream.readline().startswith(b"INFO ")
        sock.sendall(b'CONNECT {"verbose":false}\r\nSUB MOL.INFO 1\r\nPING\r\n')
        assert stream.readline() == b"PONG\r\n"
        infos = [b'{"ver":"4","sender":"x","services":[],"seq":%d}' % number for number in (1, 2)]
        for info in infos:
            sock.sendall(b"PUB MOL.INFO %d\r\n%b\r\n" % (len(info), info))
        assert stream.readline().split()[:2] == [b"MSG", b"MOL.INFO"]
        assert stream.readline() == infos[1] + b"\r\n"
        assert proxy.faults.fired("lost") == 1


def test_the_beginning_of_a_frame_passes_with_the_end() -> None:
    """Of both sides: what comes of a frame before FIN."""
    heard = []

    def cut_short(sock: socket.socket) -> None:
        heard.append(read_all(sock))
        sock.sendall(b"\0\0\0\x09\x80\x01")

    with server(cut_short) as address, Proxy(address, protocol="rabbitmq-stream") as proxy:
        with socket.create_connection((proxy.host, proxy.port), PATIENCE_S) as sock:
            sock.settimeout(PATIENCE_S)
            sock.sendall(b"\0\0\0\x08\0\x17")
            sock.shutdown(socket.SHUT_WR)
            assert read_all(sock) == b"\0\0\0\x09\x80\x01"
        assert [record.size for record in proxy.journal.select(kind="ServerBytes")] == [6]
    assert heard == [b"\0\0\0\x08\0\x17"]
