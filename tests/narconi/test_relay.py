"""A proxy that reads Narconi: it sees the same frames as the server behind it, in both directions."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator

import pytest
from websockets.sync.client import connect

from fakebrokers import Narconi
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.faults import drop, latency, reply, rewrite
from fakebrokers.narconi import frames as f
from fakebrokers.narconi.relay import NarconiRelay, ServerCodec
from fakebrokers.proxy import Proxy
from tests.eventually import PATIENCE_S, QUIET_S
from tests.proxy.test_half_closed import server

QUEUE = "/v2/gold/queues/orders"
MESSAGES = f"{QUEUE}/messages"


@pytest.fixture
def narconi() -> Iterator[Narconi]:
    with Narconi() as narconi:
        yield narconi


@pytest.fixture
def proxy(narconi: Narconi) -> Iterator[Proxy]:
    with Proxy(narconi.url, protocol="narconi") as proxy:
        yield proxy


def seen(server: Narconi | Proxy) -> list[tuple[str, str, int]]:
    """Kinds, taps and sizes of all frames."""
    return [(r.kind, str(r.tap), r.size) for r in server.journal.select() if r.frame is not None or r.size]


def ask(connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None) -> int:
    connection.request(method, path, body)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def test_http(narconi: Narconi, proxy: Proxy) -> None:
    connection = http.client.HTTPConnection(proxy.host, proxy.port, timeout=PATIENCE_S)
    requests = [
        ("DELETE", MESSAGES, None),
        ("PUT", QUEUE, None),
        ("POST", MESSAGES, b"hello"),
        ("DELETE", MESSAGES, None),
        ("DELETE", MESSAGES, None),
        ("POST", MESSAGES, b"x" * 300_000),
        ("OPTIONS", QUEUE, None),
        ("HEAD", QUEUE, None),
        ("DELETE", QUEUE, None),
    ]
    statuses = [ask(connection, *each) for each in requests]
    assert statuses[1:5] == [201, 201, 200, 204]
    connection.close()
    assert seen(proxy) == seen(narconi)
    kinds = {kind for kind, _, _ in seen(proxy)}
    assert kinds >= {"QueueEnsured", "HttpConfirm", "HttpDeliver", "HttpEmpty", "HttpReject", "QueueDeleted"}
    assert "ServerBytes" not in kinds


def test_websocket(narconi: Narconi, proxy: Proxy) -> None:
    narconi.create_queue("gold", "orders")
    url = f"ws://{proxy.host}:{proxy.port}{MESSAGES}"
    with connect(url, subprotocols=["publish"]) as publisher:  # type: ignore[list-item]
        publisher.send(b"one")
        publisher.send(json.dumps({"message": "two", "x-a": "b"}))
        publisher.send(json.dumps({"Content-Type": "text/plain"}))
        publisher.send("three")
        assert [publisher.recv(timeout=PATIENCE_S) for _ in range(3)] == ["", "", ""]
        publisher.send("no JSON")
        assert "error" in str(publisher.recv(timeout=PATIENCE_S))
    with connect(f"{url}?ack=true", subprotocols=["consume"]) as consumer:  # type: ignore[list-item]
        payloads = []
        for _ in range(3):
            metadata = json.loads(consumer.recv(timeout=PATIENCE_S))
            payloads.append(consumer.recv(timeout=PATIENCE_S))
            consumer.send(json.dumps({"ackId": metadata["ackId"]}))
        assert payloads == [b"one", b"two", b"three"]
        consumer.ping().wait(PATIENCE_S)
    proxy.wait_for(kind="closed", count=2)
    narconi.wait_for(kind="closed", count=2)
    # a server that has hung up does not read the client's last Close any more
    both = [sorted(each for each in seen(server) if each[0] != "WsClose") for server in (proxy, narconi)]
    assert both[0] == both[1]
    kinds = {kind for kind, _, _ in seen(proxy)}
    assert kinds >= {
        "WsAccept",
        "WsConfirm",
        "WsReject",
        "WsDeliver",
        "WsPublish",
        "WsAck",
        "WsPong",
        "WsClose",
    }


def test_faults_by_role_and_field(narconi: Narconi, proxy: Proxy) -> None:
    narconi.create_queue("gold", "orders")
    proxy.faults.add(drop(role="confirm", nth=2))
    url = f"ws://{proxy.host}:{proxy.port}{MESSAGES}"
    with connect(url, subprotocols=["publish"]) as publisher:  # type: ignore[list-item]
        for body in (b"one", b"two", b"three"):
            publisher.send(body)
        assert [publisher.recv(timeout=PATIENCE_S) for _ in range(2)] == ["", ""]
        with pytest.raises(TimeoutError):
            publisher.recv(timeout=QUIET_S)
    assert len(narconi.messages("gold", "orders")) == 3


def test_what_a_fault_changed_is_masked(narconi: Narconi, proxy: Proxy) -> None:
    narconi.create_queue("gold", "orders")
    proxy.faults.add(rewrite({"payload": "changed"}, kind="WsPublish"))
    with connect(f"ws://{proxy.host}:{proxy.port}{MESSAGES}", subprotocols=["publish"]) as publisher:  # type: ignore[list-item]
        publisher.send(b"one")
        assert publisher.recv(timeout=PATIENCE_S) == ""
    (message,) = narconi.messages("gold", "orders")
    assert message.payload == b"changed"
    pair = f.WsPublish(1, b"payload", {"x-a": "b"}, "pair")
    masked, plain = NarconiRelay().from_client.encode(pair), NarconiRelay().from_server.encode(pair)
    assert masked[1] == plain[1] | 0x80
    assert len(masked) == len(plain) + 8


def test_a_request_that_is_lost_takes_no_answer(narconi: Narconi, proxy: Proxy) -> None:
    """The answers that come belong to the requests that reached the server."""
    proxy.faults.add(drop(kind="OtherRequest"), latency(0.01, direction="in"))
    with socket.create_connection((proxy.host, proxy.port), PATIENCE_S) as sock:
        sock.settimeout(PATIENCE_S)
        sock.sendall(
            b"GET /lost HTTP/1.1\r\nHost: h\r\n\r\nPUT %b HTTP/1.1\r\nHost: h\r\n\r\n" % QUEUE.encode()
        )
        assert sock.recv(65536).startswith(b"HTTP/1.1 201")
    assert proxy.journal.select(kind="QueueEnsured")


def test_a_client_that_waits_for_continue_gets_it(narconi: Narconi, proxy: Proxy) -> None:
    narconi.create_queue("gold", "orders")
    head = f"POST {MESSAGES} HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
    with socket.create_connection((proxy.host, proxy.port), PATIENCE_S) as sock:
        sock.settimeout(PATIENCE_S)
        sock.sendall(head.encode())
        assert sock.recv(65536).startswith(b"HTTP/1.1 100 ")
        sock.sendall(b"hello")
        narconi.wait_for(kind="HttpConfirm")
    assert [message.payload for message in narconi.messages("gold", "orders")] == [b"hello"]


def read(data: bytes, asked: list[f.HttpRequest], size: int) -> list[Frame]:
    codec = ServerCodec()
    codec.asked.extend(asked)
    return [frame for at in range(0, len(data), size) for frame, _ in codec.feed(data[at : at + size])]


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_body_in_chunks(size: int) -> None:
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
    consume = f.HttpConsume("DELETE", MESSAGES, number=7)
    (frame,) = read(data, [consume], size)
    assert isinstance(frame, f.HttpDeliver)
    assert (frame.body, frame.number) == (b"abcde", 7)


@pytest.mark.parametrize(
    "data", [b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", b"x" * 90_000]
)
def test_what_is_no_response(data: bytes) -> None:
    (frame,) = read(data, [], 100_000)
    assert isinstance(frame, Malformed)


def test_a_refusal_by_the_proxy(narconi: Narconi, proxy: Proxy) -> None:
    """There is none: only the server knows how it would say it. The request passes."""
    proxy.faults.add(reply(500, kind="EnsureQueue"))
    connection = http.client.HTTPConnection(proxy.host, proxy.port, timeout=PATIENCE_S)
    assert ask(connection, "PUT", QUEUE) == 201
    connection.close()


def test_what_cannot_be_read_waits_for_nothing() -> None:
    """A request whose body breaks off in nonsense reaches the server as it came, and so does what follows."""
    data = b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n"
    heard = []

    def listen(sock: socket.socket) -> None:
        got = b""
        while len(got) < 2 * len(data):
            got += sock.recv(65536)
        heard.append(got)

    with (
        server(listen) as address,
        Proxy(address, protocol="narconi") as proxy,
        socket.create_connection((proxy.host, proxy.port), PATIENCE_S) as sock,
    ):
        sock.sendall(data)
        proxy.wait_for(kind="Malformed")
        sock.sendall(data)
        proxy.wait_for(kind="half-closed")
    assert heard == [data + data]
