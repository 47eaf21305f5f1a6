"""Fakes beside freezegun and time-machine: what waits goes on, and the date is real unless told otherwise."""

from __future__ import annotations

import datetime
import email.utils
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager

import freezegun
import pytest
import time_machine

from fakebrokers import Narconi, RabbitMQStream
from fakebrokers.core import clock
from fakebrokers.errors import UsageError
from fakebrokers.faults import crash, latency
from fakebrokers.pzq import listener
from tests.eventually import PATIENCE_S
from tests.toy import Toy

FROZEN = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
#: In the past of every machine that this runs on; no frozen time is between it and now.
RELEASED = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC).timestamp()


def travel() -> AbstractContextManager[object]:
    return time_machine.travel(FROZEN, tick=False)


@pytest.fixture(params=[lambda: freezegun.freeze_time(FROZEN), travel], ids=["freezegun", "time-machine"])
def frozen(request: pytest.FixtureRequest) -> Iterator[None]:
    """The test's time stands still."""
    with request.param():
        assert datetime.datetime.now(datetime.UTC) == FROZEN
        yield


def answers(toy: Toy) -> list[str]:
    """What comes until something is stored, but for the beats that a busy machine gives time for."""
    with socket.create_connection((toy.host, toy.port), PATIENCE_S) as sock, sock.makefile() as lines:
        sock.sendall(b"hello me\nput a\n")
        heard: list[str] = []
        for line in lines:
            heard.append(line.rstrip())
            if line.startswith("stored"):
                break
    return [line for line in heard if line != "beat"]


@pytest.mark.usefixtures("frozen")
def test_timers_and_the_journal_go_on() -> None:
    late = latency(0.01, role="confirm", name="late")
    with Toy(faults={"faults": [late, crash(kind="Get", restart_s=0.01)]}) as toy:
        assert answers(toy) == ["welcome", "stored a"]
        times = [record.at for record in toy.journal]
        assert times == sorted(times)
        assert 0.01 <= times[-1] < PATIENCE_S
        toy.expect(role="confirm")
        toy.check(timeout=PATIENCE_S)


@pytest.mark.usefixtures("frozen")
def test_the_date_of_the_broker_is_the_real_one() -> None:
    assert clock.wall() > RELEASED
    with Narconi() as narconi, RabbitMQStream() as stream:
        assert date_of(narconi) > RELEASED
        stream.create_stream("orders")
        stream.publish("orders", [b"tea"])
        (message,) = stream.messages("orders")
        assert message.timestamp_ms / 1000 > RELEASED


@pytest.mark.usefixtures("frozen")
def test_the_date_of_the_broker_is_that_of_the_test_where_that_is_wanted() -> None:
    with Narconi(wall_clock="test") as narconi, RabbitMQStream(wall_clock="test") as stream:
        assert date_of(narconi) == FROZEN.timestamp()
        stream.create_stream("orders")
        stream.publish("orders", [b"tea"])
        stream.call(stream.engine.shift_clock, 60.0, "")
        stream.publish("orders", [b"milk"])
        times = [message.timestamp_ms / 1000 for message in stream.messages("orders")]
        assert times == [FROZEN.timestamp(), FROZEN.timestamp() + 60]


def date_of(narconi: Narconi) -> float:
    """What the ``Date`` of an answer says, in seconds since 1970."""
    with (
        socket.create_connection((narconi.host, narconi.port), PATIENCE_S) as sock,
        sock.makefile("rb") as lines,
    ):
        sock.sendall(b"GET /v2/ HTTP/1.1\r\nHost: x\r\n\r\n")
        dates = [line for line in iter(lines.readline, b"\r\n") if line.startswith(b"Date: ")]
    return email.utils.parsedate_to_datetime(dates[0].decode()[6:].strip()).timestamp()


@pytest.mark.usefixtures("frozen")
def test_who_waits_for_a_free_port_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_FREE_WITHIN_S", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listener._wait_until_free("127.0.0.1", taken.getsockname()[1])


def test_an_expired_certificate_is_expired_whatever_date_a_test_has() -> None:
    with RabbitMQStream(tls=True) as broker, freezegun.freeze_time("2090-01-01"):
        assert broker.tls is not None
        broker.tls.show("expired")
        context = ssl.create_default_context(cafile=str(broker.tls.ca_file))
        with (
            socket.create_connection((broker.host, broker.tls_port), PATIENCE_S) as sock,
            pytest.raises(ssl.SSLCertVerificationError, match="expired"),
        ):
            context.wrap_socket(sock, server_hostname="localhost")


def test_a_fake_that_is_loaded_while_time_stands_still() -> None:
    """As in a test whose fixture is the first of all: it loads the server, and time is frozen already."""
    code = """
import freezegun, sys
with freezegun.freeze_time("2020-01-01"):
    from fakebrokers import Narconi
    from fakebrokers.faults import latency
    import socket
    with Narconi(faults={"faults": [latency(0.01, direction="out")]}) as narconi:
        with socket.create_connection((narconi.host, narconi.port), 60) as sock:
            sock.sendall(b"GET /v2/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
            print(sock.recv(1000).decode())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    (date,) = [line for line in done.stdout.splitlines() if line.startswith("Date: ")]
    assert email.utils.parsedate_to_datetime(date[6:]).timestamp() > RELEASED


def test_certificates_can_be_made_after_one_was_made_in_frozen_time() -> None:
    code = """
import freezegun
from fakebrokers.core.tls import Tls
with freezegun.freeze_time("2020-01-01"):
    Tls("localhost").close()
Tls("localhost", show="expired").close()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE_S)


def test_a_word_for_the_clock_that_there_is_not() -> None:
    with pytest.raises(UsageError, match="wall_clock"):
        Toy(wall_clock="frozen")  # type: ignore[arg-type]
