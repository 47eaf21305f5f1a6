"""A recording plays: its server's side is said again, with the ids that the client has chosen."""

from __future__ import annotations

import base64
import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fakebrokers import Moleculer, RabbitMQStream
from fakebrokers.errors import UsageError
from fakebrokers.faults import drop
from fakebrokers.journal import Tap
from fakebrokers.moleculer.mqtt.codec import MqttCodec
from fakebrokers.moleculer.mqtt.frames import Connect
from fakebrokers.moleculer.nats.frames import NatsPing, NatsPong
from fakebrokers.proxy import Proxy
from fakebrokers.proxy.recording import Line
from fakebrokers.proxy.replay import Replay
from fakebrokers.proxy.script import Due, Script
from fakebrokers.rabbitmq_stream.frames import (
    Create,
    CreateResponse,
    Credit,
    Deliver,
    Metadata,
    MetadataResponse,
    StreamStats,
    StreamStatsResponse,
)
from tests.eventually import PATIENCE_S
from tests.marked import PASSWORD
from tests.proxy.stream_client import StreamClient
from tests.proxy.test_half_closed import read_all, server
from tests.rabbitmq_stream.bench import subscribe


@contextmanager
def recording_proxy(file: Path) -> Iterator[tuple[RabbitMQStream, Proxy]]:
    with RabbitMQStream() as broker, Proxy(broker.url, protocol="rabbitmq-stream", record=file) as proxy:
        yield broker, proxy


def recorded(path: Path, *batches: list[bytes]) -> Path:
    """A session of a client that publishes batches and asks for their confirms."""
    file = path / "session.jsonl"
    with recording_proxy(file) as (_, proxy):
        with StreamClient(proxy.port, ids=100, publisher=3) as client:
            client.create("orders")
            for batch in batches:
                client.publish(*batch)
                assert len(client.confirmed(len(batch))) == len(batch)
        proxy.wait_for(kind="closed")
    return file


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_what_a_recording_holds(tmp_path: Path) -> None:
    head, *rows = lines(recorded(tmp_path, [b"a"]))
    assert head == {
        "recording": 1,
        "protocol": "rabbitmq-stream",
        "wire": "stream",
        "scheme": "rabbitmq-stream",
    }
    assert [row["what"] for row in rows[:3]] == ["open", "heard", "said"]
    assert rows[-1] | {"at": 0} == {"at": 0, "connection": "c1", "what": "end", "by": "client"}
    publish = next(row for row in rows if row.get("kind") == "Publish")
    assert (publish["keys"], publish["scope"], publish["role"]) == ([102], "3", "publish")
    assert "data" not in publish
    assert "guest" not in (tmp_path / "session.jsonl").read_text()


def test_credentials_are_left_out_and_what_cannot_be_read_is_not(tmp_path: Path) -> None:
    """Whichever side says them."""
    file = tmp_path / "session.jsonl"
    login = MqttCodec().encode(Connect("c", 60, user="me", password=PASSWORD.encode()))
    strange = b"\xf0\x02strange"

    def answer(sock: socket.socket) -> None:
        sock.sendall(login + strange)
        read_all(sock)

    with server(answer) as address, Proxy(address, protocol="moleculer", wire="mqtt", record=file) as proxy:
        assert begin(proxy.port) == login + strange
    assert PASSWORD.encode() not in b"".join(base64.b64decode(row.get("data", "")) for row in lines(file))
    with Replay(file) as replay:
        assert begin(replay.port, size=len(strange)) == strange


def begin(port: int, size: int = 100) -> bytes:
    """What a server says first."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock:
        sock.settimeout(PATIENCE_S)
        got = b""
        while len(got) < size and not got.endswith(b"strange"):
            got += sock.recv(size)
        return got


def test_a_recording_goes_on_when_the_proxy_is_started_again(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    with recording_proxy(file) as (broker, proxy):
        for number in (1, 2):
            with StreamClient(proxy.port) as client:
                client.create("orders")
            proxy.wait_for(kind="closed", count=number)
            proxy.stop()
            proxy.start()
        assert broker.streams == ["orders"]
    whats = [(row["connection"], row["what"]) for row in lines(file)[1:] if row["what"] in ("open", "end")]
    assert whats == [("c1", "open"), ("c1", "end"), ("c2", "open"), ("c2", "end")]


def test_ids_are_those_of_the_client(tmp_path: Path) -> None:
    file = recorded(tmp_path, [b"a"], [b"b", b"c"])
    with Replay(file) as replay, StreamClient(replay.port, ids=7, publisher=5) as client:
        client.say(Create(client.take_id(), "orders", {}))
        assert client.wait(CreateResponse).correlation_id == 7
        client.create("orders")
        client.publish(b"x")
        assert client.confirmed(1) == [10]
        client.publish(b"y", b"z")
        assert client.confirmed(2) == [11, 12]
        scopes = {row["scope"] for row in lines(file) if row.get("kind") == "PublishConfirm"}
        assert scopes == {"3"}
        (connection,) = replay.connections
        assert connection["not_recorded"] == 1  # the second Create
        assert [record.note for record in replay.journal.select(kind="not recorded")] == ["Create"]


def test_a_batch_may_be_cut_in_another_way(tmp_path: Path) -> None:
    file = recorded(tmp_path, [b"a", b"b"], [b"c", b"d"])
    with Replay(file) as replay, StreamClient(replay.port, ids=1) as client:
        client.create("orders")
        client.publish(b"a")
        assert client.confirmed(1) == [3]
        client.publish(b"b", b"c", b"d")
        assert sorted(client.confirmed(3)) == [4, 5, 6]


def test_faults_act_on_what_is_played(tmp_path: Path) -> None:
    file = recorded(tmp_path, [b"a"], [b"b"])
    with Replay(file) as replay, StreamClient(replay.port) as client:
        replay.faults.add(drop(role="confirm", nth=1))
        client.create("orders")
        client.publish(b"a")
        replay.wait_for(kind="PublishConfirm", tap=Tap.SAID)
        client.publish(b"b")
        assert client.confirmed(1) == [4]


def test_requests_in_another_order_get_their_own_answers(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    with recording_proxy(file) as (broker, proxy):
        broker.create_stream("one")
        with StreamClient(proxy.port) as client:
            client.say(StreamStats(1, "one"), StreamStats(2, "none"))
            assert [client.wait(StreamStatsResponse).code for _ in range(2)] == [1, 2]
    with Replay(file) as replay, StreamClient(replay.port) as client:
        client.say(StreamStats(8, "none"), StreamStats(9, "one"))
        answers = {
            each.correlation_id: each.code for each in (client.wait(StreamStatsResponse) for _ in range(2))
        }
    assert answers == {8: 2, 9: 1}


def test_deliveries_follow_what_asked_for_them(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"

    def consume(port: int) -> list[int]:
        with StreamClient(port) as client:
            client.say(subscribe(4, credit=1))
            first = client.wait(Deliver)
            client.say(Credit(4, 1))
            return [first.chunk.first_offset, client.wait(Deliver).chunk.first_offset]

    with recording_proxy(file) as (broker, proxy):
        broker.create_stream("s")
        broker.publish("s", [b"a"])
        broker.publish("s", [b"b"])
        real = consume(proxy.port)
    with Replay(file) as replay:
        assert consume(replay.port) == real == [0, 1]


def test_clients_are_told_the_address_of_the_replay(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    with recording_proxy(file) as (broker, proxy), StreamClient(proxy.port) as client:
        broker.create_stream("s")
        client.say(Metadata(1, ("s",)))
        client.wait(MetadataResponse)
    with Replay(file) as replay, StreamClient(replay.port) as client:
        client.say(Metadata(1, ("s",)))
        assert [each.port for each in client.wait(MetadataResponse).brokers] == [replay.port]


def test_each_client_gets_a_connection_of_the_recording(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    with (
        Moleculer(transporter="nats") as bus,
        Proxy(bus.url, protocol="moleculer", wire="nats", record=file) as proxy,
    ):
        for subject in (b"one", b"two"):
            assert ask_nats(proxy.port, subject).endswith(b"MSG %b 1 2\r\n{}\r\nPONG\r\n" % subject)
    with Replay(file) as replay:
        assert replay.url == f"nats://127.0.0.1:{replay.port}"
        for subject in (b"one", b"two", b"two"):
            assert ask_nats(replay.port, subject).endswith(b"MSG %b 1 2\r\n{}\r\nPONG\r\n" % subject)


def ask_nats(port: int, subject: bytes) -> bytes:
    """What the server says to a client that hears its own message; with the server's INFO in front."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock:
        sock.settimeout(PATIENCE_S)
        sock.sendall(b"CONNECT {}\r\nSUB %b 1\r\nPUB %b 2\r\n{}\r\nPING\r\n" % (subject, subject))
        got = b""
        while not got.endswith(b"PONG\r\n"):
            data = sock.recv(65536)
            assert data
            got += data
    return got


def test_the_end_that_the_server_made(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    with recording_proxy(file) as (_, proxy):
        assert end_of(proxy.port) == b""
    with Replay(file) as replay:
        assert end_of(replay.port) == b""


def end_of(port: int) -> bytes:
    """What a server says to the wrong beginning; nothing: it hangs up."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock:
        sock.settimeout(PATIENCE_S)
        sock.sendall(b"\0\0\0\x08\0\x17\0\1\0\0\0\0")
        return sock.recv(100)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", ":1: expected the head of a recording"),
        ('{\n "version": 1,\n "spec": {}}\n', "a replay file of sweep or chaos is for 'fakebrokers replay'"),
        ('{"recording": 2, "protocol": "pzq", "wire": "zmq"}\n', "version 1, got 2"),
        ('{"recording": 1, "protocol": "pzq"}\n', ":1: expected the head of a recording"),
        ('{"recording": 1, "protocol": "moleculer", "wire": "nats"}\n', "at least one connection"),
        ('{"recording": 1, "protocol": "moleculer", "wire": "nats"}\n{"at": 1}\n', ":2: expected a line"),
        (
            '{"recording": 1, "protocol": "moleculer", "wire": "x"}\n'
            '{"at": 0, "connection": "c1", "what": "open"}\n',
            "has no wire 'x'",
        ),
    ],
)
def test_what_is_no_recording_is_refused_with_the_place(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text(text)
    with pytest.raises(UsageError, match=problem):
        Replay(file)


def test_a_recording_of_another_protocol_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected a recording of pzq, got one of rabbitmq-stream"):
        Replay(recorded(tmp_path, [b"a"]), protocol="pzq")


def test_a_line_that_was_cut_short_is_left_out(tmp_path: Path) -> None:
    file = recorded(tmp_path, [b"a"])
    file.write_bytes(file.read_bytes()[:-20])
    with Replay(file) as replay, StreamClient(replay.port) as client:
        client.create("orders")
        client.publish(b"a")
        assert client.confirmed(1) == [3]


def sign(at: float, what: str, kind: str, *keys: str) -> Line:
    return Line(at=at, connection="c1", what=what, kind=kind, role="heartbeat", keys=keys)  # type: ignore[arg-type]


def test_signs_of_life_do_not_go_round_in_circles() -> None:
    """A PONG of the client answers the server's PING; the PING that comes next is no answer to it."""
    lines = [
        *(sign(0.0, "heard", "NatsPing"), sign(0.01, "said", "NatsPong")),
        *(sign(1.0, "said", "NatsPing"), sign(1.01, "heard", "NatsPong")),
        *(sign(1.2, "said", "NatsPing"), sign(1.21, "heard", "NatsPong")),
    ]
    script = Script(lines)
    assert script.hear(NatsPing()) == [Due(lines[1])]
    assert script.hear(NatsPing()) == [Due(lines[1])]
    assert script.hear(NatsPong()) == []


HEAD = {"recording": 1, "protocol": "rabbitmq-stream", "wire": "stream"}
HEARD = {"at": 0, "connection": "c1", "what": "heard", "kind": "Create", "role": "request", "keys": [1]}


@pytest.mark.parametrize(
    ("head", "line", "problem"),
    [
        (HEAD, {**HEARD, "role": "bogus"}, ":2: expected a role of frames, got 'bogus'"),
        (HEAD, {**HEARD, "role": ""}, ":2: expected a role of frames, got ''"),
        (HEAD, {**HEARD, "keys": "DEEP"}, ":2: expected a line of a recording: maximum recursion depth"),
        (HEAD, {**HEARD, "what": "run"}, ":2: expected a line of a recording: Invalid enum value 'run'"),
        ({**HEAD, "wire": "DEEP"}, HEARD, ":1: expected the head of a recording"),
        ({**HEAD, "scheme": "x\nREADY y"}, HEARD, ":1: expected the head of a recording"),
        ({**HEAD, "wire": "nope"}, HEARD, "has no wire 'nope'"),
    ],
)
def test_a_recording_that_somebody_has_made_up_is_refused(
    tmp_path: Path, head: dict[str, Any], line: dict[str, Any], problem: str
) -> None:
    file = tmp_path / "made-up.jsonl"
    text = f"{json.dumps(head)}\n{json.dumps(line)}\n"
    file.write_text(text.replace('"DEEP"', "[" * 200_000 + "]" * 200_000))
    with pytest.raises(UsageError, match=re.escape(problem)):
        Replay(file)
