"""Narconi's part of the sweep: defects that it has found stay mended, and what it reads is read rightly."""

from __future__ import annotations

from typing import Any
from urllib.request import Request, urlopen

import pytest

from conformance.clients.reference.kit import ClientError, adapter_of
from conformance.clients.reference.narconi.connection import HttpConnection
from conformance.clients.reference.narconi.http import Response, ResponseReader
from conformance.clients.reference.narconi.ops import REFERENCE
from conformance.clients.reference.narconi.websockets import WebSockets
from conformance.clients.reference.registry import without_sockets
from conformance.rules import judge
from conformance.run.inprocess import run, runner
from conformance.run.specs import EVERY, ArgumentChange, ConcurrentAction, Injection, Spec
from fakebrokers import Narconi
from fakebrokers.core.frames import Malformed
from fakebrokers.narconi import frames as f
from fakebrokers.narconi.codec import NarconiCodec
from fakebrokers.narconi.websocket import BINARY, CLOSE, PING, TEXT, accept_key, encode_frame
from scenarios.narconi.sweep import legal
from scenarios.narconi.sweep.reading import Answers, Requests
from scenarios.narconi.traits import EMPTY, TRAITS, carries, taken
from tests.eventually import PATIENCE_S

PROTOCOL = "narconi"
RST = Injection("c1", "out", 5, "rst")
RST_2 = Injection("c1", "out", 2, "rst")
KEY = "dGhlIHNhbXBsZSBub25jZQ=="


@pytest.mark.parametrize(
    ("base", "injections"),
    [
        pytest.param(
            "unwaited", (RST, Injection("c2", "out", 1, "rst")), id="a message that could not be sent"
        ),
        pytest.param("drained", (Injection("c1", "in", 3, "rst"),), id="a loss in a graceful end"),
        pytest.param(
            "settle", (Injection("c1", "in", 3, "goodbye", "stays"),), id="deliveries behind a Close"
        ),
        pytest.param(
            "publish",
            (Injection("c1", "out", 2, "unasked", ["close of one byte", "noise"]),),
            id="half a code in a Close",
        ),
        pytest.param(
            "refused",
            (Injection("c2", "out", 6, "unasked", ["letters", "noise"]),),
            id="an answer in front of what is no frame",
        ),
        pytest.param(
            "closing",
            (Injection("c3", "out", 1, "field", [["headers"], "no entries"]),),
            id="a body without a length, and a close",
        ),
        pytest.param(
            "closing",
            (Injection("c3", "out", 1, "field", [["status"], {"add": -1}]),),
            id="an answer that is not the last one",
        ),
        pytest.param(
            "stale",
            (Injection("c2", "out", 1, "field", [["status"], {"add": 1}]),),
            id="no answer behind one that is not the last",
        ),
        pytest.param("stale", (Injection("c2", "out", 1, "late"),), id="frames in place of an answer"),
        pytest.param("refused", (Injection("c2", "out", 4, "twice"),), id="confirms that count for others"),
        pytest.param("both", (Injection("c1", "out", 2, "entry", [["ack_id"], "absent"]),), id="no ack id"),
        pytest.param(
            "encodings", (Injection("c1", "out", 2, "field", [["ack_id"], ""]),), id="an empty ack id"
        ),
        pytest.param(
            "unanswered",
            (RST_2, Injection("c2", "in", 2, "rst-before")),
            id="an outcome that a close decides",
        ),
        pytest.param(
            "crowd", (Injection("c3", "out", 1, "payload", [4, 128]),), id="words that are no UTF-8"
        ),
        pytest.param(
            "encodings",
            (Injection("c1", "out", 1, "unasked", ["empty object", "noise"]),),
            id="a delivery without a body",
        ),
    ],
)
def test_a_defect_that_was_found_is_mended(base: str, injections: tuple[Injection, ...]) -> None:
    case = runner(PROTOCOL)(Spec(PROTOCOL, base, injections))
    assert case.hits == len(injections)
    assert not judge(case)


def test_what_comes_behind_a_close_is_not_surfaced() -> None:
    spec = Spec(PROTOCOL, "closing", (Injection(EVERY, "out", 2, "latency", 3.0),))
    assert judge(runner(PROTOCOL)(spec)) == []


@pytest.mark.parametrize(
    ("base", "action"),
    [
        pytest.param(
            "ask", ConcurrentAction(2, "cancel", 1), id="an answer that comes as its op is cancelled"
        ),
        pytest.param("drained", ConcurrentAction(3, "cancel", 1), id="a graceful end that is cancelled"),
        pytest.param("drained", ConcurrentAction(3, "loss"), id="a graceful end of what is lost just then"),
    ],
)
def test_what_an_application_does_besides_leaves_nothing_behind(base: str, action: ConcurrentAction) -> None:
    assert judge(runner(PROTOCOL)(Spec(PROTOCOL, base, concurrent=(action,)))) == []


def test_an_empty_name_reaches_no_other_queue() -> None:
    case = runner(PROTOCOL)(Spec(PROTOCOL, "closing", (), (ArgumentChange(7, "target", ""),)))
    [take] = case.done("narc.take")
    assert take.result is not None and take.result.word == "invalid"
    assert not judge(case)


def read(request: bytes, *answers: bytes) -> list[Any]:
    """What comes out for a request and its answers."""
    requests = Requests()
    reader = Answers(requests)
    list(requests.feed(request))
    return [frame for data in answers for frame, _ in reader.feed(data)]


def upgrade(protocol: str, query: str = "") -> tuple[bytes, bytes]:
    """An upgrade, and its acceptance."""
    asked = (
        f"GET /v2/test/queues/q/messages{query} HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n"
        f"Sec-WebSocket-Protocol: {protocol}\r\n\r\n"
    )
    said = (
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {accept_key(KEY)}\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n"
    )
    return asked.encode(), said.encode()


def test_what_an_answer_means_depends_on_its_request() -> None:
    take = b"DELETE /v2/test/queues/q/messages HTTP/1.1\r\nHost: h\r\n\r\n"
    delete = b"DELETE /v2/test/queues/q HTTP/1.1\r\nHost: h\r\n\r\n"
    none = b"HTTP/1.1 204 No Content\r\n\r\n"
    assert [type(frame) for frame in read(take, none)] == [f.HttpDeliver]
    assert [type(frame) for frame in read(delete, none, none)] == [f.QueueDeleted, Malformed]


def test_answers_come_in_pieces_and_chunks() -> None:
    post = b"POST /v2/test/queues/q/messages HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"
    said = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\n"
    said += b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
    pieces = [said[at : at + 1] for at in range(len(said))]
    first, second = read(post, *pieces)
    assert (type(first), type(second)) == (f.Continue, f.HttpConfirm)
    assert second.body == b"ab"


def test_deliveries_in_one_message_and_in_two() -> None:
    asked, accepted = upgrade("consume", "?ack")
    data = encode_frame(TEXT, b'{"ackId":"1","x-msg-x-n":"2"}') + encode_frame(BINARY, b"ab")
    _, delivery = read(asked, accepted + data)
    assert (delivery.ack_id, delivery.payload, delivery.headers) == ("1", b"ab", {"x-msg-x-n": "2"})
    asked, accepted = upgrade("consume", "?encoding=hex")
    _, delivery, bad = read(
        asked,
        accepted,
        encode_frame(TEXT, b'{"message":"6162"}'),
        encode_frame(TEXT, b'{"message":"6"}'),
    )
    assert delivery.payload == b"ab"
    assert isinstance(bad, Malformed)


@pytest.mark.parametrize(
    "data",
    [
        encode_frame(TEXT, b"", masked=True),
        encode_frame(TEXT, b"\xff"),
        encode_frame(CLOSE, b"\x03"),
        encode_frame(TEXT, b""),
        encode_frame(TEXT, b"[]"),
    ],
    ids=["a mask", "no UTF-8", "half a code", "a confirm for nothing", "neither confirm nor error"],
)
def test_what_a_publisher_must_not_be_told(data: bytes) -> None:
    asked, accepted = upgrade("publish")
    _, bad = read(asked, accepted, data)
    assert isinstance(bad, Malformed)


@pytest.mark.parametrize(
    ("invariant", "mutant", "base", "injection"),
    [
        ("silence-noticed", "pings-need-no-pong", "no-pongs", None),
        ("fails-for-a-reason", "deadlines-by-wall-clock", "wrong-clock", None),
        ("ack-needs-confirm", "close-means-stored", "unanswered", None),
        ("ok-needs-answer", "post-without-metadata", "posts", None),
        ("ok-needs-answer", "unknown-names-dropped", "posts", None),
        ("answer-value", "empty-body-is-no-message", "posts", None),
        ("acked-not-stored", "overflow-is-stored", "many-messages", None),
        ("delivers-what-came", "loses-in-a-flood", "flood", None),
        ("complaints-are-told", "errors-swallowed", "complained", None),
        ("drains-before-the-end", "stop-forgets-the-outstanding", "drained-by-hand", None),
        ("drains-before-the-end", "stop-not-sent", "drained", None),
        ("loss-ends-requests", "end-unnoticed-before-upgrade", "publish",
         Injection("c1", "in", 1, "rst-before")),
        ("definite-for-a-reason", "loss-is-definite", "ask", Injection("c1", "out", 2, "rst-before")),
        ("garbage-ends", "too-large-ignored", "at-once",
         Injection("c1", "out", 2, "unasked", ["huge", "noise"])),
        ("confirms-by-order", "acks-are-cumulative", "settle", None),
        ("failures-are-told", "callback-errors-vanish", "raising-message-1", None),
        ("ok-needs-answer", "redirect-means-done", "posts",
         Injection("c1", "out", 1, "contradict", ["instead", 301])),
        ("answer-value", "header-case-matters", "posts", Injection("c1", "out", 4, "spelled", "title case")),
        ("garbage-ends", "bad-frames-accepted", "publish", Injection("c1", "out", 2, "bit", 1)),
        ("delivers-what-came", "fragments-are-messages", "consume",
         Injection("c1", "out", 2, "spelled", "in fragments")),
        ("unprovoked-end", "ping-drops-metadata", "at-once",
         Injection("c1", "out", 2, "spelled", "pings between")),
        ("fails-for-a-reason", "answer-in-one-segment", "ask", Injection("c1", "out", 2, "trickle", 0.6)),
        ("comes-back", "discovery-must-fail", "server-seed", None),
        ("unprovoked-end", "half-the-patience", "slow-pongs", None),
        ("wire-legal", "protocol-list", "publish", None),
        ("comes-back", "bad-servers-are-shunned", "cancelled", Injection(EVERY, "out", 1, "bit", 0)),
    ],
)  # fmt: skip
def test_a_defect_is_found_by_the_rule_that_it_breaks(
    invariant: str, mutant: str, base: str, injection: Injection | None
) -> None:
    spec = Spec(PROTOCOL, base, () if injection is None else (injection,))
    assert invariant in [finding.name for finding in judge(runner(PROTOCOL, mutant)(spec))]
    assert judge(runner(PROTOCOL)(spec)) == []


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({}, ""),
        ({"Host": None}, "a request with 0 Host headers"),
        ({"Sec-WebSocket-Version": "8"}, 'an upgrade with the version ["8"]'),
        ({"Sec-WebSocket-Key": "abc"}, 'an upgrade with the key "abc"'),
        (
            {"Sec-WebSocket-Protocol": "consume, publish"},
            'an upgrade with the sub-protocols ["consume, publish"]',
        ),
    ],
)
def test_upgrades_have_what_every_upgrade_has(changed: dict[str, str | None], problem: str) -> None:
    usual = {"Host": "h", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Protocol": "consume"}
    given = {**usual, "Sec-WebSocket-Key": KEY, **changed}
    headers = tuple((name, value) for name, value in given.items() if value is not None)
    request = f.WsUpgrade("GET", "/", headers)
    keys: set[str] = set()
    assert legal.problem(request, keys) == problem
    if not problem:
        assert legal.problem(request, keys) == "an upgrade with the key of an earlier one"


@pytest.mark.parametrize("size", [1, 125, 126, 65_535, 65_536])
def test_a_length_takes_as_few_bytes_as_it_fits_into(size: int) -> None:
    request, _ = upgrade("publish")
    requests = Requests()
    list(requests.feed(request))
    frames = encode_frame(TEXT, b"{}", masked=True) + encode_frame(BINARY, bytes(size), masked=True)
    [(frame, _)] = list(requests.feed(frames))
    assert isinstance(frame, f.WsPublish) and len(frame.payload) == size


def test_a_length_in_more_bytes_is_no_frame() -> None:
    request, _ = upgrade("publish")
    requests = Requests()
    list(requests.feed(request))
    for data in (b"\x82\xfe\x00", b"\x7d"):
        found = [frame for frame, _ in requests.feed(data)]
    assert isinstance(found[0], Malformed) and "as few bytes" in found[0].problem


def test_what_cannot_be_the_beginning_of_an_answer_is_none() -> None:
    request, _ = upgrade("consume")
    assert read(request, b"HTT") == []
    [frame] = read(request, b"HT\x82")
    assert isinstance(frame, Malformed)


def test_half_a_head_of_a_frame_is_not_judged_yet() -> None:
    request, accepted = upgrade("consume")
    assert len(read(request, accepted, b"\x82\xff")) == 1
    assert isinstance(read(request, accepted, b"\x82\xff", bytes(8))[-1], Malformed)


class UsesItAgain(HttpConnection):
    """Asks on a connection that the server wants to end."""

    def is_reusable(self, response: Response, rest: bytes) -> bool:
        return not rest


def test_a_client_that_asks_behind_a_goodbye_is_found() -> None:
    spec = Spec(PROTOCOL, "ask", (Injection("c1", "out", 2, "last", "stays"),))
    client = without_sockets(adapter_of(REFERENCE, [UsesItAgain]))
    assert {finding.name for finding in judge(run(client, spec))} == {"heeds-goodbyes"}
    assert judge(runner(PROTOCOL)(spec)) == []


class GivesUp(WebSockets):
    """Takes every refusal for the last word."""

    def is_final(self, error: ClientError) -> bool:
        return error.code is not None


def test_a_client_that_gives_up_on_a_passing_refusal_is_found() -> None:
    spec = Spec(PROTOCOL, "consume", (RST_2, Injection("c2", "out", 1, "contradict", ["instead", 503])))
    client = without_sockets(adapter_of(REFERENCE, [GivesUp]))
    assert "gone-for-a-reason" in {finding.name for finding in judge(run(client, spec))}
    assert judge(runner(PROTOCOL)(spec)) == []


@pytest.mark.parametrize(
    ("given", "sent", "fits"),
    [
        ({}, {}, True),
        ({}, {"Content-Type": "application/octet-stream"}, True),  # of the HTTP library
        ({"Content-Type": "text/plain"}, {"Content-Type": "text/plain"}, True),
        ({"Content-Type": "text/plain"}, {"Content-Type": "application/octet-stream"}, False),
        ({}, {"x-msg-x-a": "1"}, False),
        ({"x-msg-x-a": [1, "2"]}, {"x-msg-x-a": "[1 2]"}, True),  # HTTP has no lists, so any text is as good
        ({"x-msg-x-a": 5}, {}, False),
    ],
)
def test_a_request_carries_what_was_given(given: dict[str, Any], sent: dict[str, str], fits: bool) -> None:
    request = f.HttpPublish("POST", "/v2/p/queues/q/messages", tuple(sent.items()), b"hi")
    assert carries({"body": {"text": "hi"}, "headers": given}, request) is fits


def test_a_header_beyond_ascii_has_two_readings() -> None:
    headers = (("x-msg-x-a", "\u00c3\u00a4"), ("x-msg-x-b", "b"), ("content-type", "a/\u008b"))
    answer = f.HttpDeliver(status=200, headers=headers, body=b"")
    assert taken(answer)["message"]["headers"] == {
        "x-msg-x-a": ("\u00c3\u00a4", "\u00e4"),
        "x-msg-x-b": ("b", "b"),
        "Content-Type": ("a/\u008b", "a/\ufffd"),
    }


@pytest.mark.parametrize(
    ("status", "headers", "reason", "is_plain"),
    [
        (200, (("Content-Length", "2"),), "OK", True),
        (200, (("content-length", "2"), ("Content-Length", "2")), "OK", True),
        (499, (("x-msg-x-a", "\u00e4\tb"),), "", True),
        (77, (), "OK", False),
        (2147483648, (), "OK", False),
        (200, (("", "1"),), "OK", False),
        (200, (("\u00ff", "1"),), "OK", False),
        (200, (("x-a", "\x00"),), "OK", False),
        (200, (), "O\x01K", False),
        (200, (("Content-Length", "2"), ("content-length", "3")), "OK", False),
        (200, (("Content-Length", "2"), ("Transfer-Encoding", "chunked")), "OK", False),
        (200, (("Transfer-Encoding", "gzip"),), "OK", False),
    ],
)
def test_which_answers_every_client_has_to_read_alike(
    status: int, headers: f.Headers, reason: str, is_plain: bool
) -> None:
    answer = f.HttpDeliver(status=status, headers=headers, body=b"ab", reason=reason)
    assert legal.is_by_the_letter(answer) is is_plain
    apt = TRAITS.questions.ops["narc.take"].apt
    assert apt is not None and apt({}, answer) is is_plain
    for odd in (101, 201, 299):
        assert not apt({}, f.HttpDeliver(status=odd, headers=headers, body=b"", reason=reason))


@pytest.mark.parametrize("length", [b"-1", b"+1", b" 1", b"1_0", b"", b"g"])
def test_a_length_has_digits_alone(length: bytes) -> None:
    post = b"POST /v2/test/queues/q/messages HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"
    said = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n" + length + b"\r\na\r\n0\r\n\r\n"
    assert [type(frame) for frame in read(post, said)] == [Malformed]
    with pytest.raises(ClientError, match="no length"):
        ResponseReader("POST").feed(said)


@pytest.mark.parametrize("headers", [EMPTY, (("Transfer-Encoding", "chunked"),)])
def test_the_body_of_an_answer_is_where_it_is_said_to_be(headers: f.Headers) -> None:
    answer = f.HttpDeliver(status=200, headers=headers, body=b"0\r\n")
    start = TRAITS.faults.payload_at(answer)
    assert start is not None
    assert NarconiCodec().encode(answer)[start : start + 3] == b"0\r\n"


def test_a_head_against_the_letter_is_told_before_its_body() -> None:
    post = b"POST /v2/test/queues/q/messages HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"
    head = b"HTTP/1.1 201 Created\r\n\xff: 1\r\nContent-Length: 2\r\n\r\n"
    odd, answer = read(post, head, b"a", b"b")
    assert (type(odd), type(answer)) == (Malformed, f.HttpConfirm)
    assert not TRAITS.reading.is_garbage(odd)
    assert TRAITS.reading.is_garbage(Malformed(b"", "", "http"))
    assert read(post, b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n") == []


@pytest.mark.parametrize("end", [b"\r\x0b", b"ab"])
@pytest.mark.parametrize("chunks", [b"1\r\na%s0\r\n\r\n", b"1\r\na\r\n0\r\n%s"])
def test_a_chunk_ends_where_it_is_said_to_end(chunks: bytes, end: bytes) -> None:
    post = b"POST /v2/test/queues/q/messages HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"
    said = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks % end
    assert [type(frame) for frame in read(post, said)] == [Malformed]
    with pytest.raises(ClientError, match="a chunk"):
        ResponseReader("POST").feed(said)


@pytest.mark.parametrize(
    ("before", "after", "is_accepted"),
    [
        (b"Connection: Upgrade", b"Connection: keep-alive, upgrade", True),
        (b"Connection: Upgrade", b"Connection: keep-alive", False),
        (b"Upgrade: websocket", b"Upgrade: WebSocket", True),
        (b"Upgrade: websocket", b"Upgrade: h2c", False),
        (b"Upgrade: websocket\r\n", b"", False),
    ],
)
def test_an_upgrade_is_one_to_a_websocket(before: bytes, after: bytes, is_accepted: bool) -> None:
    asked, accepted = upgrade("publish")
    found = read(asked, accepted.replace(before, after) + encode_frame(PING, b"a"))
    assert [type(frame) for frame in found] == [f.WsAccept, f.WsPing][: 1 + is_accepted]


def test_of_the_headers_that_a_server_sends_only_metadata_has_to_be_handed_on() -> None:
    given = {"Content-Type": "text/plain", "x-msg-x-a": "1", "X-Msg-Timestamp": "5"}
    of_http = {"Date": "Thu, 01 Jan 1970 00:00:00 GMT", "Transfer-Encoding": "chunked", "max-x": "1"}
    heard = {"redelivered": False, "ts": 5, "headers": {**given, **of_http}}
    assert TRAITS.delivery.properties_of(heard) == {"redelivered": False, "ts": 5, "headers": given}
    assert TRAITS.delivery.properties_of({**heard, "headers": "odd"})["headers"] == "odd"


def test_what_is_stored_under_one_name_in_two_projects_counts_for_both() -> None:
    with Narconi() as broker:
        for project in ("gold", "silver"):
            broker.publish(project, "orders", project.encode())
            broker.publish(project, project, b"x")
        assert [body for _, body in TRAITS.reading.stored(broker)["orders"]] == [b"gold", b"silver"]
        taken_from = Request(broker.messages_url("gold", "orders"), method="DELETE")
        urlopen(taken_from, timeout=PATIENCE_S).close()
        assert sorted(TRAITS.reading.stored(broker)) == ["gold", "silver"]
