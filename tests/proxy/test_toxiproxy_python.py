"""Toxiproxy's own Python client controls our proxies as it controls those of a real Toxiproxy."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

toxiproxy = pytest.importorskip(
    "toxiproxy", reason="missing: toxiproxy-python (pip install toxiproxy-python)"
)

from tests.eventually import PATIENCE_S, takes_at_least  # noqa: E402
from tests.real_toxiproxy import EACH, TOXIPROXIES  # noqa: E402
from tests.toy import Toy  # noqa: E402


@pytest.fixture(params=EACH)
def driver(request: pytest.FixtureRequest) -> Iterator[Any]:
    with TOXIPROXIES[request.param]() as url:
        driver = toxiproxy.Toxiproxy()
        driver.update_api_consumer(urlsplit(url).hostname, urlsplit(url).port)
        yield driver


def ask(listen: str) -> bytes:
    host, _, port = listen.rpartition(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as sock:
        sock.settimeout(PATIENCE_S)
        sock.sendall(b"put a\n")
        return sock.recv(100)


def test_everything_that_the_driver_can(driver: Any) -> None:
    from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

    with Toy() as toy:
        upstream = f"127.0.0.1:{toy.port}"
        assert driver.running()
        assert b"version" in driver.version()
        proxy = driver.create(upstream=upstream, name="shop", enabled=True)
        assert ask(proxy.listen) == b"stored a\n"
        with pytest.raises(ProxyExists):
            driver.create(upstream=upstream, name="shop")
        proxy.add_toxic(type="latency", attributes={"latency": 100, "jitter": 0})
        with takes_at_least(0.1):
            assert ask(proxy.listen) == b"stored a\n"
        with pytest.raises(ProxyExists):
            proxy.add_toxic(type="latency")
        with pytest.raises(InvalidToxic):
            proxy.add_toxic(type="poison")
        assert list(proxy.toxics()) == ["latency_downstream"]
        proxy.destroy_toxic("latency_downstream")
        assert proxy.toxics() == {}
        with proxy.down(), pytest.raises(ConnectionRefusedError):
            ask(proxy.listen)
        assert ask(proxy.listen) == b"stored a\n"
        made = driver.populate([{"name": "one", "upstream": upstream}, {"name": "two", "upstream": upstream}])
        assert ask(made[1].listen) == b"stored a\n"
        assert sorted(driver.proxies()) == ["one", "shop", "two"]
        driver.reset()
        one = driver.get_proxy("one")
        driver.destroy(one)
        with pytest.raises(NotFound):
            driver.destroy(one)
        driver.destroy_all()
        assert driver.proxies() == {}
