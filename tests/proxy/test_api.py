"""Toxiproxy's control API: shapes of answers, and errors."""

from __future__ import annotations

from typing import Any

import pytest

from fakebrokers.faults import drop
from fakebrokers.proxy.api import ToxiproxyApi
from tests.eventually import takes_at_least
from tests.proxy.control import Api, connect, talk
from tests.toy import Toy

NO_HOST = "expected an IP address or a host name, got"
REACHED = "all who reach this address can use the fake"

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


def test_off_and_on_keeps_the_journal_and_the_counts(
    service: ToxiproxyApi, api: Api, proxy: dict[str, Any]
) -> None:
    managed = service.proxy("p").proxy
    assert managed is not None
    managed.faults.add(drop(direction="out", nth=1, scope="run", name="lost"))
    for enabled in (False, True):
        with connect(proxy) as sock:
            sock.sendall(b"put a\n")
            managed.wait_for(kind="ServerBytes", count=1 + enabled)
            assert api("POST", "/proxies/p", {"enabled": False})[0] == 200
            assert sock.recv(100) == (b"stored a\n" if enabled else b"")
        api("POST", "/proxies/p", {"enabled": True})
    assert managed.faults.fired("lost") == 1
    assert [record.connection for record in managed.journal.select(kind="accepted")] == ["c1", "c2"]


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


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"listen": "127.0.0.1:99999"}, "listen tcp: address 127.0.0.1:99999: invalid port"),
        ({"listen": "nowhere"}, "listen tcp: address nowhere: missing port in address"),
        ({"listen": "a:٣"}, "listen tcp: address a:٣: missing port in address"),
        ({"listen": "0. .1:0"}, f"listen tcp: address 0. .1:0: {NO_HOST} '0. .1'"),
        ({"listen": "1:0"}, f"listen tcp: address 1:0: {NO_HOST} '1'"),  # the resolver's 0.0.0.1
        ({"listen": "a.1:0"}, f"listen tcp: address a.1:0: {NO_HOST} 'a.1'"),
        ({"listen": "é:0"}, f"listen tcp: address é:0: {NO_HOST} 'é'"),
        ({"listen": "\0:0"}, f"listen tcp: address \0:0: {NO_HOST} '\\x00'"),
        ({"listen": "[::1%\0]:0"}, f"listen tcp: address [::1%\0]:0: {NO_HOST} '::1%\\x00'"),
        (
            {"listen": "x" * 500 + ":0"},
            f"listen tcp: address {'x' * 100}: {NO_HOST} '{'x' * 99}",
        ),
        # both may be; our tests make an error of each warning
        ({"listen": "192.0.2.1:0"}, f"bad request body: proxy: listening on 192.0.2.1: {REACHED}"),
        ({"listen": "a-b.1.c_2.:0"}, f"bad request body: proxy: listening on a-b.1.c_2.: {REACHED}"),
        ({"toxics": 0.5}, "bad request body: expected a list of toxics, got 0.5"),
    ],
)
def test_a_proxy_that_cannot_be(api: Api, change: dict[str, Any], text: str) -> None:
    status, answer, _ = api("POST", "/proxies", {"name": "q", "upstream": "x:1", **change})
    assert (status, answer["error"]) == (400, text)
    assert api("GET", "/proxies")[1] == {}


def test_an_address_that_cannot_be_leaves_the_proxy_as_it_is(api: Api, proxy: dict[str, Any]) -> None:
    with connect(proxy) as sock:
        status, answer, _ = api("PATCH", "/proxies/p", {"listen": "0. .1:0"})
        assert (status, answer["error"]) == (400, f"listen tcp: address 0. .1:0: {NO_HOST} '0. .1'")
        assert talk(sock) == b"stored a\n"
    assert api("GET", "/proxies/p")[1] == proxy


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
    assert len(first["toxics"]) == 1  # the same addresses: left as it was
    with connect(second) as sock, takes_at_least(0.05):
        assert talk(sock) == b"stored a\n"
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
