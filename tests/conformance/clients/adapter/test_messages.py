"""The lines as values: bodies, numbers, errors, and input that is none of these."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.clients.adapter.kit import Failure, body_bytes, number, report_body
from conformance.clients.adapter.messages import (
    BadLine,
    Error,
    Event,
    Hello,
    Kind,
    Part,
    Request,
    Response,
    decode,
    encode,
    request_body,
    same_body,
)
from conformance.clients.adapter.result import Result


@pytest.mark.parametrize(
    ("body", "data"),
    [
        ({"text": ""}, b""),
        ({"text": "hi"}, b"hi"),
        ({"text": "\u20ac"}, b"\xe2\x82\xac"),
        ({"b64": "AP8="}, b"\x00\xff"),
        ({"gen": "zero", "len": 3}, b"\0\0\0"),
        ({"gen": "rand", "seed": 5, "len": 0}, b""),
    ],
)
def test_a_body_stands_for_bytes(body: dict[str, object], data: bytes) -> None:
    assert body_bytes(body) == data


def test_generated_bytes_are_sha256_over_seed_and_counter() -> None:
    blocks = [hashlib.sha256((7).to_bytes(8, "big") + n.to_bytes(8, "big")).digest() for n in range(3)]
    assert body_bytes({"gen": "rand", "seed": 7, "len": 70}) == b"".join(blocks)[:70]


def test_what_is_no_body_is_refused_locally() -> None:
    with pytest.raises(Failure) as caught:
        body_bytes({"gen": "fibonacci", "len": 3})
    assert (caught.value.kind, caught.value.definite) == ("invalid", True)


def test_reports_turn_into_digests_above_4096_bytes() -> None:
    assert report_body(bytes(4096)) == {"b64": base64.b64encode(bytes(4096)).decode()}
    assert report_body(bytes(4097)) == {"sha256": hashlib.sha256(bytes(4097)).hexdigest(), "len": 4097}


@settings(deadline=None)
@given(st.binary(max_size=5000))
def test_a_report_fits_its_bytes_and_no_others(data: bytes) -> None:
    assert body_bytes(request_body(data)) == data
    assert same_body(report_body(data), data)
    assert not same_body(report_body(data), data + b"x")


@pytest.mark.parametrize("value", [2**53, -(2**53)])
def test_integers_beyond_2_to_the_53_are_strings(value: int) -> None:
    assert number(value) == value
    beyond = value + (1 if value > 0 else -1)
    assert number(beyond) == str(beyond)


def test_a_request_is_one_line_without_what_is_not_said() -> None:
    assert encode(Request(7, "state")) == b'{"id":7,"op":"state"}\n'
    line = encode(Request(8, "next", {"sub": "c"}, 100))
    assert json.loads(line) == {"id": 8, "op": "next", "args": {"sub": "c"}, "timeout_ms": 100}


def test_lines_of_the_adapter() -> None:
    ok = decode(b'{"n":1,"t":0.5,"id":7,"ok":true,"result":{"open":true},"news":1}')
    assert ok == Response(1, 0.5, 7, True, {"open": True})
    failed = decode(b'{"n":2,"t":1,"id":8,"ok":false,"error":{"kind":"refused","definite":true,"code":17}}')
    assert isinstance(failed, Response)
    assert failed.error == Error(Kind.REFUSED, True, 17)
    event = decode(b'{"n":3,"t":2,"event":"message","ref":"m1","sub":"c","target":"q","body":{"b64":""}}')
    assert isinstance(event, Event)
    assert (event["sub"], event["nothing"], event.message.ref) == ("c", None, "m1")
    unknown = decode(b'{"n":4,"t":2,"event":"eclipse","of":"the sun"}')
    assert isinstance(unknown, Event)
    assert unknown.fields == {"of": "the sun"}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"Hello, world", "malformed"),
        (b"[1]", "Expected `object`"),
        (b'{"n":1,"t":1,"id":"7","ok":true}', "$.id"),
        (b'{"n":1,"t":1,"ok":true}', "missing required field `id`"),
        (b'{"t":1,"event":"note"}', "$.n"),
        (b'{"n":1,"t":1,"id":1,"ok":false,"error":{"kind":"sulking","definite":true}}', "$.error.kind"),
        (b"\xff\xfe", "malformed"),
    ],
)
def test_a_bad_line_says_what_is_wrong(line: bytes, problem: str) -> None:
    bad = decode(line)
    assert isinstance(bad, BadLine)
    assert problem in bad.problem


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5)
LINES = st.dictionaries(st.sampled_from(["n", "t", "id", "ok", "event", "error", "result"]), JSON)


@settings(deadline=None)  # other work on the machine is no failure
@given(st.binary(max_size=200) | LINES.map(lambda line: json.dumps(line).encode()))
def test_decode_never_raises(line: bytes) -> None:
    assert isinstance(decode(line), Response | Event | BadLine)


def hello(**limits: float) -> Hello:
    return Hello("a", "l", "1", "python", [], [], [], limits=limits)


@pytest.mark.parametrize(
    ("error", "word", "history", "outcome", "maelstrom"),
    [
        (None, "ok", "ok", "acked", None),
        (Error(Kind.REFUSED, True, 17), "refused", "fail", "nacked", 14),
        (Error(Kind.TIMEOUT, False), "timeout", "info", "unknown", 0),
        (Error(Kind.CONNECTION, False), "connection", "info", "unknown", 1002),
        (Error(Kind.CONNECTION, True), "connection", "fail", "nacked", 11),
    ],
)
def test_a_lost_answer_is_unknown_and_never_a_failure(
    error: Error | None, word: str, history: str, outcome: str, maelstrom: int | None
) -> None:
    result = Result(1, "publish", error is None, 0, 5_000_000, error=error)
    assert (result.word, result.history, result.outcome) == (word, history, outcome)
    assert result.elapsed_ms == 5
    if error is not None:
        assert error.maelstrom_code == maelstrom


def test_hangs_and_crashes_are_unknown_too() -> None:
    assert Result(1, "publish", False, 0, 1, hang=True).outcome == "unknown"
    assert str(Result(1, "publish", False, 0, 10**6, crashed=True)) == "publish crashed after 1 ms"


def test_every_kind_has_a_maelstrom_code() -> None:
    assert {kind: Error(kind, False).maelstrom_code for kind in Kind}
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"kind": "sulking", "definite": True}, Error)


@pytest.mark.parametrize(
    ("declared", "parts"),
    [
        (True, {"locator", "producer", "consumer"}),
        (False, set()),
        (["locator"], {"locator"}),
        ([], set()),
    ],
)
def test_a_library_may_reconnect_a_part_of_itself(declared: Any, parts: set[str]) -> None:
    known = msgspec.convert({**msgspec.to_builtins(hello()), "caps": {"auto_reconnect": declared}}, Hello)
    every: tuple[Part, ...] = ("locator", "producer", "consumer")
    assert {part for part in every if known.reconnects(part)} == parts
    assert known.can("auto_reconnect") is (declared is True), "a part is not the whole"
    assert {part for part in every if known.can(f"auto_reconnect.{part}")} == parts, "as a need of a scenario"


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"caps": {"auto_reconnect": ["publisher"]}}, "Invalid enum value 'publisher'"),
        ({"caps": {"retry": ["producer"]}}, "caps.retry: expected true or false"),
        ({"limits": {"heartbeat_min_s": -1}}, "limits.heartbeat_min_s: expected at least 0"),
        ({"limits": {"timeout_factor": 0.5}}, "limits.timeout_factor: expected at least 1"),
    ],
)
def test_a_hello_that_means_nothing_is_refused(more: dict[str, Any], problem: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=problem):
        msgspec.convert({**msgspec.to_builtins(hello()), **more}, Hello)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"n":1,"t":1,"event":"note","text":"caf\xe9"}', "no UTF-8"),
        (b'{"n":1,"t":1,"event":"note","text":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "nested deeper"),
        (b'{"n":1,"t":1,"event":"note","text":' + b"[" * 150 + b"]" * 150 + b"}", "nested deeper"),
        (b'{"n":1,"t":1,"event":"note","text":"a\\udc41"}', "half of a surrogate pair"),
        (b'{"n":1,"t":1e999,"event":"note"}', "out of range"),
    ],
)
def test_a_line_that_is_none_says_what_is_wrong_with_it(line: bytes, problem: str) -> None:
    found = decode(line)
    assert isinstance(found, BadLine)
    assert problem in found.problem


@given(st.binary(max_size=200))
def test_no_bytes_are_too_odd(line: bytes) -> None:
    decode(line)
    decode(b'{"n":1,"t":1,"event":"note","text":"' + line + b'"}')
