"""What the toxics do."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from fakebrokers.journal import Tap
from fakebrokers.proxy.api import ToxiproxyApi
from tests.eventually import nothing_comes, takes_at_least
from tests.onlooker import looked_at
from tests.proxy.control import Api, connect, talk
from tests.toy import Toy


def poison(api: Api, kind: str, stream: str = "downstream", toxicity: float = 1.0, **attributes: int) -> None:
    body = {"type": kind, "stream": stream, "toxicity": toxicity, "attributes": attributes}
    status, answer, _ = api("POST", "/proxies/p/toxics", body)
    assert status == 200, answer


@pytest.mark.parametrize("stream", ["upstream", "downstream"])
def test_latency(service: ToxiproxyApi, api: Api, proxy: dict[str, Any], stream: str) -> None:
    held = service.proxy("p").proxy
    assert held is not None
    with connect(proxy) as sock:
        assert talk(sock) == b"stored a\n"
        poison(api, "latency", stream, latency=60)
        with takes_at_least(0.06):
            assert talk(sock) == b"stored a\n"
        api("PATCH", f"/proxies/p/toxics/latency_{stream}", {"attributes": {"latency": 60_000}})
        tap = {"upstream": Tap.RECEIVED, "downstream": Tap.SAID}[stream]
        kind = {"upstream": "ClientBytes", "downstream": "ServerBytes"}[stream]
        since = held.journal.last_seq
        sock.sendall(b"put a\n")
        held.wait_for(kind=kind, tap=tap, since=since)
        api("DELETE", f"/proxies/p/toxics/latency_{stream}")  # everything that was held is sent at once
        assert sock.recv(100) == b"stored a\n"


def test_bandwidth(api: Api, proxy: dict[str, Any]) -> None:
    with connect(proxy) as sock:
        talk(sock, b"put k " + b"x" * 1991 + b"\n")
        poison(api, "bandwidth", rate=20)
        with takes_at_least(0.05):
            assert len(talk(sock, b"get k\n", 2000)) == 2000
        api("DELETE", "/proxies/p/toxics/bandwidth_downstream")
        poison(api, "bandwidth")  # rate 0: nothing until it is removed
        sock.sendall(b"put a\n")
        nothing_comes(sock)
        api("DELETE", "/proxies/p/toxics/bandwidth_downstream")
        assert sock.recv(100) == b"stored a\n"


def test_timeout_that_closes_and_one_that_never_does(api: Api, proxy: dict[str, Any]) -> None:
    with connect(proxy) as sock:
        assert talk(sock) == b"stored a\n"
        poison(api, "timeout", timeout=60)
        assert talk(sock) == b""
    api("DELETE", "/proxies/p/toxics/timeout_downstream")
    with connect(proxy) as sock:
        assert talk(sock) == b"stored a\n"
        poison(api, "timeout")
        sock.sendall(b"put a\n")
        nothing_comes(sock)
        api("DELETE", "/proxies/p/toxics/timeout_downstream")  # there is a hole in the data: closed
        assert sock.recv(1) == b""


@pytest.mark.parametrize("stream", ["upstream", "downstream"])
def test_reset_peer(api: Api, proxy: dict[str, Any], stream: str) -> None:
    with connect(proxy) as old:
        assert talk(old) == b"stored a\n"
        poison(api, "reset_peer", stream, timeout=20)
        with connect(proxy) as new:
            for sock in (old, new):  # Toxiproxy itself resets new connections only
                with pytest.raises(ConnectionResetError):
                    talk(sock)


def test_limit_data(api: Api, proxy: dict[str, Any]) -> None:
    poison(api, "limit_data", bytes=5)
    with connect(proxy) as sock:
        assert talk(sock) == b"store"
    api("PATCH", "/proxies/p/toxics/limit_data_downstream", {"attributes": {"bytes": 0}})
    with connect(proxy) as sock:
        assert talk(sock) == b""
    api("DELETE", "/proxies/p/toxics/limit_data_downstream")
    poison(api, "limit_data", "upstream", bytes=6)
    with connect(proxy) as sock:
        sock.sendall(b"put a\nput b\n")
        assert sock.recv(100) in (b"stored a\n", b"")


def test_slicer(api: Api, service: ToxiproxyApi, proxy: dict[str, Any]) -> None:
    poison(api, "slicer", average_size=3, delay=20_000)
    managed = service.proxy("p").proxy
    assert managed is not None
    onlooker = looked_at(managed)
    with connect(proxy) as sock, takes_at_least(0.06):
        assert talk(sock) == b"stored a\n"
    assert onlooker.of("handed over") == [b"st", b"or", b"ed", b" a\n"]
    api("DELETE", "/proxies/p/toxics/slicer_downstream")
    poison(api, "slicer", "upstream", average_size=10, size_variation=5)
    with connect(proxy) as sock:
        assert talk(sock, b"put " + b"k" * 500 + b"\n", 508) == b"stored " + b"k" * 500 + b"\n"


@pytest.mark.parametrize("stream", ["upstream", "downstream"])
def test_slow_close(api: Api, toy: Toy, proxy: dict[str, Any], stream: str) -> None:
    poison(api, "slow_close", stream, delay=80)
    with connect(proxy) as sock:
        assert talk(sock, b"hello x\n", 8) == b"welcome\n"
        with takes_at_least(0.08):
            if stream == "downstream":
                toy.kill()
                assert sock.recv(1) == b""
            else:
                sock.close()
                toy.wait_for(kind="closed")


def test_toxicity_is_drawn_once_for_each_connection_and_repeats(toy: Toy) -> None:
    def pattern(seed: int) -> list[bool]:
        with ToxiproxyApi(seed=seed) as service:
            api = Api(service.url)
            _, proxy, _ = api("POST", "/proxies", {"name": "p", "upstream": f"127.0.0.1:{toy.port}"})
            poison(api, "limit_data", toxicity=0.5, bytes=3)
            hits = []
            for _ in range(20):
                with connect(proxy) as sock:
                    hits.append(talk(sock) == b"sto")
            return hits

    assert pattern(1) == pattern(1)
    assert pattern(1) != pattern(2)
    assert 3 < sum(pattern(1)) < 17


def test_adding_another_toxic_changes_no_draw(service: ToxiproxyApi, api: Api, proxy: dict[str, Any]) -> None:
    poison(api, "latency", toxicity=0.5, latency=1)
    managed = service.proxy("p").proxy
    assert managed is not None

    def made_late(number: int, sock: socket.socket) -> bool:
        since = managed.journal.last_seq
        assert talk(sock) == b"stored a\n"
        (answer,) = managed.journal.select(tap=Tap.SAID, connection=f"c{number}", since=since)
        return "latency" in answer.fault

    socks = [connect(proxy) for _ in range(6)]
    try:
        before = [made_late(*each) for each in enumerate(socks, 1)]
        poison(api, "noop")
        poison(api, "slicer", average_size=1000)
        assert [made_late(*each) for each in enumerate(socks, 1)] == before
        assert len(set(before)) == 2
    finally:
        for sock in socks:
            sock.close()


def test_other_faults_on_a_managed_proxy(service: ToxiproxyApi, api: Api, proxy: dict[str, Any]) -> None:
    from fakebrokers.faults import corrupt

    managed = service.proxy("p").proxy
    assert managed is not None
    managed.faults.add(corrupt(at=7, of="stream", xor=3, direction="out", byte=7))
    with connect(proxy) as sock:
        assert talk(sock) == b"stored b\n"
    assert managed.journal.select(kind="ServerBytes")
