"""The JSON Schema says the same as the code, and still fits what version 1 once wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET, UnsetType

from conformance.clients.adapter import schema
from conformance.clients.adapter.messages import (
    PROTOCOL_VERSION,
    BadLine,
    Hello,
    Kind,
    Message,
    Request,
    Response,
    decode,
    encode,
)
from conformance.clients.adapter.ops import core, messaging
from conformance.clients.adapter.ops.define import Profile
from conformance.clients.adapter.profile import all_ops, profiles

jsonschema = pytest.importorskip("jsonschema", reason="missing: jsonschema")

SCHEMA_FILE = Path(__file__).parents[4] / "conformance/clients/adapter/schema.json"
SCHEMA = json.loads(SCHEMA_FILE.read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
OLD_FILE = Path(__file__).with_name("version-1.jsonl")

EXAMPLES: list[dict[str, Any]] = [
    {
        "id": 7,
        "op": "publish",
        "args": {"session": "s", "target": "q", "body": {"text": "hi"}},
        "timeout_ms": 1000,
    },
    {"id": 8, "op": "publish", "args": {"session": "s", "target": "", "body": [{"text": "a"}, {"b64": ""}]}},
    {"id": 9, "op": "some.day", "args": {"new": True}, "new": 1},
    {"id": 10, "op": "settle", "args": {"sub": "c", "ref": "m1", "how": "ack_to"}},
    {"id": 11, "op": "reset"},
    {"id": 12, "op": "connect", "args": {"session": "s", "endpoints": {"receive": "a", "send": ["a", "b"]}}},
    {"n": 12, "t": 3051.2, "id": 7, "ok": True, "result": {"outcome": "acked", "key": "msg-1"}},
    {"n": 13, "t": 3, "id": 8, "ok": False, "error": {"kind": "timeout", "definite": False, "code": None}},
    {"n": 14, "t": 3, "event": "session", "session": "s1", "what": "connection_lost", "text": "..."},
    {"n": 15, "t": 3, "event": "message", "ref": "m17", "sub": "c1", "target": "q1", "body": {"b64": "aGk="}},
    {"n": 16, "t": 3, "event": "error", "where": "decode", "error": {"kind": "protocol", "definite": False}},
    {"n": 17, "t": 3, "event": "eclipse", "of": "the sun"},
]

BROKEN: list[dict[str, Any]] = [
    {"op": "reset"},
    {"id": 1, "op": "publish", "args": {"session": "s", "target": "q"}},
    {"id": 1, "op": "publish", "args": {"session": "s", "target": "q", "body": {"gen": "rand", "len": 5}}},
    {
        "id": 1,
        "op": "subscribe",
        "args": {"session": "s", "sub": "c", "target": "q", "options": {"offset": 5}},
    },
    {"id": 1, "op": "state", "args": {"session": "s"}, "timeout_ms": -1},
    {"id": 1, "op": "connect", "args": {"session": "s", "endpoints": {"send": [1]}}},
    {"n": 1, "t": 3, "id": 1, "ok": False, "result": {}},
    {"n": 1, "t": 3, "id": 1, "ok": True},
    {"n": 0, "t": 3, "id": 1, "ok": True, "result": {}},
    {"n": 1, "t": 3, "id": 1, "ok": False, "error": {"kind": "sulking", "definite": True}},
    {"n": 1, "t": 3, "event": "session", "session": "s", "what": "tired"},
    {"n": 1, "t": 3, "event": "message", "ref": "m1", "sub": "c", "target": "q"},
    {
        "n": 1,
        "t": 3,
        "event": "message",
        "ref": "m1",
        "sub": "c",
        "target": "q",
        "body": {"sha256": "x", "len": 1},
    },
]


def ops_of_the_schema() -> set[str]:
    return {rule["if"]["properties"]["op"]["const"] for rule in SCHEMA["$defs"]["request"]["allOf"]}


def test_the_schema_is_one_and_has_the_version() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"] == f"urn:fakebrokers:adapter-protocol:{PROTOCOL_VERSION}"


def test_every_op_has_its_arguments_in_the_schema() -> None:
    assert ops_of_the_schema() == set(all_ops())


def test_kinds_protocols_and_roles_are_those_of_the_code() -> None:
    definitions = SCHEMA["$defs"]
    hello = definitions["hello.result"]["properties"]
    assert set(definitions["kind"]["enum"]) == set(Kind)
    assert set(hello["protocols"]["items"]["enum"]) == set(profiles())
    assert set(hello["roles"]["items"]["enum"]) == {
        role for each in profiles().values() for role in each.roles
    }
    assert set(hello) == set(Hello.__struct_fields__)
    assert set(definitions["message"]["properties"]) == set(Message.__struct_fields__)


@pytest.mark.parametrize("line", EXAMPLES, ids=str)
def test_good_lines_fit(line: dict[str, Any]) -> None:
    VALIDATOR.validate(line)
    if "n" in line:
        assert not isinstance(decode(line), BadLine)


@pytest.mark.parametrize("line", BROKEN, ids=str)
def test_broken_lines_do_not_fit(line: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(line)


def test_what_the_runner_writes_fits() -> None:
    request = Request(1, "connect", {"session": "s", "endpoints": ["127.0.0.1:5552"]}, 500)
    VALIDATOR.validate(json.loads(encode(request)))


def test_an_old_file_still_fits() -> None:
    """Recorded with rstream 1.1.1 when version 1 was new; adding to the protocol must not break it."""
    lines = [json.loads(line) for line in OLD_FILE.read_text("utf-8").splitlines()]
    assert len(lines) > 50
    for entry in lines:
        VALIDATOR.validate(entry["line"])
        if entry["way"] == "in":
            assert not isinstance(decode(entry["line"]), BadLine)
    hello = decode(next(entry["line"] for entry in lines if entry["way"] == "in"))
    assert isinstance(hello, Response)
    jsonschema.Draft202012Validator({**SCHEMA, "oneOf": [{"$ref": "#/$defs/hello.result"}]}).validate(
        hello.result
    )


def test_protocols_that_disagree_about_a_member_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Publish(messaging.Publish, frozen=True):
        """With a name that is a number."""

        name: int | UnsetType = UNSET

    other = Profile(protocol="other", roles=("publisher",), ops={"publish": Publish}, capabilities={})
    known = {**profiles(), "other": other}
    monkeypatch.setattr(schema, "profiles", lambda: known)
    monkeypatch.setattr(schema, "ops_of", lambda name: {**core.OPS, **known[name].ops})
    with pytest.raises(ValueError, match=r"publish\.args: protocols disagree about name"):
        schema.schema()
