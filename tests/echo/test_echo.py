"""What a protocol gets from the registry alone: fixture, faults, plans, journal, checkers."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.rules.anomalies import check
from fakebrokers.errors import PlanError, UsageError
from fakebrokers.faults import drop, fault, inject, load_plan, rewrite
from fakebrokers.journal import RunJournal
from fakebrokers.protocol import find_protocol
from tests.echo.protocol import COUNTED, FULL, LINES, Echo, FillUp
from tests.eventually import PATIENCE_S


def talk(echo: Echo, *lines: bytes, wire: int = 0) -> bytes:
    """Say lines on one of the wires; returns what comes until the fake ends the connection, or is silent."""
    heard = b""
    with socket.create_connection(("127.0.0.1", echo.listeners[wire].port), timeout=PATIENCE_S) as client:
        for line in lines:
            client.sendall(line + b"\n" if wire == 0 else bytes([len(line)]) + line)
            heard += client.recv(1000)
    return heard


def test_the_fixture(echo: Echo) -> None:
    assert talk(echo, b"Put a,b", b"Ping") == b"Stored a,b 0,0\nPing\n"
    assert echo.broker.stored == ("a", "b")
    assert talk(echo, b"Put c", b"Ping 7", wire=1) == b"\x0aStored c 0\x06Ping 7"


def test_its_own_effect_in_a_plan(echo_factory: Callable[..., Echo], tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[[faults]]\nmatch = { role = "publish", nth = 2 }\neffect = { type = "fill-up" }\n', encoding="utf-8"
    )
    echo = echo_factory(faults=plan)
    assert talk(echo, b"Put a", b"Put b") == b"Stored a 0\nStored b 5\n"
    with pytest.raises(PlanError, match="only echo can do that"):
        load_plan(plan, "pzq")


def test_faults_on_single_messages_by_their_status(echo: Echo) -> None:
    echo.broker.room = 1
    echo.faults.add(drop(role="reject", unit="item", nth=1, name="one"))
    echo.faults.add(rewrite({"codes": [9]}, unit="item", where={"status": FULL, "key": "c"}, kind="Stored"))
    assert talk(echo, b"Put a,b,c,d") == b"Stored a 0\nStored c 9\nStored d 5\n"
    assert echo.faults.fired("one") == 1


def test_each_wire_has_its_own_ping(echo: Echo) -> None:
    echo.faults.add(inject(kind="Ping", fields={"number": 3}, on="accept", connection="c2"))
    assert talk(echo, b"Ping") == b"Ping\n"
    assert talk(echo, b"Ping 1", wire=1).startswith(b"\x06Ping 3")
    assert LINES.fields_of("Ping", None, "x") == frozenset()
    assert COUNTED.fields_of("Ping", None, "x") == {"number"}
    with pytest.raises(PlanError, match="expected one of"):
        echo.faults.add(drop(kind="Pong"))


def test_the_journal_and_the_checkers_see_the_refused_message(echo: Echo) -> None:
    echo.broker.room = 1
    run = RunJournal(None, "run", protocol="echo", contract="at-least-once")
    echo.call(lambda: setattr(echo.journal, "sink", run))
    talk(echo, b"Put a,b")
    (record,) = echo.wait_for(role="reject")
    assert [(part.role, part.status, part.indices) for part in record.parts] == [
        ("confirm", 0, (0,)),
        ("reject", FULL, (1,)),
    ]
    now = echo.now
    for number, name in enumerate("ab", 1):
        run.op(0.0, "s1", number, "publish", "invoke", key="q", value=name)
        run.op(now, "s1", number, "publish", "ok", key="q", value=name, wire_key=name)  # b was refused
    echo.call(echo.journal.flush)
    run.close()
    assert [anomaly.name for anomaly in check(run.log()) if "confirm" in anomaly.name] == ["phantom-confirm"]


def test_what_the_registry_knows() -> None:
    protocol = find_protocol("echo")
    assert (protocol.fixture, protocol.port) == ("echo", 7)
    assert protocol.wire("counted").port == 8
    with pytest.raises(UsageError, match="did you mean 'lines'"):
        protocol.wire("line")
    assert fault(FillUp(), role="publish").effects[0] == FillUp()
