"""Toxiproxy's control API: shapes of answers, errors, and what the toxics do."""

from __future__ import annotations

import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from fakebrokers.proxy.api import ToxiproxyApi
from tests.toy import Toy

Answer = tuple[int, Any, dict[str, str]]


class Api:
    """A small HTTP client."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                text, status, got = answer.read(), answer.status, answer.headers
        except urllib.error.HTTPError as error:
            with error:
                text, status, got = error.read(), error.code, error.headers
        try:
            return status, json.loads(text) if text else None, dict(got)
        except ValueError:
            return status, text.decode(), dict(got)


@pytest.fixture
def toy() -> Iterator[Toy]:
    with Toy() as toy:
        yield toy


@pytest.fixture
def service() -> Iterator[ToxiproxyApi]:
    with ToxiproxyApi(seed=4) as api:
        yield api


@pytest.fixture
def api(service: ToxiproxyApi) -> Api:
    return Api(service.url)


@pytest.fixture
def proxy(api: Api, toy: Toy) -> dict[str, Any]:
    status, made, _ = api("POST", "/proxies", {"name": "p", "upstream": f"127.0.0.1:{toy.port}"})
    assert status == 201
    return made


def connect(proxy: dict[str, Any]) -> socket.socket:
    host, _, port = proxy["listen"].rpartition(":")
    sock = socket.create_connection((host, int(port)), 5)
    sock.settimeout(5)
    return sock


def talk(sock: socket.socket, line: bytes = b"put a\n", size: int = 9) -> bytes:
    sock.sendall(line)
    got = b""
    while len(got) < size and (data := sock.recv(size - len(got))):
        got += data
    return got


# shapes


def test_proxies_as_toxiproxy_prints_them(api: Api, toy: Toy, proxy: dict[str, Any]) -> None:
    assert list(proxy) == ["name", "listen", "upstream", "enabled", "Logger", "toxics"]
    assert proxy["listen"].startswith("127.0.0.1:")
    assert not proxy["listen"].endswith(":0")
    assert (proxy["enabled"], proxy["Logger"], proxy["toxics"]) == (True, {}, [])
    assert api("GET", "/proxies")[:2] == (200, {"p": proxy})
    assert api("GET", "/proxies/p")[:2] == (200, proxy)
    status, version, headers = api("GET", "/version")
    assert (status, list(version)) == (200, ["version"])
    assert headers["Content-Type"] == "application/json; charset=utf-8"
    assert len(headers["X-Toxiproxy-Request-Id"]) == 20
    with connect(proxy) as sock:
        assert talk(sock) == b"stored a\n"


@pytest.mark.parametrize("verb", ["POST", "PATCH"])
def test_off_and_on_again(api: Api, proxy: dict[str, Any], verb: str) -> None:
    with connect(proxy) as sock:
        assert talk(sock) == b"stored a\n"
        status, off, _ = api(verb, "/proxies/p", {"enabled": False})
        assert (status, off["enabled"], off["listen"]) == (200, False, proxy["listen"])
        assert sock.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)
    assert api(verb, "/proxies/p", {"enabled": True})[1] == proxy
    with connect(proxy) as sock:
        assert talk(sock) == b"stored a\n"


def test_another_server(api: Api, proxy: dict[str, Any]) -> None:
    with Toy() as other:
        status, changed, _ = api("PATCH", "/proxies/p", {"upstream": f"127.0.0.1:{other.port}"})
        assert (status, changed["listen"]) == (200, proxy["listen"])
        with connect(changed) as sock:
            assert talk(sock, b"put b\n") == b"stored b\n"
        assert "b" in other.broker.values


def test_delete(api: Api, proxy: dict[str, Any]) -> None:
    assert api("DELETE", "/proxies/p")[:2] == (204, None)
    assert api("GET", "/proxies")[1] == {}
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)


def test_toxics_as_toxiproxy_prints_them(api: Api, proxy: dict[str, Any]) -> None:
    status, toxic, _ = api("POST", "/proxies/p/toxics", {"type": "latency", "attributes": {"latency": 100}})
    assert status == 200
    assert toxic == {
        "attributes": {"latency": 100, "jitter": 0},
        "name": "latency_downstream",
        "type": "latency",
        "stream": "downstream",
        "toxicity": 1,
    }
    assert list(toxic) == ["attributes", "name", "type", "stream", "toxicity"]
    _, second, _ = api(
        "POST", "/proxies/p/toxics", {"type": "noop", "stream": "UPSTREAM", "toxicity": 0.5, "name": "x"}
    )
    assert (second["stream"], second["toxicity"]) == ("UPSTREAM", 0.5)
    assert api("GET", "/proxies/p/toxics")[1] == [second, toxic]  # upstream first
    assert api("GET", "/proxies/p/toxics/x")[1] == second
    for verb, jitter in (("POST", 5), ("PATCH", 6)):
        body = {"attributes": {"jitter": jitter}, "name": "other", "stream": "upstream", "toxicity": 0.25}
        status, changed, _ = api(verb, "/proxies/p/toxics/latency_downstream", body)
        assert status == 200
        assert changed == {**toxic, "attributes": {"latency": 100, "jitter": jitter}, "toxicity": 0.25}
    assert api("DELETE", "/proxies/p/toxics/x")[:2] == (204, None)
    assert api("POST", "/reset")[:2] == (204, None)
    assert api("GET", "/proxies/p/toxics")[1] == []


# errors


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("GET", "/proxies/none", None, 404, "proxy not found"),
        ("DELETE", "/proxies/none", None, 404, "proxy not found"),
        ("GET", "/proxies/none/toxics", None, 404, "proxy not found"),
        ("GET", "/proxies/p/toxics/none", None, 404, "toxic not found"),
        ("DELETE", "/proxies/p/toxics/none", None, 404, "toxic not found"),
        ("POST", "/proxies", {"name": "p", "upstream": "x:1"}, 409, "proxy already exists"),
        ("POST", "/proxies", {"upstream": "x:1"}, 400, "missing required field: name"),
        ("POST", "/proxies", {"name": "q"}, 400, "missing required field: upstream"),
        ("POST", "/proxies", {"name": 5, "upstream": "x:1"}, 400, "bad request body: "),
        ("POST", "/proxies", {"name": "q", "upstream": "nowhere"}, 400, "bad request body: "),
        ("POST", "/proxies", b"{", 400, "bad request body: "),
        ("POST", "/proxies/p/toxics", {"type": "nope"}, 400, "invalid toxic type"),
        ("POST", "/proxies/p/toxics", {"type": "noop", "stream": "up"}, 400, "stream was invalid, can be"),
        (
            "POST",
            "/proxies/p/toxics",
            {"type": "latency", "attributes": {"latency": 1.5}},
            400,
            "bad request body: ",
        ),
    ],
)
def test_errors(
    api: Api, proxy: dict[str, Any], method: str, path: str, body: Any, status: int, text: str
) -> None:
    got, answer, headers = api(method, path, body)
    assert (got, answer["status"]) == (status, status)
    assert answer["error"].startswith(text)
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_a_toxic_of_that_name_already(api: Api, proxy: dict[str, Any]) -> None:
    api("POST", "/proxies/p/toxics", {"type": "noop", "name": "n"})
    status, answer, _ = api(
        "POST", "/proxies/p/toxics", {"type": "latency", "name": "n", "stream": "upstream"}
    )
    assert (status, answer["error"]) == (409, "toxic already exists")


def test_a_port_that_is_taken(api: Api, toy: Toy) -> None:
    body = {"name": "q", "upstream": "x:1", "listen": f"127.0.0.1:{toy.port}"}
    status, answer, _ = api("POST", "/proxies", body)
    assert status == 500
    assert answer["error"] == f"listen tcp 127.0.0.1:{toy.port}: bind: address already in use"
    assert api("GET", "/proxies")[1] == {}


def test_routes_that_there_are_not(api: Api) -> None:
    assert api("GET", "/nothing")[:2] == (404, "404 page not found\n")
    assert api("PUT", "/proxies")[:2] == (405, None)
    assert "X-Toxiproxy-Request-Id" not in api("GET", "/nothing")[2]


def test_web_pages_are_kept_out(api: Api) -> None:
    headers = {"User-Agent": "Mozilla/5.0"}
    assert api("GET", "/version", **headers)[:2] == (403, "User agent not allowed\n")
    assert api("GET", "/version", Host="evil.example")[0] == 403
    assert api("GET", "/version", Origin="http://evil.example")[0] == 403
    assert api("GET", "/version", Host="localhost:8474")[0] == 200


# populate


def test_populate(api: Api, toy: Toy, proxy: dict[str, Any]) -> None:
    upstream = proxy["upstream"]
    api("POST", "/proxies/p/toxics", {"type": "noop"})
    rows = [
        {"name": "p", "upstream": upstream, "listen": proxy["listen"], "enabled": False},
        {"name": "q", "upstream": upstream, "toxics": [{"type": "latency", "attributes": {"latency": 50}}]},
    ]
    status, answer, _ = api("POST", "/populate", rows)
    assert status == 201
    first, second = answer["proxies"]
    assert first["enabled"]
    assert len(first["toxics"]) == 1  # stood as wanted: left alone
    with connect(second) as sock:
        started = time.monotonic()
        assert talk(sock) == b"stored a\n"
        assert time.monotonic() - started > 0.05
    rows[0]["upstream"] = "127.0.0.1:9"
    assert api("POST", "/populate", rows)[1]["proxies"][0]["toxics"] == []


def test_populate_refuses_before_it_begins(api: Api) -> None:
    status, answer, headers = api("POST", "/populate", [{"name": "a", "upstream": "x:1"}, {"name": "b"}])
    error = "missing required field: upstream at proxy 2"
    assert (status, answer) == (400, {"proxies": None, "error": error, "status": 400})
    assert headers["Content-Type"] == "application/json"
    assert api("GET", "/proxies")[1] == {}
    assert api("POST", "/populate", {})[0] == 400


def test_populate_says_what_was_done_before_it_failed(api: Api, toy: Toy) -> None:
    rows = [
        {"name": "a", "upstream": "127.0.0.1:9"},
        {"name": "b", "upstream": "127.0.0.1:9", "listen": f"127.0.0.1:{toy.port}"},
    ]
    status, answer, _ = api("POST", "/populate", rows)
    assert (status, [each["name"] for each in answer["proxies"]]) == (500, ["a"])


# toxics at work


def poison(api: Api, kind: str, stream: str = "downstream", toxicity: float = 1.0, **attributes: int) -> None:
    body = {"type": kind, "stream": stream, "toxicity": toxicity, "attributes": attributes}
    status, answer, _ = api("POST", "/proxies/p/toxics", body)
    assert status == 200, answer


@pytest.mark.parametrize("stream", ["upstream", "downstream"])
def test_latency(api: Api, proxy: dict[str, Any], stream: str) -> None:
    with connect(proxy) as sock:
        assert talk(sock) == b"stored a\n"
        poison(api, "latency", stream, latency=60)
        started = time.monotonic()
        assert talk(sock) == b"stored a\n"
        assert 0.06 <= time.monotonic() - started < 4
        api("PATCH", f"/proxies/p/toxics/latency_{stream}", {"attributes": {"latency": 60_000}})
        sock.sendall(b"put a\n")
        time.sleep(0.03)
        api("DELETE", f"/proxies/p/toxics/latency_{stream}")  # lets everything go at once
        assert sock.recv(100) == b"stored a\n"


def test_bandwidth(api: Api, proxy: dict[str, Any]) -> None:
    with connect(proxy) as sock:
        talk(sock, b"put k " + b"x" * 1991 + b"\n")
        poison(api, "bandwidth", rate=20)
        started = time.monotonic()
        assert len(talk(sock, b"get k\n", 2000)) == 2000
        assert 0.05 < time.monotonic() - started < 4
        api("DELETE", "/proxies/p/toxics/bandwidth_downstream")
        poison(api, "bandwidth")  # rate 0: nothing until it is removed
        sock.settimeout(0.05)
        with pytest.raises(TimeoutError):
            talk(sock)
        api("DELETE", "/proxies/p/toxics/bandwidth_downstream")
        sock.settimeout(5)
        assert sock.recv(100) == b"stored a\n"


def test_timeout_that_closes_and_one_that_never_does(api: Api, proxy: dict[str, Any]) -> None:
    with connect(proxy) as sock:
        assert talk(sock) == b"stored a\n"
        poison(api, "timeout", timeout=60)
        started = time.monotonic()
        assert talk(sock) == b""
        assert time.monotonic() - started < 4
    api("DELETE", "/proxies/p/toxics/timeout_downstream")
    with connect(proxy) as sock:
        assert talk(sock) == b"stored a\n"
        poison(api, "timeout")
        sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            talk(sock)
        api("DELETE", "/proxies/p/toxics/timeout_downstream")  # there is a hole in the data: closed
        sock.settimeout(5)
        assert sock.recv(1) == b""


@pytest.mark.parametrize("stream", ["upstream", "downstream"])
def test_reset_peer(api: Api, proxy: dict[str, Any], stream: str) -> None:
    with connect(proxy) as old:
        assert talk(old) == b"stored a\n"
        poison(api, "reset_peer", stream, timeout=20)
        with connect(proxy) as new:
            for sock in (old, new):  # the real program resets new connections only
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
    with connect(proxy) as sock:
        sock.sendall(b"put a\n")
        assert [sock.recv(100) for _ in range(4)] == [b"st", b"or", b"ed", b" a\n"]
    api("DELETE", "/proxies/p/toxics/slicer_downstream")
    poison(api, "slicer", "upstream", average_size=10, size_variation=5)
    with connect(proxy) as sock:
        assert talk(sock, b"put " + b"k" * 500 + b"\n", 508) == b"stored " + b"k" * 500 + b"\n"


@pytest.mark.parametrize("stream", ["upstream", "downstream"])
def test_slow_close(api: Api, toy: Toy, proxy: dict[str, Any], stream: str) -> None:
    poison(api, "slow_close", stream, delay=80)
    with connect(proxy) as sock:
        assert talk(sock, b"hello x\n", 8) == b"welcome\n"
        started = time.monotonic()
        if stream == "downstream":
            toy.kill()
            assert sock.recv(1) == b""
        else:
            sock.close()
            toy.wait_for(kind="closed")
        assert 0.08 <= time.monotonic() - started < 4


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


def test_adding_another_toxic_changes_no_draw(api: Api, proxy: dict[str, Any]) -> None:
    poison(api, "latency", toxicity=0.5, latency=40)

    def slow(sock: socket.socket) -> bool:
        started = time.monotonic()
        assert talk(sock) == b"stored a\n"
        return time.monotonic() - started >= 0.04

    socks = [connect(proxy) for _ in range(6)]
    try:
        before = [slow(sock) for sock in socks]
        poison(api, "noop")
        poison(api, "slicer", average_size=1000)
        assert [slow(sock) for sock in socks] == before
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
