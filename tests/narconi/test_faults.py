"""The faults of Narconi, and the general ones on HTTP and WebSocket."""

from __future__ import annotations

import json

import pytest

from fakebrokers.core.session import HangUp
from fakebrokers.faults import Fault, corrupt, drop, duplicate, fault, hold, load_plan, reply, silent
from fakebrokers.faults.effects import Drop, Extend, Fin, Inject, Rst
from fakebrokers.narconi.faults import (
    CutBody,
    HttpAnswer,
    SlowBody,
    SplitDelivery,
    WithLength,
    WithoutHeader,
    cut_between_frames,
    dead_consumer,
    error_instead_of_confirm,
    lose_consume_response,
    publish_201_lost,
)
from tests.narconi.recording import Core, Reply, Socket

QUEUE = "/v2/gold/queues/q"
MESSAGES = f"{QUEUE}/messages"
BODY = b"0123456789" * 10


def core(*faults: Fault, profile: str = "real") -> Core:
    made = Core(profile, faults=faults)
    made.broker.ensure("gold_q")
    return made


def post(client: Socket, body: bytes = BODY) -> None:
    head = f"POST {MESSAGES} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    client.send(head.encode() + body)


def stored(server: Core) -> list[bytes]:
    return [message.payload for message in server.broker.queues["gold_q"].ready]


def later(server: Core, now: float) -> None:
    server.now = now
    server.engine.handle_timers(now)
    server.engine.flush(now)


# HTTP


@pytest.mark.parametrize(("end", "how"), [("fin", HangUp.FIN), ("rst", HangUp.RST)])
def test_lose_consume_response(end: str, how: HangUp) -> None:
    server = core(lose_consume_response(end))  # type: ignore[arg-type]
    client = server.connect()
    post(client)
    client.answer()
    client.send(f"DELETE {MESSAGES} HTTP/1.1\r\n\r\n".encode())
    assert (client.data, client.ended) == (b"", how)
    assert stored(server) == []


def test_lose_consume_response_in_the_body() -> None:
    server = core(lose_consume_response(keep=40))
    client = server.connect()
    post(client)
    client.answer()
    client.send(f"DELETE {MESSAGES} HTTP/1.1\r\n\r\n".encode())
    assert client.data.endswith(b"\r\n\r\n28\r\n" + BODY[:40] + b"\r\n")
    assert client.ended is HangUp.FIN


def test_cut_body_with_a_length() -> None:
    server = core(fault(CutBody(keep=40), Rst(), kind="HttpDeliver"), profile="node20")
    client = server.connect()
    post(client)
    client.answer()
    client.send(f"DELETE {MESSAGES} HTTP/1.1\r\n\r\n".encode())
    assert b"Content-Length: 100\r\n" in client.data
    assert client.data.endswith(b"\r\n\r\n" + BODY[:40])
    assert client.ended is HangUp.RST


def test_publish_201_lost() -> None:
    server = core(publish_201_lost(nth=2))
    client = server.connect()
    post(client, b"1")
    client.answer()
    post(client, b"2")
    assert (client.data, client.ended) == (b"", HangUp.FIN)
    assert stored(server) == [b"1", b"2"]


def test_slow_body() -> None:
    server = core(fault(SlowBody(bytes_per_s=1), kind="HttpDeliver"))
    client = server.connect()
    post(client, b"ab")
    client.answer()
    client.send(f"DELETE {MESSAGES} HTTP/1.1\r\n\r\n".encode())
    assert client.data.endswith(b"chunked\r\n\r\n")
    later(server, 1.0)
    assert client.data.endswith(b"1\r\na\r\n")
    later(server, 3.0)
    assert client.answer().body == b"ab"


def test_mended_lengths() -> None:
    server = core(fault(Extend(hex="2121"), kind="HttpError"))
    answer = server.connect().request("GET", "/", [])
    assert answer.body == b'{"code":"ResourceNotFound","message":"/ does not exist"}!!'


def test_answers_of_a_gateway() -> None:
    server = core(fault(HttpAnswer(status=401, body="who?"), kind="HttpPublish", direction="in", nth=1))
    client = server.connect()
    post(client)
    answer = client.answer()
    assert answer.status_line == "HTTP/1.1 401 Unauthorized"
    assert answer.headers[0] == ["Content-Type", "text/html"]
    assert answer.body == b"who?"
    assert [r.kind for r in server.engine.journal.select(role="reject")] == ["HttpReject"]
    assert stored(server) == []
    post(client, b"x")
    assert client.answer().status_line == "HTTP/1.1 201 Created"


def test_redirects_and_ends() -> None:
    redirect = HttpAnswer(status=307, headers={"Location": "/elsewhere"}, close=True)
    client = core(fault(redirect, role="publish", direction="in")).connect()
    post(client)
    assert client.answer().headers[0] == ["Location", "/elsewhere"]
    assert client.ended is HangUp.FIN


def test_another_body_for_an_error() -> None:
    server = core(
        fault(HttpAnswer(status=500, body="[1", content_type="application/json"), kind="QueueEnsured")
    )
    answer = server.connect().request("PUT", QUEUE, [])
    assert (answer.status_line, answer.body) == ("HTTP/1.1 500 Internal Server Error", b"[1")


def test_empty_answers_with_a_length() -> None:
    server = core(fault(WithLength(), kind="QueueEnsured"))
    assert server.connect().request("PUT", QUEUE, []).headers[-1] == ["Content-Length", "0"]


def test_reply_refuses_in_the_servers_words() -> None:
    server = core(reply(413, kind="HttpPublish"), reply(500, kind="WsUpgrade"), reply(500, kind="WsPublish"))
    client = server.connect()
    post(client)
    answer = client.answer()
    assert answer.status_line == "HTTP/1.1 413 Request Entity Too Large"
    assert json.loads(answer.body)["code"] == "RequestEntityTooLarge"
    answer = client.request("GET", MESSAGES, [["Upgrade", "websocket"]])
    assert answer.status_line == "HTTP/1.1 500 Connection Not Upgraded"
    assert stored(server) == []


def test_cut_on_an_idle_connection() -> None:
    server = core(fault(Fin(), on="idle", after_s=2.0))
    client = server.connect()
    client.request("PUT", QUEUE, [])
    later(server, 2.0)
    assert client.ended is HangUp.FIN


# WebSocket


def test_upgrade_without_the_protocol() -> None:
    server = core(fault(WithoutHeader(header="sec-websocket-protocol"), kind="WsAccept"))
    names = ["Upgrade", "Connection", "Sec-WebSocket-Accept"]
    client = server.connect()
    headers = [["Upgrade", "websocket"], ["Sec-WebSocket-Protocol", "publish"]]
    headers += [["Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="], ["Sec-WebSocket-Version", "13"]]
    assert [name for name, _ in client.request("GET", MESSAGES, headers).headers] == names


def publish(publisher: Socket, *payloads: bytes) -> None:
    for payload in payloads:
        publisher.send_frame(2, payload)


def test_confirms_by_position() -> None:
    server = core(drop(role="confirm", nth=2), hold(role="confirm", nth=3, name="held"))
    publisher = server.websocket(MESSAGES, "publish")
    publish(publisher, b"1", b"2", b"3", b"4")
    assert len(list(publisher.frames())) == 2
    server.engine.release("held", 0.0)
    server.engine.flush(0.0)
    assert len(list(publisher.frames())) == 1
    assert len(stored(server)) == 4


def test_a_dropped_publish_loses_both_messages_of_the_pair() -> None:
    server = core(drop(role="publish", nth=1))
    publisher = server.websocket(MESSAGES, "publish")
    publisher.send_frame(1, b"{}")
    publish(publisher, b"1", b"2")
    assert stored(server) == [b"2"]


def test_error_instead_of_confirm() -> None:
    server = core(error_instead_of_confirm("no", 500, nth=2))
    publisher = server.websocket(MESSAGES, "publish")
    publish(publisher, b"1", b"2")
    error = Reply(1, 1, b'{"error":"no","code":500}')
    assert list(publisher.frames()) == [Reply(1, 1, b""), error, Reply(8, 1, b"\x03\xe8")]
    assert publisher.ended is HangUp.FIN


def test_error_and_the_connection_goes_on() -> None:
    server = core(error_instead_of_confirm("", 500, close=False, nth=1))
    publisher = server.websocket(MESSAGES, "publish")
    publish(publisher, b"1", b"2")
    assert list(publisher.frames()) == [Reply(1, 1, b'{"code":500}'), Reply(1, 1, b"")]


def test_fragmented_confirm_with_a_ping_between() -> None:
    server = core(fault(Inject(hex="0100" + "890170" + "8000"), Drop(), role="confirm", nth=1))
    publisher = server.websocket(MESSAGES, "publish")
    publish(publisher, b"1")
    assert list(publisher.frames()) == [Reply(1, 0, b""), Reply(9, 1, b"p"), Reply(0, 1, b"")]


def test_cut_between_frames() -> None:
    server = core(cut_between_frames("rst"))
    post(server.connect())
    consumer = server.websocket(f"{MESSAGES}?ack", "consume")
    (metadata,) = consumer.frames()
    assert json.loads(metadata.payload)["ackId"] == "1"
    assert consumer.ended is HangUp.RST
    assert stored(server) == [BODY]


def test_a_late_payload_with_pings() -> None:
    server = core(fault(SplitDelivery(gap_s=3.0, pings=2), kind="WsDeliver", nth=1))
    client = server.connect()
    post(client, b"1")
    post(client, b"2")
    consumer = server.websocket(MESSAGES, "consume")
    assert [frame.opcode for frame in consumer.frames()] == [1]
    later(server, 2.5)
    assert [frame.opcode for frame in consumer.frames()] == [9, 9]
    later(server, 3.5)
    frames = list(consumer.frames())
    assert [frame.opcode for frame in frames] == [2, 1, 2]
    assert [frames[0].payload, frames[2].payload] == [b"1", b"2"]


def test_dead_consumer() -> None:
    server = core(dead_consumer())
    post(server.connect())
    consumer = server.websocket(MESSAGES, "consume")
    consumer.send_frame(9, b"p")
    assert list(consumer.frames()) == [Reply(10, 1, b"p")]


def test_duplicates_keep_their_ack_id() -> None:
    server = core(duplicate(role="deliver"))
    post(server.connect())
    consumer = server.websocket(f"{MESSAGES}?ack&encoding=hex", "consume")
    first, second = consumer.frames()
    assert first == second


def test_silence_after_accept() -> None:
    server = core(silent(on="accept"))
    client = server.connect()
    client.send(f"PUT {QUEUE} HTTP/1.1\r\n\r\n".encode())
    assert not client.data
    assert client.ended is None


def test_corrupt_on_the_way_in() -> None:
    server = core(corrupt(at=-1, xor=0x01, role="publish", nth=2, direction="in"))
    publisher = server.websocket(MESSAGES, "publish")
    publish(publisher, b"a", b"a")
    assert stored(server) == [b"a", b"`"]


def test_plans_know_the_effects() -> None:
    plan = load_plan(
        {
            "faults": [
                {
                    "match": {"kind": "HttpDeliver"},
                    "effect": [{"type": "cut-body", "keep": 4}, {"type": "fin"}],
                },
                {"match": {"role": "confirm"}, "effect": {"type": "fail-instead", "code": 400}},
                {"match": {"kind": "WsDeliver"}, "effect": {"type": "split-delivery", "gap_s": 1.0}},
                {"match": {"on": "ready"}, "effect": {"type": "break-backend", "down_s": 2.0}},
            ]
        },
        "narconi",
    )
    assert isinstance(plan.faults[0].effects[1], Fin)
    assert load_plan(plan.to_dict(), "narconi") == plan
