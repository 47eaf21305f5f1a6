"""The control API over real HTTP: brokers, faults, connections, waiting, the journal."""

from __future__ import annotations

import json
import socket
import threading
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from http.client import IncompleteRead
from typing import Any

import pytest

from fakebrokers.control import journal
from fakebrokers.control.api import ControlApi
from fakebrokers.control.brokers import Brokers
from fakebrokers.control.journal import line_of
from fakebrokers.journal import Record
from tests.eventually import PATIENCE_S, eventually, nothing_comes
from tests.marked import PASSWORD
from tests.proxy.control import Api

NARCONI = "/brokers/narconi"


def start(control: Api, protocol: str = "narconi", **options: Any) -> dict[str, Any]:
    status, row, _ = control("POST", "/brokers", {"protocol": protocol, "options": options})
    assert status == 201, row
    assert isinstance(row, dict)
    return row


def connect(row: dict[str, Any]) -> socket.socket:
    return socket.create_connection((row["host"], row["port"]), PATIENCE_S)


REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def say(client: socket.socket, request: bytes = REQUEST) -> bytes:
    client.sendall(request)
    return client.recv(10_000)


# brokers


def test_brokers_come_and_go(control: Api) -> None:
    assert control("GET", "/brokers")[:2] == (200, [])
    first, second = start(control), start(control)
    assert (first["name"], second["name"]) == ("narconi", "narconi-2")
    assert first["port"] != second["port"]
    status, named, _ = control("POST", "/brokers", {"protocol": "pzq", "name": "queue"})
    assert (status, named["name"], sorted(named["urls"])) == (201, "queue", ["monitor", "receive", "send"])
    assert [row["name"] for row in control("GET", "/brokers")[1]] == ["narconi", "narconi-2", "queue"]
    assert control("DELETE", "/brokers/narconi-2")[0] == 204
    with pytest.raises(ConnectionRefusedError):
        connect(second)
    connect(first).close()
    assert control("GET", "/brokers/narconi-2")[0] == 404


def test_a_broker_gets_its_options(control: Api, brokers: Brokers) -> None:
    plan = {"seed": 5, "faults": [{"name": "n", "match": {"on": "accept"}, "effect": {"type": "fin"}}]}
    row = start(control, "rabbitmq-stream", nodes=3, profile="3.10", faults=plan, users=[f"bob:{PASSWORD}"])
    assert sorted(row["urls"]) == ["node2", "node3"] and row["profile"] == "3.10"
    server: Any = brokers.find("rabbitmq-stream")
    assert server.broker.access.users["bob"].password == PASSWORD
    assert control("GET", "/brokers/rabbitmq-stream/faults")[1]["seed"] == 5
    with connect(row) as client:
        assert client.recv(1) == b""


@pytest.mark.parametrize(
    ("body", "status", "path", "problem"),
    [
        ({"protocol": "rabitmq"}, 400, "body.protocol", "did you mean 'rabbitmq-stream'"),
        ({}, 400, "body.protocol", "expected text, got nothing"),
        ({"protocol": "pzq", "nme": "x"}, 400, "body.nme", "did you mean 'name'?"),
        ({"protocol": "pzq", "options": {"nodes": 2}}, 400, "body.options.nodes", "expected one of port, "),
        ({"protocol": "blazingmq", "options": {"nodes": 0}}, 400, "body.options.nodes", "int >= 1: 0"),
        (
            {"protocol": "blazingmq", "options": {"nodes": "2"}},
            400,
            "body.options.nodes",
            "expected int, got str: '2'",
        ),
        ({"protocol": "pzq", "options": {"profile": "9"}}, 422, "body.options", "no profile '9'"),
        (
            {"protocol": "pzq", "options": {"faults": {"faults": [{"effect": {"type": "dorp"}}]}}},
            400,
            "body.options.faults.faults[0].effect.type",
            "expected one of",
        ),
        (
            {"protocol": "blazingmq", "options": {"domains": {"d": {"mode": "fan"}}}},
            400,
            "body.options.domains[...].mode",
            "'fan'",
        ),
    ],
)
def test_wrong_options_are_explained(control: Api, body: Any, status: int, path: str, problem: str) -> None:
    got, answer, _ = control("POST", "/brokers", body)
    assert (got, answer["status"], answer["path"]) == (status, status, path)
    assert problem in answer["problem"]
    assert control("GET", "/brokers")[1] == []


def test_a_port_that_is_taken(control: Api) -> None:
    port = start(control)["port"]
    status, answer, _ = control("POST", "/brokers", {"protocol": "narconi", "options": {"port": port}})
    assert (status, answer["path"]) == (409, "body.options.port")
    assert control("POST", "/brokers", {"protocol": "pzq", "name": "narconi"})[0] == 409


def test_web_pages_are_refused(api: ControlApi, control: Api) -> None:
    assert control("GET", "/brokers", None, Origin="http://evil.example")[0] == 403
    assert control("GET", "/brokers", None, Host="evil.example")[0] == 403
    assert api.url.startswith("http://127.0.0.1:")


# faults


def test_a_fault_is_added_counted_and_removed(control: Api) -> None:
    row = start(control)
    lost = {"name": "lose", "match": {"direction": "in", "nth": 2}, "effect": {"type": "rst"}}
    assert control("POST", f"{NARCONI}/faults", lost)[:2] == (201, {"names": ["lose"]})
    with connect(row) as client:
        assert say(client).startswith(b"HTTP/1.1 ")
        assert control("GET", f"{NARCONI}/faults/lose")[1] == {
            "name": "lose",
            "seen": 1,
            "fired": 0,
            "fault": lost,
        }
        with pytest.raises(ConnectionResetError):
            say(client)
    fault = control("GET", f"{NARCONI}/faults")[1]["faults"][0]
    assert (fault["seen"], fault["fired"]) == (2, 1)
    assert control("DELETE", f"{NARCONI}/faults/lose")[0] == 204
    assert control("DELETE", f"{NARCONI}/faults/lose")[0] == 404
    assert control("GET", f"{NARCONI}/faults")[1]["faults"] == []


def test_a_whole_plan(control: Api) -> None:
    start(control)
    plan = {
        "seed": 9,
        "faults": [{"effect": {"type": "drop"}}, {"effect": {"type": "latency", "seconds": 1}}],
    }
    assert control("POST", f"{NARCONI}/faults", plan)[1] == {"names": ["fault 1", "fault 2"]}
    answer = control("GET", f"{NARCONI}/faults")[1]
    assert (answer["seed"], answer["unfired"]) == (9, ["fault 1", "fault 2"])
    assert control("DELETE", f"{NARCONI}/faults")[0] == 204
    assert control("GET", f"{NARCONI}/faults")[1]["faults"] == []


def test_a_plan_that_makes_no_sense_changes_nothing(control: Api) -> None:
    start(control)
    plan = {"faults": [{"effect": {"type": "drop"}}, {"match": {"nth": 0}, "effect": {"type": "drop"}}]}
    status, answer, _ = control("POST", f"{NARCONI}/faults", plan)
    assert (status, answer["path"]) == (400, "body.faults[1].match.nth")
    assert answer["problem"] == "expected a count from 1, got 0"
    status, answer, _ = control(
        "POST", f"{NARCONI}/faults", {"match": {"rol": "confirm"}, "effect": {"type": "drop"}}
    )
    assert (status, answer["path"]) == (400, "body.match.rol") and "did you mean 'role'" in answer["problem"]
    assert control("GET", f"{NARCONI}/faults")[1]["faults"] == []


def test_hold_and_release(control: Api) -> None:
    row = start(control)
    assert control("POST", f"{NARCONI}/hold", {"match": {"direction": "out"}, "name": "later"})[0] == 201
    with connect(row) as client:
        client.sendall(REQUEST)
        nothing_comes(client)
        assert control("POST", f"{NARCONI}/faults/later/release", {})[0] == 204
        assert client.recv(100).startswith(b"HTTP/1.1 ")
    assert (
        control("POST", f"{NARCONI}/hold", {"match": {"nth": 0}})[1]["problem"]
        == "expected a count from 1, got 0"
    )


# connections, crash, reset


@pytest.mark.parametrize("how", ["fin", "rst"])
def test_connections_are_listed_and_killed(control: Api, how: str) -> None:
    row = start(control)
    with connect(row) as client:
        say(client)
        (listed,) = control("GET", f"{NARCONI}/connections")[1]
        assert listed["name"] == "c1" and listed["received_bytes"] > 0
        assert control("GET", f"{NARCONI}/connections/c1")[1]["address"] == listed["address"]
        assert control("DELETE", f"{NARCONI}/connections/c1?how={how}")[0] == 204
        if how == "fin":
            assert client.recv(1) == b""
        else:
            with pytest.raises(ConnectionResetError):
                client.recv(1)
    assert control("GET", f"{NARCONI}/connections")[1] == []
    assert control("DELETE", f"{NARCONI}/connections/c7")[0] == 404
    assert control("DELETE", f"{NARCONI}/connections/c1?how=x")[1]["path"] == "query.how"


def test_crash_and_restart(control: Api) -> None:
    row = start(control)
    message = {"project": "gold", "queue": "orders", "payload": "tea"}
    assert control("POST", f"{NARCONI}/put", message)[0] == 204
    assert control("POST", f"{NARCONI}/crash", {"keep_state": True})[0] == 204
    with pytest.raises(ConnectionRefusedError):
        connect(row)
    assert control("POST", f"{NARCONI}/restart")[0] == 204
    connect(row).close()
    assert control("GET", f"{NARCONI}/queues")[1] == ["gold_orders"]
    control("POST", f"{NARCONI}/crash", {"keep_state": False})
    assert control("GET", f"{NARCONI}/queues")[1] == []


def test_refuse_and_accept(control: Api) -> None:
    row = start(control)
    assert control("POST", f"{NARCONI}/refuse", {})[0] == 204
    with pytest.raises(ConnectionRefusedError):
        connect(row)
    assert control("POST", f"{NARCONI}/accept", {})[0] == 204
    connect(row).close()
    assert control("POST", f"{NARCONI}/refuse", {"for_s": -1})[1]["path"] == "body.for_s"


def test_reset_is_a_fresh_start(control: Api) -> None:
    row = start(control)
    control("POST", f"{NARCONI}/ensure", {"project": "gold", "queue": "orders"})
    control("POST", f"{NARCONI}/faults", {"effect": {"type": "drop"}})
    control("POST", f"{NARCONI}/shift_clock", {"seconds": 3600})
    with connect(row) as client:
        control("POST", f"{NARCONI}/wait_for", {"kind": "accepted"})
        control("POST", f"{NARCONI}/refuse", {})
        assert control("POST", f"{NARCONI}/reset", {})[0] == 204
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    assert control("GET", f"{NARCONI}/queues")[1] == []
    assert control("GET", f"{NARCONI}/faults")[1] == {"seed": 0, "faults": [], "unfired": []}
    assert control("GET", f"{NARCONI}/journal")[1] is None
    with connect(row) as client:
        assert say(client).startswith(b"HTTP/1.1 ")
    assert control("POST", f"{NARCONI}/faults", {"effect": {"type": "drop"}})[1] == {"names": ["fault 1"]}


# waiting, and the journal


def test_wait_for(control: Api) -> None:
    row = start(control)
    answers: list[Any] = []

    def wait() -> None:
        answers.append(
            control("POST", f"{NARCONI}/wait_for", {"kind": "accepted", "count": 2, "timeout": PATIENCE_S})
        )

    waiting = threading.Thread(target=wait)
    waiting.start()
    with connect(row), connect(row):
        waiting.join(PATIENCE_S)
    ((status, records, _),) = answers
    assert (status, [record["connection"] for record in records]) == (200, ["c1", "c2"])
    since = records[-1]["seq"]
    status, answer, _ = control(
        "POST", f"{NARCONI}/wait_for", {"kind": "accepted", "since": since, "timeout": 0.05}
    )
    assert (status, answer["problem"]) == (408, "expected 1 x accepted within 0.05 s")
    assert any("accepted" in line for line in answer["journal"])


def lines(url: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        return [json.loads(line) for line in answer]


def test_the_journal_as_json_lines(api: ControlApi, control: Api) -> None:
    row = start(control)
    for _ in range(2):
        with connect(row) as client:
            say(client)
    control("POST", f"{NARCONI}/wait_for", {"kind": "closed", "count": 2})
    journal = f"{api.url}{NARCONI}/journal"
    records = lines(journal)
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1))
    asked = next(record for record in records if record["tap"] == "in")
    assert (asked["connection"], asked["frame"]["method"]) == ("c1", "GET")
    assert asked["kind"] in asked["text"]
    assert {record["connection"] for record in lines(f"{journal}?connection=c2")} == {"c2"}
    assert [record["kind"] for record in lines(f"{journal}?kind=accepted")] == ["accepted", "accepted"]
    assert {record["role"] for record in lines(f"{journal}?role={asked['role']}")} == {asked["role"]}
    assert lines(f"{journal}?since={records[-2]['seq']}") == records[-1:]
    assert lines(f"{journal}?limit=2") == records[-2:]
    assert control("GET", f"{NARCONI}/journal?tap=up")[1]["path"] == "query.tap"
    assert control("GET", f"{NARCONI}/journal?since=-1")[1]["path"] == "query.since"


def test_the_journal_goes_on(api: ControlApi, control: Api) -> None:
    row = start(control)
    with urllib.request.urlopen(
        f"{api.url}{NARCONI}/journal?follow=1&kind=accepted", timeout=PATIENCE_S
    ) as answer:
        for number in (1, 2):
            connect(row).close()
            assert json.loads(answer.readline())["connection"] == f"c{number}"
        assert control("DELETE", NARCONI)[0] == 204
        assert answer.read() == b""


def test_the_journal_goes_on_behind_a_record_that_is_still_to_come(api: ControlApi, control: Api) -> None:
    row = start(control)
    query = "follow=1&kind=accepted&since=6"  # each connection makes two records
    with urllib.request.urlopen(f"{api.url}{NARCONI}/journal?{query}", timeout=PATIENCE_S) as answer:
        for number in range(1, 5):
            connect(row).close()
            control("POST", f"{NARCONI}/wait_for", {"kind": "closed", "count": number})
        record = json.loads(answer.readline())
    assert (record["connection"], record["seq"]) == ("c4", 7)


def test_followers_cost_whoever_publishes_nothing(
    api: ControlApi, control: Api, brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing happens for them when a record is written, and each record becomes a line once."""
    made: list[int] = []

    def counted(record: Record) -> bytes:
        made.append(record.seq)
        return line_of(record)

    monkeypatch.setattr(journal, "line_of", counted)
    row = start(control)
    url = f"{api.url}{NARCONI}/journal?follow=1&since=0"
    with ExitStack() as stack:
        streams = [stack.enter_context(urllib.request.urlopen(url, timeout=PATIENCE_S)) for _ in range(20)]
        lone = stack.enter_context(urllib.request.urlopen(f"{url}&kind=closed", timeout=PATIENCE_S))
        made.clear()
        watched = brokers.find("narconi").journal
        began = watched.last_seq
        for _ in range(10):
            connect(row).close()
        control("POST", f"{NARCONI}/wait_for", {"kind": "closed", "count": 10, "since": began})
        assert watched._watchers == []
        new = list(range(began + 1, began + 21))
        for each in streams:
            assert [json.loads(each.readline())["seq"] for _ in range(20)] == list(
                range(began + 1, began + 21)
            )
        assert [json.loads(lone.readline())["kind"] for _ in range(10)] == ["closed"] * 10
        assert sorted(made) == new
    eventually(lambda: watched not in journal._feeds)  # whoever listened has gone


def test_stopping_the_api_cuts_its_streams(brokers: Brokers) -> None:
    with ControlApi(brokers) as api:
        brokers.add("narconi", "narconi", {})
        answer = urllib.request.urlopen(f"{api.url}{NARCONI}/journal?follow=1", timeout=PATIENCE_S)
    with answer, pytest.raises(IncompleteRead):
        answer.read()


# operations


@pytest.mark.parametrize(
    ("path", "body", "where", "problem"),
    [
        ("put", {"project": "a", "queue": "b"}, "body.payload", "expected a body, got nothing"),
        ("put", {"project": 1, "queue": "b", "payload": "x"}, "body.project", "expected str, got int: 1"),
        (
            "put",
            {"project": "a", "queue": "b", "payload": {"base64": "!"}},
            "body.payload",
            "expected base64",
        ),
        ("put", [], "body", "expected object, got array: []"),
        ("put", b"{", "body", "expected JSON"),
        ("put", b"[" * 100_000, "body", "nested too deep"),
        ("put", b"\xff", "body", "expected JSON"),
        ("put", b'{"project": 99999999999999999999999}', "body.project", "at most 64 bits"),
        ("ptu", {}, "/brokers/narconi/ptu", "expected an operation of narconi"),
    ],
)
def test_wrong_arguments_are_explained(control: Api, path: str, body: Any, where: str, problem: str) -> None:
    start(control)
    status, answer, _ = control("POST", f"{NARCONI}/{path}", body)
    assert status == answer["status"] == (404 if path == "ptu" else 400)
    assert answer["path"] == where and problem in answer["problem"]


def test_what_the_fake_cannot_do_is_422(control: Api) -> None:
    start(control)
    status, answer, _ = control("GET", f"{NARCONI}/messages?project=a&queue=b")
    assert (status, answer["problem"]) == (422, "no queue 'a_b'; there are: none")
    assert control("GET", f"{NARCONI}/put")[0] == 405
    assert control("PUT", NARCONI)[1]["problem"] == "expected DELETE or GET, got PUT"


def test_bodies_of_any_bytes(control: Api) -> None:
    start(control)
    where = {"project": "a", "queue": "b"}
    for payload in ("tea", {"base64": "AP8="}, {"base64": "dGVh"}):
        assert control("POST", f"{NARCONI}/put", {**where, "payload": payload})[0] == 204
    rows = control("GET", f"{NARCONI}/messages?project=a&queue=b")[1]
    assert [row["payload"] for row in rows] == ["tea", {"base64": "AP8="}, "tea"]


def test_a_defect_is_told_as_such(
    control: Api, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fakebrokers.control import routes

    def broken(*_: Any) -> Callable[..., Any]:
        raise ZeroDivisionError("inside")

    start(control)
    monkeypatch.setattr(routes, "carry_out", broken)
    status, answer, _ = control("GET", f"{NARCONI}/queues")
    assert status == 500 and "please report it: ZeroDivisionError" in answer["problem"]
    assert "ZeroDivisionError: inside" in capsys.readouterr().err
