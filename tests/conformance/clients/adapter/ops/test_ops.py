"""The structs of the ops: what they take, beyond types, and that the kit's defaults are theirs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import NODEFAULT, UNSET

from conformance.clients.adapter.kit.base import LEFT_OUT
from conformance.clients.adapter.kit.bodies import body_bytes, report_body
from conformance.clients.adapter.ops import blazingmq, core
from conformance.clients.adapter.ops.define import Incoming, Outgoing
from conformance.clients.adapter.ops.moleculer import Behaviour, Call, Serve
from conformance.clients.adapter.ops.rabbitmq_stream import Offset
from conformance.clients.adapter.ops.values import Bodies, Body, Reports, is_integer64
from conformance.clients.adapter.profile import ops_of, profiles


def fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("body", "good"),
    [
        ({"text": ""}, True),
        ({"b64": "AP8="}, True),
        ({"gen": "zero", "len": 0}, True),
        ({"gen": "rand", "seed": 5, "len": 1}, True),
        ([{"text": "a"}, {"b64": ""}], True),
        ({}, False),
        ({"gen": "zero"}, False),
        ({"gen": "rand", "len": 1}, False),
        ({"gen": "zero", "len": -1}, False),
        ({"gen": "fibonacci", "len": 1}, False),
        ({"text": "a", "size": 1}, False),
        ("text", False),
    ],
)
def test_bodies_of_requests(body: Any, good: bool) -> None:
    assert fits(body, Bodies) is good


@given(st.binary(max_size=5000))
def test_what_the_kit_reports_is_a_report(data: bytes) -> None:
    assert fits(report_body(data), Reports)
    assert fits([report_body(data)], Reports)


@pytest.mark.parametrize(
    "report", [{}, {"b64": "a"}, {"sha256": "0" * 64}, {"sha256": "0" * 63, "len": 5000}, {"len": 5000}]
)
def test_what_is_no_report(report: dict[str, Any]) -> None:
    assert not fits(report, Reports)


@given(st.sampled_from([{"text": "hi"}, {"b64": "AP8="}, {"gen": "zero", "len": 3}]))
def test_a_body_survives_its_type(body: dict[str, Any]) -> None:
    assert body_bytes(msgspec.to_builtins(msgspec.convert(body, Body))) == body_bytes(body)


@pytest.mark.parametrize(
    ("value", "good"),
    [
        (0, True),
        (2**64 - 1, True),
        (2**64, False),
        (-(2**63), True),
        ("18446744073709551615", True),
        ("-5", True),
        ("", False),
        ("1e3", False),
        ("9" * 21, False),
        (True, False),
        (1.0, False),
    ],
)
def test_integers_of_64_bits(value: object, good: bool) -> None:
    assert is_integer64(value) is good


@pytest.mark.parametrize(
    ("offset", "good"),
    [
        ({"type": "first"}, True),
        ({"type": "offset", "value": "5"}, True),
        ({"type": "timestamp"}, False),
        ({"type": "middle"}, False),
    ],
)
def test_an_offset_has_a_value_where_it_needs_one(offset: dict[str, Any], good: bool) -> None:
    assert fits(offset, Offset) is good


@pytest.mark.parametrize(
    ("behaviour", "good"),
    [
        ({"return": None}, True),
        ({"throw": {"message": "no", "code": 422, "type": "BAD"}}, True),
        ({"sleep_ms": 5}, True),
        ({"stream": {"gen": "zero", "len": 10}, "chunk": 3}, True),
        ({"read_stream": True}, True),
        ({"special": "nested_call"}, True),
        ({}, False),
        ({"sleep_ms": 5, "return": 1}, False),
        ({"chunk": 3}, False),
        ({"dance": True}, False),
    ],
)
def test_a_behaviour_is_one_thing(behaviour: dict[str, Any], good: bool) -> None:
    assert fits(behaviour, Behaviour) is good
    assert fits({"session": "s", "service": "x", "actions": {"a": behaviour, "b": "echo"}}, Serve) is good


@pytest.mark.parametrize(
    ("upload", "good"),
    [
        ({"stream": {"text": "hi"}}, True),
        ({"stream": {"gen": "zero", "len": 9}, "chunk": 1, "every_ms": 5}, True),
        ({"objects": [1, {"a": 2}]}, True),
        ({"stream": {}}, False),
        ({"stream": {"text": "hi"}, "chunk": 0}, False),
    ],
)
def test_what_a_caller_streams(upload: dict[str, Any], good: bool) -> None:
    assert fits({"session": "s", "action": "a", **upload}, Call) is good


@pytest.mark.parametrize(
    ("value", "good"),
    [
        ({"type": "int64", "value": str(2**60)}, True),
        ({"type": "bool", "value": True}, True),
        ({"type": "binary", "value": {"b64": "AP8="}}, True),
        ({"type": "binary", "value": {}}, False),
        ({"type": "float", "value": 1}, False),
    ],
)
def test_properties_are_typed(value: dict[str, Any], good: bool) -> None:
    sent = {"session": "s", "target": "q", "body": {"text": "hi"}, "properties": {"p": value}}
    assert fits(sent, blazingmq.Publish) is good


def test_what_the_kit_fills_in_is_what_the_types_say() -> None:
    """The kit has no dependencies, so it says again what a member means that was left out."""
    fields = [field for each in core.OPS.values() for field in msgspec.structs.fields(each)]
    defaults = {
        field.encode_name: field.default for field in fields if field.default not in (NODEFAULT, UNSET)
    }
    assert {name: LEFT_OUT[name] for name in defaults if name in LEFT_OUT} == {"wait": True}
    optional = {
        field.encode_name
        for profile in profiles()
        for each in ops_of(profile).values()
        for field in msgspec.structs.fields(each)
        if not field.required
    }
    assert set(LEFT_OUT) <= optional


def test_the_runner_is_strict_with_itself_and_lenient_with_others() -> None:
    class Ours(Outgoing, frozen=True):
        a: int

    class Theirs(Incoming, frozen=True):
        a: int

    assert not fits({"a": 1, "b": 2}, Ours)
    assert fits({"a": 1, "b": 2}, Theirs)


def test_ops_are_named_once() -> None:
    own = [name for each in profiles().values() for name in each.ops if name not in core.OPS]
    assert len(own) == len(set(own))
    for profile in profiles().values():
        prefixes = {name.partition(".")[0] for name in profile.ops if name not in core.OPS}
        assert len(prefixes) <= 1, profile.protocol
