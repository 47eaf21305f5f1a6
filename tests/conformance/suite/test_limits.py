"""Every limit that an adapter may declare is honoured in every protocol; what it lacks is not asked of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import structs

from conformance.clients.adapter.deadline import deadline_kind, deadline_ms
from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.adapter.limits import HEARTBEATS, LIMITS, NotFitting, fitted
from conformance.clients.adapter.messages import Hello
from conformance.clients.adapter.profile import bounds, ops_of, optional_arguments, profiles
from conformance.suite import Client, Expect
from conformance.suite.expect import Unsupported
from fakebrokers.core import virtual

#: Of ops whose arguments are not bodies, targets and sessions alone.
ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "mol.call": {"action": "p.echo", "timeout_ms": 100},
    "narc.post": {"target": "q"},
    "publish": {"target": "q"},
}
#: The op of each protocol that sends a body.
SENDING = {name: "mol.call" if name == "moleculer" else "publish" for name in profiles()}
#: Of the runner and of scenarios that need more: see their own tests.
ELSEWHERE = {"processes", "unconfirmed"}


class Told(AdapterBase):
    """Notes with which time-outs it was asked."""

    library = "told"
    protocols = tuple(profiles())

    def __init__(self) -> None:
        super().__init__()
        self.timeouts: list[float | None] = []
        self.ops |= {name: self._any for each in profiles() for name in ops_of(each) if name not in self.ops}

    async def _any(self, timeout_ms: float | None) -> dict[str, Any]:
        self.timeouts.append(timeout_ms)
        return {"outcome": "acked", "data": None, "open": False, "values": {}, "nodes": [], "message": None}


def asked(protocol: str, name: str, args: Mapping[str, Any], **limits: float) -> tuple[str, float | None]:
    """Why the op is not asked for, and else the time-out with which it is."""
    made = Told()

    async def work() -> str:
        adapter = InProcessAdapter(lambda: made, protocol)
        await adapter.start()
        adapter.hello = structs.replace(adapter.hello, limits=limits)
        del made.timeouts[:]
        try:
            await Client(adapter, "memory:1", Expect()).op(name, 2.0, **args)
        except Unsupported as why:
            return str(why)
        finally:
            await adapter.kill()
        return ""

    why = virtual.run(work())
    return why, next(iter(made.timeouts), None)


def heartbeats(protocol: str) -> list[str]:
    """The options of connect that are heartbeats."""
    return [name for name in HEARTBEATS if f"connect.{name}" in optional_arguments(protocol)]


@pytest.mark.parametrize("protocol", list(profiles()))
@pytest.mark.parametrize("limit", LIMITS)
def test_each_limit_is_honoured_in_each_protocol(protocol: str, limit: str) -> None:
    sending, kind = SENDING[protocol], limit.partition("_")[0]
    args = {"session": "s", **ARGUMENTS[sending]}
    if limit == "heartbeat_min_s":
        for name in heartbeats(protocol):
            connect = {"session": "s", "endpoints": ["memory:1"], "options": {name: 2}}
            assert "heartbeat of the library is 5 s" in asked(protocol, "connect", connect, **{limit: 5})[0]
            assert asked(protocol, "connect", connect, **{limit: 2}) == ("", 2000)
    elif limit == "max_body":
        body = {"stream" if protocol == "moleculer" else "body": {"gen": "zero", "len": 1001}}
        assert "takes 1000 at most" in asked(protocol, sending, {**args, **body}, **{limit: 1000})[0]
        assert not asked(protocol, sending, {**args, **body}, **{limit: 1001})[0]
    elif limit.endswith("_min_ms"):
        known = Hello("a", "l", "1", "x", [], [], [], limits={limit: 5000})
        for name in ops_of(protocol):
            of_kind = deadline_kind(name)
            raised = of_kind not in ("local", "waiting") and kind in ("timeout", of_kind)
            assert fitted(known, name, {}, 2000) == (5000 if raised else 2000), name
        if "timeout_ms" in args and kind in ("timeout", "request"):
            assert "time-out of the library is 5000 ms" in asked(protocol, sending, args, **{limit: 5000})[0]
    elif limit not in ELSEWHERE:
        known = Hello("a", "l", "1", "x", [], [], [], limits={limit: 3})
        for name in ops_of(protocol):
            of_kind = deadline_kind(name)
            if of_kind not in ("local", "waiting"):
                late = 6000 if limit == "timeout_factor" else 3 if kind == of_kind else 2000
                assert deadline_ms(known, name, {}, 2000) == late, name


@pytest.mark.parametrize(
    ("protocol", "op_name", "name", "args"),
    [
        ("rabbitmq-stream", "subscribe", "credit", {"sub": "c", "target": "q", "options": {"credit": 10}}),
        ("rabbitmq-stream", "connect", "frame_max", {"endpoints": ["x:1"], "options": {"frame_max": 10}}),
        (
            "blazingmq",
            "bmq.open_queue",
            "max_unconfirmed_messages",
            {"target": "q", "flags": ["read"], "options": {"max_unconfirmed_messages": 10}},
        ),
        ("narconi", "subscribe", "limit", {"sub": "c", "target": "q", "options": {"limit": 10}}),
        ("moleculer", "mol.call", "chunk", {"action": "a", "chunk": 10}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_number_is_asked_for_as_far_as_the_library_takes_it(
    protocol: str, op_name: str, name: str, args: Mapping[str, Any]
) -> None:
    for end, size, bound in (("min", "smallest", 11), ("max", "largest", 9)):
        word = f"{op_name}.{name}_{end}"
        assert word in bounds(protocol)
        why = f"{name} 10: the {size} of the library is {bound} (limit {word})"
        known = Hello("a", "l", "1", "x", [], [], [], limits={word: bound})
        with pytest.raises(NotFitting, match=re.escape(why)):
            fitted(known, op_name, args, 2000)
        fitted(structs.replace(known, limits={word: 10}), op_name, args, 2000)


def test_what_is_no_number_has_no_bounds() -> None:
    words = frozenset[str]().union(*map(bounds, profiles()))
    assert {"connect.heartbeat_s_min", "connect.keepalive_s_max", "mol.call.timeout_ms_min"} <= words
    assert not words & {"connect.vhost_min", "mol.call.meta_min", "subscribe.ack_min", "publish.body_min"}


def test_protocols_have_heartbeats() -> None:
    assert {name: heartbeats(name) for name in profiles()} == {
        "rabbitmq-stream": ["heartbeat_s"],
        "blazingmq": [],
        "pzq": [],
        "narconi": ["keepalive_s"],
        "moleculer": ["heartbeat_s"],
        "nats": ["ping_interval_s"],
        "redis": [],
        "mqtt": ["keep_alive_s"],
    }


@pytest.mark.parametrize(
    ("word", "op_name", "args", "needed"),
    [
        ("mol.call.node", "mol.call", {"action": "a", "node": "n"}, True),
        ("mol.call.node", "mol.call", {"action": "a", "meta": {}}, False),
        ("mol.emit.groups", "mol.emit", {"event": "e", "groups": ["g"]}, True),
        ("connect.namespace", "connect", {"endpoints": ["x:1"], "options": {"namespace": "n"}}, True),
        ("mol.call.node", "connect", {"endpoints": ["x:1"], "options": {}}, False),
    ],
)
def test_an_argument_that_was_declared_away_is_not_asked_for(
    word: str, op_name: str, args: dict[str, Any], needed: bool
) -> None:
    class Lacking(Told):
        lacks = word

    async def work() -> None:
        adapter = InProcessAdapter(Lacking, "moleculer")
        await adapter.start()
        assert word in optional_arguments("moleculer")
        client = Client(adapter, "memory:1", Expect())
        if needed:
            with pytest.raises(Unsupported, match=f"the library has no {word.rpartition('.')[2]} for"):
                client.begin(op_name, 2.0, session="s", **args)
        else:
            await client.op(op_name, 2.0, session="s", **args)
        await adapter.kill()

    virtual.run(work())


def test_what_no_op_can_do_without_cannot_be_declared_away() -> None:
    for protocol in profiles():
        words = optional_arguments(protocol)
        assert not words & {"connect.session", "connect.endpoints", "publish.body", "mol.call.action"}
