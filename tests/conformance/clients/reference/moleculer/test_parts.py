"""The parts of the reference node that need no bus."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.moleculer.registry import Registry, fits
from conformance.clients.reference.moleculer.settings import addresses
from conformance.clients.reference.moleculer.streams import Incoming, cut, limit_of, remote
from fakebrokers.core import virtual

Json = dict[str, Any]


def chunk(seq: int, data: bytes | None = None, **more: Any) -> Json:
    params = None if data is None else {"type": "Buffer", "data": list(data)}
    return {"seq": seq, "stream": data is not None or seq == 0, "params": params, **more}


def read(*packets: Json) -> list[Any] | str:
    """What a stream of these packets gives; the error's text; ``"open"`` if it does not end."""

    async def all_of() -> list[Any]:
        incoming = Incoming("peer", "params")
        for packet in packets:
            incoming.add(packet)
        return [each async for each in incoming]

    async def main() -> list[Any] | str:
        try:
            return await asyncio.wait_for(all_of(), 1.0)
        except TimeoutError:
            return "open"
        except ClientError as error:
            return str(error)

    return virtual.run(main())


def test_a_stream_in_any_order() -> None:
    packets = [chunk(0), chunk(1, b"a"), chunk(2, b"b"), chunk(3)]
    assert read(*packets) == [b"a", b"b"]
    assert read(*reversed(packets)) == [b"a", b"b"]
    assert read(packets[1], packets[0], packets[1], packets[2], packets[1], packets[3]) == [b"a", b"b"]
    assert read(*packets[:2], packets[3]) == "open"


def test_a_stream_that_breaks() -> None:
    failed = {"seq": 2, "stream": False, "headers": {"$streamError": {"message": "gone"}}}
    assert read(chunk(0), chunk(1, b"a"), failed) == "gone"
    answer = {"seq": 1, "stream": False, "success": False, "error": {"message": "broke", "code": 500}}
    assert read(chunk(0), answer) == "broke"


def test_chunks_fit_a_message() -> None:
    assert limit_of(None) == limit_of(8 << 20) == 256 * 1024
    most = limit_of(1 << 20)
    assert 4 * most + 4096 <= 1 << 20
    assert [len(piece["data"]) for piece in cut(bytes(10), 4)] == [4, 4, 2]
    assert cut({"n": 1}, 4) == [{"n": 1}]


def test_errors_of_others() -> None:
    error = remote({"message": "bad", "code": 422, "type": "BAD"})
    assert (error.kind, str(error), error.code, error.type) == ("refused", "bad", 422, "BAD")
    assert str(remote("just text")) == "just text"
    assert remote({"code": [1]}).code is None


@pytest.mark.parametrize(
    ("pattern", "event", "wanted"),
    [
        ("ord.*", "ord.a", True),
        ("ord.*", "ord.a.b", False),
        ("all.**", "all.a.b", True),
        ("q.?x", "q.ax", True),
        ("q.?x", "q.abx", False),
        ("a.b", "axb", False),
    ],
)
def test_patterns(pattern: str, event: str, wanted: bool) -> None:
    assert fits(pattern, event) is wanted


def info(seq: int, *names: str, instance: str = "1") -> Json:
    services = [{"name": name, "actions": {f"{name}.x": {}}, "events": {}} for name in names]
    return {"sender": "p", "seq": seq, "instanceID": instance, "services": services}


def test_which_infos_count() -> None:
    registry = Registry("own")
    registry.info(info(2, "a", "b"), 0.0)
    registry.info(info(1, "c"), 0.0)
    assert registry.peers["p"].names == ["a", "b"]
    registry.info(info(3, "a"), 0.0)
    assert registry.peers["p"].names == ["a"]
    registry.info(info(1, "c", instance="2"), 0.0)
    assert registry.peers["p"].names == ["c"]
    assert registry.choose("c.x") == "p"
    assert registry.gone("p") and not registry.gone("p")
    assert registry.choose("c.x") is None
    registry.info(info(1, "d", instance="2"), 0.0)
    assert registry.choose("d.x") == "p"


def test_signs_of_life() -> None:
    registry = Registry("own")
    beat = {"sender": "p", "cpu": 0}
    assert not registry.heartbeat(beat, 1.0)
    registry.info(info(1), 1.0)
    assert registry.heartbeat(beat, 5.0)
    assert not registry.heartbeat({**beat, "seq": 2}, 6.0)
    assert registry.silent(5.5) == ["p"]
    assert registry.silent(4.5) == []
    assert "own" not in registry.silent(100.0)


def test_nodes_take_turns() -> None:
    registry = Registry("own")
    for id in ("p", "q"):
        registry.info({**info(1, "a"), "sender": id}, 0.0)
    assert sorted(str(registry.choose("a.x")) for _ in range(4)) == ["p", "p", "q", "q"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("127.0.0.1:4222", ("nats", ("127.0.0.1:4222",))),
        ("redis://user:secret@[::1]:6379", ("redis", ("[::1]:6379",))),
        ("nats://a:1,nats://b:2", ("nats", ("a:1", "b:2"))),
        ("a:1,b:2", ("nats", ("a:1", "b:2"))),
        ("tcp://a:1/x,tcp://b:2/y", ("tcp", ("tcp://a:1/x", "tcp://b:2/y"))),
    ],
)
def test_addresses(text: str, wanted: Any) -> None:
    assert addresses(text) == wanted
