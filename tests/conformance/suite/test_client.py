"""What a client declares, as scripts ask for it."""

from __future__ import annotations

import pytest

from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.adapter.messages import Hello
from conformance.suite import Client, Expect
from conformance.suite.expect import Unsupported
from fakebrokers.core import virtual
from fakebrokers.errors import UsageError


def client(**limits: float) -> Client:
    adapter = InProcessAdapter(AdapterBase, "rabbitmq-stream")
    adapter.hello = Hello(
        "a", "l", "1", "python", [], [], [], caps={"auto_reconnect": ["locator"]}, limits=limits
    )
    return Client(adapter, "memory:1", Expect())


def test_the_smallest_heartbeat_that_the_library_takes() -> None:
    assert client().heartbeat_s(1.0, 3.0) == 1.0
    assert client(heartbeat_min_s=3.0).heartbeat_s(1.0, 3.0) == 3.0
    with pytest.raises(Unsupported, match="the smallest heartbeat is 3 s, and 2 s are the most here"):
        client(heartbeat_min_s=3.0).heartbeat_s(1.0, 2.0)


def test_the_smallest_time_out_that_the_library_takes() -> None:
    assert client(publish_timeout_min_ms=2500.0).timeout_s("publish", 1.0, 5.0) == 2.5
    with pytest.raises(Unsupported, match="the smallest connect time-out is 9 s"):
        client(connect_timeout_min_ms=9000.0).timeout_s("connect", 1.0, 5.0)


def test_what_reconnects_by_itself() -> None:
    assert client().reconnects("locator") and not client().reconnects("producer")


def test_scripts_see_virtual_time() -> None:
    async def work() -> tuple[float, float]:
        import asyncio

        before = client().now
        await asyncio.sleep(100.0)
        return before, client().now

    before, after = virtual.run(work())
    assert after - before == pytest.approx(100.0)


def test_a_misspelt_argument_is_the_scripts_mistake() -> None:
    async def work() -> None:
        with pytest.raises(UsageError, match=r"connect args\.options: .* unknown field `vhots`"):
            client().begin_connect(vhots="/")
        with pytest.raises(UsageError, match=r"publish args: .* unknown field `tmieout`"):
            client().begin_publish("orders", tmieout=5)

    virtual.run(work())
