"""What the recordings do not show: other profiles, odd requests, ends of connections."""

from __future__ import annotations

import json
from email.utils import formatdate

import pytest

from fakebrokers.core.frames import Malformed
from fakebrokers.core.session import HangUp
from fakebrokers.errors import UsageError
from fakebrokers.faults import reply, stall
from fakebrokers.narconi import frames as f
from fakebrokers.narconi.config import Config
from fakebrokers.narconi.frames import FRAMES
from fakebrokers.narconi.profile import PROFILES
from fakebrokers.narconi.routes import find_route, js_number
from fakebrokers.narconi.server import Narconi
from fakebrokers.narconi.websocket import BINARY, encode_frame
from tests.narconi.recording import Answer, Core, Reply

QUEUE = "/v2/gold/queues/q"
MESSAGES = f"{QUEUE}/messages"


def core(profile: str = "real", **settings: object) -> Core:
    made = Core(profile, Config(**settings))  # type: ignore[arg-type]
    made.broker.ensure("gold_q")
    return made


def header(answer: Answer, name: str) -> str | None:
    return next((value for key, value in answer.headers if key == name), None)


def texts(replies: list[Reply]) -> list[str]:
    return [reply.payload.decode() for reply in replies if reply.opcode == 1]


# HTTP


def test_node20_answers() -> None:
    server = core("node20")
    client = server.connect()
    answer = client.request("POST", MESSAGES, [["Content-Length", "1"]], b"x")
    assert answer.headers[1:] == [
        ["Connection", "keep-alive"],
        ["Keep-Alive", "timeout=5"],
        ["Transfer-Encoding", "chunked"],
    ]
    answer = client.request("DELETE", MESSAGES, [])
    assert answer.headers[-2:] == [["Keep-Alive", "timeout=5"], ["Content-Length", "1"]]
    assert answer.body == b"x"


def test_node20_closes_idle_connections() -> None:
    server = core("node20")
    client = server.connect()
    server.now = 3.0
    client.request("DELETE", MESSAGES, [])
    server.engine.handle_timers(5.0)
    server.engine.flush(5.0)
    assert client.ended is None
    server.now = 8.0
    server.engine.handle_timers(8.0)
    server.engine.flush(8.0)
    assert client.ended is HangUp.FIN


def test_other_profiles_keep_idle_connections() -> None:
    server = core()
    server.connect()
    assert server.engine.next_deadline() == float("inf")


def test_http_1_0() -> None:
    client = core().connect()
    client.send(f"PUT {QUEUE} HTTP/1.0\r\n\r\n".encode())
    answer = client.answer()
    assert header(answer, "Connection") == "close"
    assert header(answer, "Transfer-Encoding") is None
    assert client.ended is HangUp.FIN


def test_pipelined_requests_are_answered_in_order() -> None:
    client = core().connect()
    client.send(
        f"PUT {QUEUE} HTTP/1.1\r\n\r\nDELETE {MESSAGES} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n".encode()
    )
    assert [client.answer().status_line[9:12] for _ in range(3)] == ["201", "204", "404"]


def test_nothing_is_read_behind_connection_close() -> None:
    client = core().connect()
    client.send(f"PUT {QUEUE} HTTP/1.1\r\nConnection: close\r\n\r\nDELETE {QUEUE} HTTP/1.1\r\n\r\n".encode())
    assert client.answer().status_line == "HTTP/1.1 201 Created"
    assert not client.data


def test_what_is_no_http_gets_no_answer() -> None:
    client = core().connect()
    client.send(b"\x16\x03\x01\x02\x00\x01\r\n\r\n")
    assert not client.data
    assert client.ended is HangUp.FIN


@pytest.mark.parametrize("cut", [1, 40, -8, -7, -1])
def test_an_upgrade_that_waits_and_a_message_behind_it(cut: int) -> None:
    """Both come while nothing may be read, the message perhaps in a unit of its own."""
    server = Core(faults=(stall(for_s=1.0, on="accept"),))
    server.broker.ensure("gold_q")
    client = server.connect()
    head = (
        f"GET {MESSAGES} HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: publish\r\n\r\n"
    )
    data = head.encode() + encode_frame(BINARY, b"hello")
    client.send(data[:cut])
    client.send(data[cut:])
    assert not client.data
    server.engine.handle_timers(2.0)
    server.engine.flush(2.0)
    assert client.answer().status_line == "HTTP/1.1 101 Switching Protocols"
    assert [message.payload for message in server.broker.queues["gold_q"].ready] == [b"hello"]
    assert server.errors == []


def test_expectations_are_met() -> None:
    client = core().connect()
    client.send(f"POST {MESSAGES} HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n".encode())
    assert client.answer() == Answer("HTTP/1.1 100 Continue", [], b"")
    client.send(b"x")
    assert client.answer().status_line == "HTTP/1.1 201 Created"


@pytest.mark.parametrize(
    ("accept", "status", "kind"),
    [
        ("application/json", "404", "application/json"),
        ("text/*", "404", "text/plain"),
        ("text/html, application/xhtml+xml, */*;q=0.8", "404", "application/json"),
        ("text/plain;q=0.5, application/octet-stream", "404", "application/octet-stream"),
        ("application/javascript", "404", "application/javascript"),
        ("image/png, text/html", "406", None),
        ("application/json;q=0", "406", None),
        ("*/*;q=x", "406", None),
    ],
)
def test_errors_follow_accept(accept: str, status: str, kind: str | None) -> None:
    answer = core().connect().request("DELETE", "/v2/gold/queues/none/messages", [["Accept", accept]])
    assert answer.status_line[9:12] == status
    assert header(answer, "Content-Type") == kind


def test_head_that_accepts_nothing_has_no_body() -> None:
    client = core().connect()
    answer = client.request("HEAD", MESSAGES, [["Accept", "image/png"]])
    assert answer.status_line == "HTTP/1.1 406 Not Acceptable"
    assert not client.data


def test_headers_of_a_message_stay_on_their_lines() -> None:
    server = core()
    publisher = server.websocket(MESSAGES, "publish")
    publisher.send_frame(1, json.dumps({"x-a": "1\r\nx-evil: 1", "x-b\r\nc": 2, "message": "m"}).encode())
    assert [frame.payload for frame in publisher.frames()] == [b""]
    answer = server.connect().request("DELETE", MESSAGES, [])
    assert [pair for pair in answer.headers if pair[0].startswith("x-") and "msg" not in pair[0]] == [
        ["x-a", "1x-evil: 1"],
        ["x-bc", "2"],
    ]


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("/v2/gold/queues/q", True),
        ("/v2/gold/queues/q/messages?ack", True),
        ("//v2//gold/queues/q", True),
        ("/v2/gold/queues/q/", False),
        ("/v2/gold/queues/q/messages/", False),
        ("/v2/gold/queues", False),
        ("/v2/gold/queues/q/other", False),
        ("v2/gold/queues/q", False),
        ("*", False),
    ],
)
def test_routes(target: str, found: bool) -> None:
    assert (find_route(target) is not None) == found


@pytest.mark.parametrize("query", ["limit=", "limit=0", "limit=0.5", "limit=-1", "limit=abc", "limit=NaN"])
def test_limits_out_of_range(query: str) -> None:
    answer = core().connect().request("PUT", f"{QUEUE}?{query}", [])
    assert answer.status_line == "HTTP/1.1 409 Conflict"


def test_ttl_follows_the_configuration() -> None:
    client = core(max_message_ttl=10).connect()
    assert client.request("PUT", f"{QUEUE}?ttl=10", []).status_line[9:12] == "201"
    answer = client.request("PUT", f"{QUEUE}?ttl=11", [])
    assert json.loads(answer.body)["message"] == "TTL must be in seconds and between 0 and 10"


def test_javascript_numbers() -> None:
    assert [js_number(text) for text in ("", "42", " 7 ", "0x10", "1e2", "-1")] == [0, 42, 7, 16, 100, -1]
    assert all(js_number(text) != js_number(text) for text in ("abc", "1_0", "nan", "inf", "1,2"))


def test_size_limit_of_the_configuration() -> None:
    server = core(max_message_size=10)
    client = server.connect()
    body = [["Content-Length", "11"]]
    assert client.request("POST", MESSAGES, body, bytes(11)).status_line[9:12] == "429"
    publisher = server.websocket(MESSAGES, "publish")
    publisher.send_frame(2, bytes(10))
    publisher.send_frame(2, bytes(11))
    assert texts(list(publisher.frames())) == ["", '{"error":"Message too large.","code":429}']
    assert publisher.ended is HangUp.FIN


def test_a_body_is_read_before_the_queue_is_looked_up() -> None:
    client = core(max_message_size=10).connect()
    missing = MESSAGES.replace("/q/", "/none/")
    for size, status in ((11, "429"), (10, "404")):
        answer = client.request("POST", missing, [["Content-Length", str(size)]], bytes(size))
        assert answer.status_line[9:12] == status


def test_a_reset_brings_the_backend_back() -> None:
    server = core()
    server.broker.backend_up = False
    client = server.connect()
    assert client.request("PUT", QUEUE, []).status_line[9:12] == "500"
    server.broker.reset()
    assert client.request("PUT", QUEUE, []).status_line[9:12] == "201"


# WebSocket


def test_two_consumers_take_turns() -> None:
    server = core()
    first, second = (server.websocket(f"{MESSAGES}?encoding=utf8", "consume") for _ in range(2))
    publisher = server.websocket(MESSAGES, "publish")
    for word in "abcd":
        publisher.send_frame(2, word.encode())
    bodies = [[json.loads(text)["message"] for text in texts(list(c.frames()))] for c in (first, second)]
    assert bodies == [["a", "c"], ["b", "d"]]


def test_ack_of_a_gone_id_inside_ack_to() -> None:
    server = core()
    server.connect().request("POST", MESSAGES, [["Content-Length", "1"]], b"a")
    consumer = server.websocket(f"{MESSAGES}?ack", "consume")
    list(consumer.frames())
    consumer.send_frame(1, b'{"ackId":" 1 "}')  # JavaScript's Number takes spaces
    consumer.send_frame(1, b'{"ackToId":"0"}')
    assert consumer.ended is None
    consumer.send_frame(1, b'{"ackId":"0"}')
    assert "unknown delivery tag 0" in texts(list(consumer.frames()))[0]
    assert consumer.ended is HangUp.FIN


@pytest.mark.parametrize("ack_id", ["abc", "1.5", "NaN"])
def test_ids_that_are_no_numbers(ack_id: str) -> None:
    consumer = core().websocket(f"{MESSAGES}?ack", "consume")
    consumer.send_frame(1, json.dumps({"ackId": ack_id}).encode())
    assert texts(list(consumer.frames())) == ['{"error":"Unable to ack a message.","code":500}']


def test_unacked_messages_come_back_in_order() -> None:
    server = core()
    for word in (b"a", b"b", b"c", b"d"):
        server.connect().request("POST", MESSAGES, [["Content-Length", "1"]], word)
    consumer = server.websocket(f"{MESSAGES}?ack&limit=3", "consume")
    list(consumer.frames())
    consumer.send_frame(1, b'{"ackId":"2"}')
    assert server.broker.queues["gold_q"].unacked == 3
    consumer.drop()
    queue = server.broker.queues["gold_q"]
    assert queue.unacked == 0
    assert [(m.payload, m.redelivered) for m in queue.ready] == [(b"a", True), (b"c", True), (b"d", True)]


def test_what_a_consumer_leaves_goes_to_the_next_one() -> None:
    server = core()
    server.connect().request("POST", MESSAGES, [["Content-Length", "1"]], b"a")
    first, second = (server.websocket(f"{MESSAGES}?ack", "consume") for _ in range(2))
    assert (len(list(first.frames())), len(list(second.frames()))) == (2, 0)
    first.drop()
    metadata, payload = list(second.frames())
    assert (json.loads(metadata.payload)["redelivered"], payload.payload) == (True, b"a")


def test_ack_to_takes_the_named_one_too() -> None:
    server = core()
    for word in (b"a", b"b", b"c", b"d"):
        server.connect().request("POST", MESSAGES, [["Content-Length", "1"]], word)
    consumer = server.websocket(f"{MESSAGES}?ack&limit=4", "consume")
    consumer.send_frame(1, b'{"ackToId":"3"}')
    assert server.broker.queues["gold_q"].unacked == 1
    consumer.drop()
    assert [message.payload for message in server.broker.queues["gold_q"].ready] == [b"d"]


@pytest.mark.parametrize("query", ["", "?ack"])
def test_a_consumer_that_stops_gets_nothing_more(query: str) -> None:
    server = core()
    consumer = server.websocket(MESSAGES + query, "consume")
    consumer.send_frame(1, b"")
    server.connect().request("POST", MESSAGES, [["Content-Length", "1"]], b"a")
    assert (list(consumer.frames()), consumer.ended) == ([], None)
    assert len(server.broker.queues["gold_q"].ready) == 1


@pytest.mark.parametrize("command", [b'{"ackId":"1"}', b'{"ackToId":"1"}'])
def test_who_did_not_ask_for_acks_sends_none(command: bytes) -> None:
    consumer = core().websocket(MESSAGES, "consume")
    consumer.send_frame(1, command)
    text = "Acks can only be sent on connections without immediate acks."
    assert texts(list(consumer.frames())) == [json.dumps({"error": text, "code": 400}, separators=(",", ":"))]
    assert consumer.ended is HangUp.FIN


def test_a_message_unacked_while_its_queue_goes_is_gone() -> None:
    server = core()
    server.connect().request("POST", MESSAGES, [["Content-Length", "1"]], b"a")
    consumer = server.websocket(f"{MESSAGES}?ack", "consume")
    client = server.connect()
    client.request("DELETE", QUEUE, [])
    client.request("PUT", QUEUE, [])
    assert consumer.ended is HangUp.FIN
    assert client.request("DELETE", MESSAGES, []).status_line[9:12] == "204"


def test_a_deleted_queue_hands_nothing_to_the_next_consumer() -> None:
    server = core()
    server.connect().request("POST", MESSAGES, [["Content-Length", "1"]], b"a")
    first, second = (server.websocket(f"{MESSAGES}?ack", "consume") for _ in range(2))
    assert len(list(first.frames())) == 2
    server.connect().request("DELETE", QUEUE, [])
    for consumer in (first, second):
        assert texts(list(consumer.frames())) == ['{"error":"Unable to send message to client.","code":500}']


def test_a_stalled_consumer_gets_nothing_more() -> None:
    server = core()
    consumer = server.websocket(MESSAGES, "consume")
    server.engine.set_writable(consumer.connection, False, 0.0)  # type: ignore[attr-defined]
    server.connect().request("POST", MESSAGES, [["Content-Length", "1"]], b"a")
    assert not list(consumer.frames())
    server.engine.set_writable(consumer.connection, True, 0.0)  # type: ignore[attr-defined]
    server.engine.flush(0.0)
    assert [frame.payload for frame in consumer.frames()][1:] == [b"a"]


@pytest.mark.parametrize(
    ("data", "code"), [(b"\xc1\x80\0\0\0\0", 1002), (b"\x81\x81\0\0\0\0\xff", 1007)], ids=["rsv", "utf-8"]
)
def test_broken_frames_close_the_connection(data: bytes, code: int) -> None:
    publisher = core().websocket(MESSAGES, "publish")
    publisher.send(data)
    assert list(publisher.frames()) == [Reply(8, 1, code.to_bytes(2, "big"))]
    assert publisher.ended is HangUp.FIN


def test_close_is_always_answered_with_1000() -> None:
    for payload in (b"", b"\x03\xe9", b"\x0f\xa0bye"):
        publisher = core().websocket(MESSAGES, "publish")
        publisher.send_frame(8, payload)
        assert list(publisher.frames()) == [Reply(8, 1, b"\x03\xe8")]


def test_a_crash_ends_one_connection_unless_asked_for() -> None:
    server = core()
    bystander = server.websocket(MESSAGES, "publish")
    consumer = server.websocket(MESSAGES, "consume")
    consumer.send_frame(1, b"null")
    assert (consumer.ended, bystander.ended) == (HangUp.FIN, None)
    assert not list(consumer.frames())
    assert server.broker.crashes == 0


def test_losing_the_backend_hands_nothing_to_the_next_consumer() -> None:
    server = core()
    server.connect().request("POST", MESSAGES, [["Content-Length", "1"]], b"a")
    first = server.websocket(f"{MESSAGES}?ack&limit=1", "consume")
    second = server.websocket(f"{MESSAGES}?ack&limit=1", "consume")
    assert len(list(first.frames())) == 2
    server.call(server.broker.lose_backend, 0.0)
    lost = '{"error":"AMQP connection was unexpectedly closed.","code":500}'
    assert texts(list(first.frames())) == texts(list(second.frames())) == [lost]
    assert [m.redelivered for m in server.broker.queues["gold_q"].ready] == [True]


# profile seed


def test_an_upgrade_at_a_queue_that_is_missing() -> None:
    client = core("seed").connect()
    headers = [
        ["Upgrade", "websocket"],
        ["Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="],
        ["Sec-WebSocket-Version", "13"],
        ["Sec-WebSocket-Protocol", "consume"],
    ]
    answer = client.request("GET", "/v2/gold/queues/none", headers)
    assert answer.status_line[9:12] == "404"
    assert client.ended is HangUp.FIN


def test_discovery() -> None:
    client = core("seed").connect()
    answer = client.request("OPTIONS", QUEUE, [["Host", "narconi.example:81"]])
    assert header(answer, "Location") == "ws://narconi.example:81/v2/gold/queues/q"
    assert client.request("OPTIONS", MESSAGES, []).status_line[9:12] == "405"


def test_upgrade_on_the_queue_path() -> None:
    core("seed").websocket(QUEUE, "publish")


def test_refused_upgrades_have_a_body_in_the_document() -> None:
    client = core("seed").connect()
    answer = client.request("GET", MESSAGES, [["Upgrade", "websocket"], ["Sec-WebSocket-Protocol", "x"]])
    assert answer.status_line == "HTTP/1.1 400 Bad Request"
    assert json.loads(answer.body) == {"message": "Sec-WebSocket-Protocol must be publish or consume."}
    assert client.ended is HangUp.FIN


def test_an_error_answers_one_message_in_the_document() -> None:
    publisher = core("seed").websocket(MESSAGES, "publish")
    for text in ('{"message":"1"}', "oops", '{"ttl":3601,"message":"2"}', '{"ttl":1,"message":"3"}'):
        publisher.send_frame(1, text.encode())
    assert texts(list(publisher.frames())) == [
        "",
        '{"code":400,"error":"Payload must be binary or a JSON object."}',
        '{"code":400,"error":"TTL value too large"}',
        "",
    ]
    assert publisher.ended is None


def test_messages_expire_in_the_document() -> None:
    server = core("seed", max_message_ttl=60)
    publisher = server.websocket(MESSAGES, "publish")
    publisher.send_frame(1, b'{"ttl":10,"message":"short"}')
    publisher.send_frame(1, b'{"message":"long"}')
    client = server.connect()
    client.request("POST", f"{MESSAGES}?ttl=5", [["Content-Length", "1"]], b"x")
    server.now = 11.0
    assert client.request("DELETE", MESSAGES, []).body == b"long"
    assert client.request("DELETE", MESSAGES, []).status_line[9:12] == "204"
    publisher.send_frame(2, b"x")
    server.now = 71.0
    assert client.request("DELETE", MESSAGES, []).status_line[9:12] == "204"


def test_text_comes_back_as_text_in_the_document() -> None:
    server = core("seed")
    publisher = server.websocket(MESSAGES, "publish")
    publisher.send_frame(1, b'{"message":"a"}')
    publisher.send_frame(2, b"b")
    consumer = server.websocket(MESSAGES, "consume")
    assert [frame.opcode for frame in consumer.frames()] == [1, 1, 1, 2]


def test_ack_ids_are_opaque_in_the_document() -> None:
    server = core("seed")
    server.connect().request("POST", MESSAGES, [["Content-Length", "1"]], b"a")
    seen = []
    for _ in range(2):
        consumer = server.websocket(f"{MESSAGES}?ack&encoding=hex&limit=1.5", "consume")
        seen.append(json.loads(texts(list(consumer.frames()))[0])["ackId"])
        consumer.send_frame(1, b'{"ackId":"no such id"}')
        assert texts(list(consumer.frames())) == ['{"code":500,"error":"Unrecognized acknowledgment ID"}']
    assert seen[0] != seen[1]


def test_a_chunked_body_is_never_cut_in_the_document() -> None:
    client = core("seed").connect()
    headers = [["Transfer-Encoding", "chunked"]]
    answer = client.request("POST", MESSAGES, headers, [bytes(65536), b"x"])
    assert answer.status_line == "HTTP/1.1 429 Too Many Requests"
    assert json.loads(answer.body) == {"message": "Message too large."}


# settings


def test_environment() -> None:
    environ = {"PORT": "9", "NARCONI_MAX_MESSAGE_SIZE": "10", "NARCONI_DEFAULT_LIMIT": "0", "HOME": "/"}
    environ |= {"NARCONI_MAX_MESSAGE_TTL": "many", "NARCONI_AMQP_URI": "amqp://x"}
    config = Config.from_environ(environ)
    assert config == Config(port=9, max_message_size=10, amqp_uri="amqp://x")


def test_default_limit() -> None:
    server = core(default_limit=2)
    for _ in range(3):
        server.connect().request("POST", MESSAGES, [["Content-Length", "1"]], b"a")
    consumer = server.websocket(f"{MESSAGES}?ack&encoding=hex", "consume")
    assert len(list(consumer.frames())) == 2


def test_profiles() -> None:
    assert {"real", "seed", "0.1.0", "0.2.0-pre"} <= set(PROFILES)
    assert all(profile.name == name for name, profile in PROFILES.items())
    with pytest.raises(UsageError, match=r"narconi has no profile 'sead'; did you mean 'seed'\?"):
        Narconi(profile="sead")


def test_every_frame_in_every_state_is_dealt_with() -> None:
    """Faults bring any frame at any time; where a state has no handler the frame is ignored."""
    upgrades = {"http": None, "publishing": "publish", "consuming": "consume"}
    kinds = [kind for kind in FRAMES if issubclass(kind, f.HttpRequest | f.WsPing | f.WsClose)]
    odd = [
        *[kind(method="GET", target=MESSAGES, number=1) for kind in kinds if issubclass(kind, f.HttpRequest)],
        f.WsPing(b"p"),
        f.WsPong(b"p"),
        f.WsClose(1001),
        f.Expectation(),
        f.WsPublish(1, b"x", {}, "binary", False),
        f.WsAck("1", None),
        f.WsStop(True),
        f.WsConfirm(1),
        *[Malformed(b"", "", code) for code in ("http", "ws-1002", "crash", "stuck", "not-json", "other")],
    ]
    for state, protocol in upgrades.items():
        for frame in odd:
            server = core()
            client = server.connect() if protocol is None else server.websocket(MESSAGES, protocol)
            session = server.engine.connections["c1"].session
            assert session.state == state
            server.call(session.handle, frame, server.now)
            assert server.errors == [], (state, frame)
            ended = session.state == "closed"
            before = len(client.data)  # type: ignore[attr-defined]
            if ended:
                for late in odd:
                    server.call(session.handle, late, server.now)
                assert len(client.data) == before  # type: ignore[attr-defined]


def test_a_refusal_by_a_fault_has_the_date_of_its_moment() -> None:
    server = Core(faults=(reply(code=503, kind="HttpPublish"),))
    server.broker.ensure("gold_q")
    client = server.connect()
    client.request("DELETE", MESSAGES, [])
    server.now += 3600.0
    answer = client.request("POST", MESSAGES, [["Content-Length", "1"]], b"x")
    assert answer.status_line.startswith("HTTP/1.1 503 ")
    assert header(answer, "Date") == formatdate(server.broker.wall(server.now), usegmt=True)
