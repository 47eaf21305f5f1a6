"""A connection that one side has ended goes on in the other direction."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fakebrokers.faults import latency
from fakebrokers.proxy import Proxy
from fakebrokers.proxy.api import ToxiproxyApi
from tests.eventually import PATIENCE_S, takes_at_least
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
                accepted.settimeout(PATIENCE_S)
                talk(accepted)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        host, port = listener.getsockname()
        yield f"{host}:{port}"
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def answer_at_the_end(sock: socket.socket) -> None:
    """Answers once the client has sent FIN, as servers do that read a request to its end."""
    sock.sendall(b"got " + read_all(sock))


def test_the_answer_to_a_client_that_has_sent_fin() -> None:
    with server(answer_at_the_end) as address, Proxy(address) as proxy:
        with socket.create_connection((proxy.host, proxy.port), PATIENCE_S) as sock:
            sock.settimeout(PATIENCE_S)
            sock.sendall(b"question")
            sock.shutdown(socket.SHUT_WR)
            assert read_all(sock) == b"got question"
        proxy.wait_for(kind="closed")
        assert [record.note for record in proxy.journal.select(kind="half-closed")] == ["by client"]


def test_the_end_of_the_client_comes_behind_data_that_a_fault_made_late() -> None:
    with server(answer_at_the_end) as address, Proxy(address) as proxy:
        proxy.faults.add(latency(0.1, direction="in"))
        with socket.create_connection((proxy.host, proxy.port), PATIENCE_S) as sock:
            sock.settimeout(PATIENCE_S)
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
        with socket.create_connection((proxy.host, proxy.port), PATIENCE_S) as sock:
            sock.settimeout(PATIENCE_S)
            assert read_all(sock) == b"all I have to say"
            sock.sendall(b"and ")
            proxy.wait_for(kind="ClientBytes")
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
        with socket.create_connection((host, int(port)), PATIENCE_S) as sock:
            sock.settimeout(PATIENCE_S)
            with takes_at_least(0.2):
                with takes_at_least(0.1):
                    sock.sendall(b"question")
                    sock.shutdown(socket.SHUT_WR)
                    assert sock.recv(100) == b"got question"
                assert sock.recv(100) == b""
