"""The adapters of the guide, one for each protocol, are whole: they run, and answer as the ops say."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from conformance.clients.adapter import kit
from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.adapter.messages import Kind, body_bytes
from conformance.clients.adapter.profile import missing_ops, profile_of, profiles
from conformance.clients.adapter.reference import GUIDE_FILE
from conformance.suite.load import all_scenarios
from fakebrokers.core import virtual

from . import mylib

BLOCK = re.compile(r"```python\n(.*?)\n```\n\n    (fakebrokers conform [^\n]*)", re.DOTALL)
HELLO = {"session": "s", "target": "q", "body": {"text": "one"}}
LISTEN = {"session": "s", "sub": "c", "target": "q", "on_message": {"mode": "event"}}
OPEN = {"session": "s", "target": "q", "uri": "bmq://x", "flags": ["read", "write"]}
ACK = ("settle", {"sub": "c", "ref": "m1", "how": "ack"})
HOST = ["127.0.0.1:1"]
PZQ = {name: f"tcp://127.0.0.1:{port}" for port, name in enumerate(("receive", "send", "monitor"), 1)}
END = (("unsubscribe", {"sub": "c"}), ("state", {"session": "s"}), ("close", {"session": "s"}))
#: Ops that go through everything that the adapter has.
SCRIPTS: dict[str, Sequence[tuple[str, dict[str, Any]]]] = {
    "moleculer": (
        ("connect", {"session": "s", "endpoints": HOST, "options": {"heartbeat_s": 2}}),
        ("mol.serve", {"session": "s", "service": "s", "actions": {"echo": "echo", "two": {"return": 2}}}),
        ("mol.call", {"session": "s", "action": "s.echo", "params": {"n": 1}, "timeout_ms": 500}),
        ("mol.call", {"session": "s", "action": "s.two"}),
        ("mol.listen", {"session": "s", "event": "q", "sub": "c", "on_message": {"mode": "event"}}),
        ("mol.emit", {"session": "s", "event": "q", "data": "one"}),
        ("mol.broadcast", {"session": "s", "event": "q", "data": "two"}),
        *END[1:],
    ),
    "pzq": (
        ("connect", {"session": "s", "endpoints": PZQ}),
        ("subscribe", LISTEN),
        ("publish", {**HELLO, "body": [{"text": "one"}, {"text": "two"}], "key": "mine"}),
        ("publish", {**HELLO, "body": [{"text": "one"}]}),
        ACK,
        ("pzq.monitor", {"session": "s"}),
        *END,
    ),
    "redis": (
        ("connect", {"session": "s", "endpoints": HOST}),
        ("subscribe", LISTEN),
        ("publish", HELLO),
        ("publish", HELLO),
        ("redis.call", {"session": "s", "words": ["GET", {"text": "k"}]}),
        *END,
    ),
    "nats": (
        ("connect", {"session": "s", "endpoints": HOST}),
        ("subscribe", LISTEN),
        ("publish", HELLO),
        ("publish", {**HELLO, "wait": False}),
        ("nats.request", HELLO),
        *END,
    ),
    "mqtt": (
        ("connect", {"session": "s", "endpoints": HOST}),
        ("subscribe", LISTEN),
        ("publish", HELLO),
        ("publish", {**HELLO, "wait": False}),
        *END,
    ),
    "blazingmq": (
        ("connect", {"session": "s", "endpoints": HOST}),
        ("bmq.open_queue", OPEN),
        ("subscribe", LISTEN),
        ("publish", HELLO),
        ACK,
        ("bmq.close_queue", {"session": "s", "target": "q"}),
        *END,
    ),
    "narconi": (
        ("connect", {"session": "s", "endpoints": HOST}),
        ("narc.ensure_queue", {"session": "s", "target": "q"}),
        ("subscribe", {**LISTEN, "options": {"ack": True}}),
        ("publish", HELLO),
        ("narc.post", HELLO),
        ACK,
        ("narc.take", {"session": "s", "target": "q"}),
        ("narc.delete_queue", {"session": "s", "target": "q"}),
        *END,
    ),
}


def written() -> dict[str, tuple[str, str]]:
    """The code of each walk-through and the command behind it, by protocol."""
    found = BLOCK.findall(GUIDE_FILE.read_text("utf-8"))
    return {re.findall(r'protocols = \("(.*)",\)', code)[0]: (code, command) for code, command in found}


def adapter_of(protocol: str, monkeypatch: pytest.MonkeyPatch) -> type[AdapterBase]:
    monkeypatch.setitem(sys.modules, "mylib", mylib)
    monkeypatch.setitem(sys.modules, "kit", kit)
    names: dict[str, Any] = {"__name__": "walkthrough"}
    exec(written()[protocol][0], names)
    found: type[AdapterBase] = names["Adapter"]
    return found


def test_each_other_protocol_has_one() -> None:
    assert set(written()) == set(profiles()) - {"rabbitmq-stream"}


@pytest.mark.parametrize("protocol", SCRIPTS)
def test_it_runs_through_all_its_ops(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = adapter_of(protocol, monkeypatch)

    async def work() -> None:
        adapter = InProcessAdapter(made, protocol)
        hello = await adapter.start()
        assert hello.roles == list(profile_of(protocol).roles)
        assert missing_ops(hello, protocol) == []
        for name, args in SCRIPTS[protocol]:
            adapter.check_arguments(name, args)
            result = await adapter.call(name, args)
            assert result.ok, (name, str(result))
        first, *_ = await adapter.wait_messages("c", 2, 1.0)
        body = first.body[0] if isinstance(first.body, list) else first.body
        assert body_bytes(body) in (b"one", b'"one"')
        assert adapter.violations == []
        tried = {name for name, _ in SCRIPTS[protocol]}
        assert not set(hello.ops) - tried - {"hello", "echo", "next", "cancel", "stats", "reset", "shutdown"}
        await adapter.kill()

    virtual.run(work())


def test_what_an_action_throws_is_refused_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    made = adapter_of("moleculer", monkeypatch)

    async def work() -> None:
        adapter = InProcessAdapter(made, "moleculer")
        await adapter.start()
        await adapter.call("connect", {"session": "s", "endpoints": HOST})
        thrown = {"throw": {"message": "no", "code": 422, "type": "BAD"}}
        await adapter.call("mol.serve", {"session": "s", "service": "s", "actions": {"bad": thrown}})
        result = await adapter.call("mol.call", {"session": "s", "action": "s.bad"})
        assert result.error is not None
        assert (result.kind, result.code, result.error.type) == (Kind.REFUSED, 422, "BAD")
        strange = {"session": "s", "service": "t", "actions": {"odd": {"special": "x"}}}
        assert (await adapter.call("mol.serve", strange)).kind is Kind.UNSUPPORTED
        await adapter.kill()

    virtual.run(work())


def test_the_first_verdicts_are_about_scenarios_that_there_are() -> None:
    ids = {item.id for item in all_scenarios()}
    for protocol, (_, command) in written().items():
        assert f"--protocol {protocol} " in command
        assert command.rpartition(" ")[2] in ids, command
