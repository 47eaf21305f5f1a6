"""A connection that one side has ended goes on in the other direction."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fakebrokers.faults import latency
from fakebrokers.proxy import Proxy
from fakebrokers.proxy.api import ToxiproxyApi
from tests.proxy.control import Api


def read_all(sock: socket.socket) -> bytes:
    got = b""
    while data := sock.recv(65536):
        got += data
    return got


@contextmanager
def server(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server for one connection; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            accepted, _ = listener.accept()
            with accepted:
                accepted.settimeout(5)
                talk(accepted)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        host, port = listener.getsockname()
        yield f"{host}:{port}"
        thread.join(5)
        assert not thread.is_alive()


def answer_at_the_end(sock: socket.socket) -> None:
    """Answers once the client has sent FIN, as servers do that read a request to its end."""
    sock.sendall(b"got " + read_all(sock))


def test_the_answer_to_a_client_that_has_sent_fin() -> None:
    with server(answer_at_the_end) as address, Proxy(address) as proxy:
        with socket.create_connection((proxy.host, proxy.port), 5) as sock:
            sock.settimeout(5)
            sock.sendall(b"question")
            sock.shutdown(socket.SHUT_WR)
            assert read_all(sock) == b"got question"
        proxy.wait_for(kind="closed")
        assert [record.note for record in proxy.journal.select(kind="half-closed")] == ["by client"]


def test_the_end_of_the_client_comes_behind_data_that_a_fault_made_late() -> None:
    with server(answer_at_the_end) as address, Proxy(address) as proxy:
        proxy.faults.add(latency(0.1, direction="in"))
        with socket.create_connection((proxy.host, proxy.port), 5) as sock:
            sock.settimeout(5)
            sock.sendall(b"question")
            sock.shutdown(socket.SHUT_WR)
            assert read_all(sock) == b"got question"


def test_a_client_goes_on_behind_the_end_of_the_server() -> None:
    heard = []

    def end_first(sock: socket.socket) -> None:
        sock.sendall(b"all I have to say")
        sock.shutdown(socket.SHUT_WR)
        heard.append(read_all(sock))

    with server(end_first) as address, Proxy(address) as proxy:
        with socket.create_connection((proxy.host, proxy.port), 5) as sock:
            sock.settimeout(5)
            assert read_all(sock) == b"all I have to say"
            sock.sendall(b"and ")
            time.sleep(0.05)
            sock.sendall(b"this?")
        proxy.wait_for(kind="closed")
    assert heard == [b"and this?"]


def test_slow_close_makes_each_end_late(service: ToxiproxyApi, api: Api) -> None:
    with server(answer_at_the_end) as address:
        _, made, _ = api("POST", "/proxies", {"name": "p", "upstream": address})
        for stream in ("upstream", "downstream"):
            toxic = {"type": "slow_close", "stream": stream, "attributes": {"delay": 100}}
            api("POST", "/proxies/p/toxics", toxic)
        host, _, port = made["listen"].rpartition(":")
        with socket.create_connection((host, int(port)), 5) as sock:
            sock.settimeout(5)
            started = time.monotonic()
            sock.sendall(b"question")
            sock.shutdown(socket.SHUT_WR)
            assert sock.recv(100) == b"got question"
            answered = time.monotonic() - started
            assert sock.recv(100) == b""
            ended = time.monotonic() - started
    assert answered >= 0.1
    assert ended >= 0.2
