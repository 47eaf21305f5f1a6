"""The server class, over real sockets: start, stop, wait, look, break; sync and async."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fakebrokers.core.session import HangUp
from fakebrokers.errors import PlanError, UsageError, WaitTimeout
from fakebrokers.faults import Plan, crash, drop, hold, refuse
from fakebrokers.journal import Tap
from tests.eventually import PATIENCE_S
from tests.toy import Toy


@contextmanager
def client(toy: Toy) -> Iterator[socket.socket]:
    with socket.create_connection((toy.host, toy.port), PATIENCE_S) as sock:
        sock.settimeout(PATIENCE_S)
        yield sock


def ask(sock: socket.socket, line: bytes) -> bytes:
    sock.sendall(line + b"\n")
    return sock.recv(1000)


def test_a_conversation() -> None:
    with Toy() as toy, client(toy) as sock:
        assert toy.url == f"toy://127.0.0.1:{toy.port}"
        assert toy.urls == {}
        assert ask(sock, b"hello me") == b"welcome\n"
        assert ask(sock, b"put a x") == b"stored a\n"
        (record,) = toy.wait_for(role="confirm")
        assert (record.kind, record.keys, record.connection) == ("Stored", ("a",), "c1")
        (connection,) = toy.connections
        assert connection["name"] == "c1"
        assert connection["state"] == "open"
        assert (connection["received_bytes"], connection["sent_bytes"]) == (17, 17)
        assert connection["address"] == "{}:{}".format(*sock.getsockname())


def test_started_twice_or_not_at_all() -> None:
    toy = Toy()
    with pytest.raises(UsageError, match="does not listen: start"):
        _ = toy.port
    toy.start()
    with pytest.raises(UsageError, match="runs already, at toy://"):
        toy.start()
    toy.stop()
    toy.stop()


def test_the_port_is_taken_and_given_back() -> None:
    with Toy() as toy:
        port = toy.port
        with pytest.raises(OSError, match="in use"):
            Toy(port=port).start()
    for _ in range(3):
        with Toy(port=port) as toy, client(toy) as sock:
            assert ask(sock, b"put a") == b"stored a\n"


def test_stop_ends_all_connections() -> None:
    toy = Toy().start()
    with client(toy) as sock:
        assert ask(sock, b"put a") == b"stored a\n"
        toy.stop()
        assert sock.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((toy.host, toy.listeners[0].port))


def test_only_loopback_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for host in ("127.0.0.1", "::1", "localhost", "127.5.0.1"):
            Toy(host=host)
    with pytest.warns(UserWarning, match="all who reach this address"):
        Toy(host="0.0.0.0")


def test_ipv6() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with Toy(host="::1") as toy:
        assert toy.url == f"toy://[::1]:{toy.port}"
        with client(toy) as sock:
            assert ask(sock, b"put a") == b"stored a\n"


# errors


def test_errors_inside_the_fake_are_raised_at_the_end() -> None:
    with (
        pytest.raises(RuntimeError, match="boom") as caught,
        Toy() as toy,
        client(toy) as sock,
        pytest.raises(ConnectionResetError),
    ):
        ask(sock, b"put a boom")
    assert "on connection c1 (127.0.0.1:" in caught.value.__notes__[0]


def test_several_errors() -> None:
    with pytest.raises(BaseExceptionGroup, match="2 errors in the toy fake"), Toy() as toy:
        for _ in range(2):
            with client(toy) as sock, pytest.raises(ConnectionResetError):
                ask(sock, b"put a boom")


def test_the_tests_own_error_comes_first() -> None:
    with pytest.raises(KeyError), Toy() as toy:
        with client(toy) as sock, pytest.raises(ConnectionResetError):
            ask(sock, b"put a boom")
        raise KeyError("the test's own")


def test_an_error_in_a_new_session_is_kept() -> None:
    with Toy() as toy:
        toy.listeners[0].endpoint = toy.listeners[0].endpoint._replace(new_session=lambda _: 1 / 0)  # type: ignore[attr-defined]
        with client(toy) as sock, pytest.raises(ConnectionResetError):
            assert sock.recv(1) == b""
            raise ConnectionResetError
        with pytest.raises(ZeroDivisionError):
            toy.check()


# waiting


def test_waiting_in_another_thread() -> None:
    with Toy() as toy, client(toy) as sock:
        timer = threading.Timer(0.05, sock.sendall, [b"put a\nput b\nget a\n"])
        timer.start()
        records = toy.wait_for(kind="Stored", count=2, connection="c1", tap=Tap.SENT)
        assert [record.keys for record in records] == [("a",), ("b",)]
        timer.join()
        mark = toy.journal.last_seq
        with pytest.raises(WaitTimeout):
            toy.wait_for(kind="Stored", since=mark, timeout=0.01)


def test_waiting_in_vain_shows_the_journal() -> None:
    with Toy() as toy, client(toy) as sock:
        ask(sock, b"put abc")
        with pytest.raises(WaitTimeout, match=r"(?s)2 x confirm within 0\.05 s.*Put +key abc") as caught:
            toy.wait_for(role="confirm", count=2, timeout=0.05)
        assert isinstance(caught.value, TimeoutError)
        assert toy.call(lambda: toy.journal._watchers) == []


def test_a_condition_that_fails_is_the_tests_business() -> None:
    with Toy() as toy, client(toy) as sock:
        timer = threading.Timer(0.05, sock.sendall, [b"put a\n"])
        timer.start()
        with pytest.raises(ZeroDivisionError):
            toy.wait_for(lambda record: record.kind == "Stored" and 1 / 0 > 1)
        assert sock.recv(100) == b"stored a\n"
        timer.join()


def test_async() -> None:
    async def main() -> None:
        async with Toy() as toy:
            reader, writer = await asyncio.open_connection(toy.host, toy.port)
            waiting = asyncio.create_task(toy.wait_for_async(role="confirm"))
            await asyncio.sleep(0)  # it waits now
            writer.write(b"put a\n")
            assert await reader.readline() == b"stored a\n"
            assert len(await waiting) == 1
            with pytest.raises(WaitTimeout, match="expected 9 x confirm"):
                await toy.wait_for_async(role="confirm", count=9, timeout=0.01)
            writer.close()
            await writer.wait_closed()

    asyncio.run(main())


# faults


def test_plans_from_everywhere(tmp_path: Path) -> None:
    row = {"match": {"role": "confirm", "nth": 1}, "effect": {"type": "drop"}, "name": "x"}
    path = tmp_path / "plan.toml"
    path.write_text(
        'seed = 5\n[[faults]]\nname = "x"\nmatch = {role = "confirm", nth = 1}\neffect = {type = "drop"}'
    )
    for plan in (
        Plan(seed=5, faults=(drop(role="confirm", nth=1, name="x"),)),
        {"seed": 5, "faults": [row]},
        path,
    ):
        with Toy(faults=plan) as toy, client(toy) as sock:
            assert toy.faults.names == ("x",)
            assert ask(sock, b"put a\nput b") == b"stored b\n"
            assert toy.faults.fired("x") == 1
            assert toy.faults.plan.seed == 5
    assert Toy(faults=path, seed=9).faults.plan.seed == 9
    with pytest.raises(PlanError):
        Toy(faults={"faults": [{"match": {"kind": "Stord"}, "effect": {"type": "drop"}}]})


def test_faults_while_it_runs() -> None:
    with Toy() as toy, client(toy) as sock:
        name = toy.faults.add(hold(role="confirm"))
        sock.sendall(b"put a\n")
        toy.wait_for(kind="Stored", tap=Tap.SAID)
        toy.faults.release(name)
        assert sock.recv(100) == b"stored a\n"
        toy.faults.remove(name)
        assert toy.faults.names == ()
        assert ask(sock, b"put b") == b"stored b\n"
        toy.faults.load({"seed": 3, "faults": [{"match": {"role": "confirm"}, "effect": {"type": "hold"}}]})
        sock.sendall(b"put c\n")
        toy.wait_for(kind="Stored", tap=Tap.SAID, count=3)
        toy.faults.clear()
        assert sock.recv(100) == b"stored c\n"
        with pytest.raises(PlanError):
            toy.faults.load({"seed": 4, "faults": [{"match": {"kind": "X"}, "effect": {"type": "drop"}}]})
        assert toy.faults.plan.seed == 3


def test_after_a_reset_the_next_fault_is_the_first_again() -> None:
    with Toy() as toy:
        first = toy.faults.add(drop(role="confirm"))
        assert toy.faults.add(drop(role="confirm")) != first
        toy.reset()
        assert not toy.faults.names
        assert toy.faults.add(drop(role="confirm")) == first


def test_kill() -> None:
    with Toy() as toy, client(toy) as first, client(toy) as second:
        for sock in (first, second):
            ask(sock, b"put a")
        toy.kill("c1", HangUp.RST)
        with pytest.raises(ConnectionResetError):
            first.recv(1)
        toy.kill()
        assert second.recv(1) == b""
        toy.kill("c1")  # it has ended already: a test that races with its client need not look first
        with pytest.raises(UsageError, match=r"expected a connection that is open \(none\), got 'c3'"):
            toy.kill("c3")


def test_crash_and_restart_keep_the_port() -> None:
    with Toy() as toy:
        with client(toy) as sock:
            ask(sock, b"put a x")
            toy.crash(keep_state=True)
            with pytest.raises(ConnectionResetError):
                sock.recv(1)
        with pytest.raises(ConnectionRefusedError), client(toy):
            pass
        port = toy.port
        toy.restart()
        assert toy.port == port
        with client(toy) as sock:
            assert ask(sock, b"get a") == b"value a x\n"
        assert toy.broker.restarts == 1


def test_nobody_else_gets_the_port_meanwhile() -> None:
    with Toy() as toy:
        toy.crash()
        taken = []
        try:
            for _ in range(50):
                taken.append(socket.create_server(("127.0.0.1", 0)))
            assert toy.port not in [sock.getsockname()[1] for sock in taken]
        finally:
            for sock in taken:
                sock.close()
        toy.restart()


def test_two_reasons_to_refuse() -> None:
    with Toy() as toy, client(toy) as sock:
        toy.faults.add(refuse(kind="Put", name="a"), refuse(kind="Get", name="b"))
        ask(sock, b"put a")
        ask(sock, b"get a")
        toy.faults.release("a")
        toy.call(lambda: None)
        with pytest.raises(ConnectionRefusedError), client(toy):
            pass
        toy.faults.release("b")
        toy.wait_for(kind="listening")
        with client(toy) as other:
            assert ask(other, b"get a") == b"value a\n"


def test_a_crash_that_comes_back_by_itself() -> None:
    with Toy() as toy:
        toy.faults.add(crash(role="confirm", nth=1, scope="run"))
        with client(toy) as sock, pytest.raises(ConnectionResetError):
            ask(sock, b"put a x")
        toy.wait_for(kind="listening")
        with client(toy) as sock:
            assert ask(sock, b"get a") == b"value a x\n"


# leaving nothing behind


@pytest.mark.full
def test_ten_thousand_starts_and_stops_leave_nothing_behind() -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("this platform has no /proc")
    with Toy() as toy, client(toy) as sock:
        ask(sock, b"put a")
    before, threads = descriptors(), threading.active_count()
    began = time.process_time()
    for number in range(10_000):
        with Toy() as toy:
            if number % 100 == 0:
                with client(toy) as sock:
                    assert ask(sock, b"put a") == b"stored a\n"
    each = (time.process_time() - began) / 10_000
    port = toy.listeners[0].port
    gc.collect()
    assert descriptors() <= before
    assert threading.active_count() == threads
    socket.create_server(("127.0.0.1", port)).close()
    assert each < 0.002, f"{each * 1e3:.2f} ms of processor time for a start and a stop"


def test_a_fresh_fake_accepts_a_connection_for_a_millisecond_of_the_processor() -> None:
    """tests/benchmarks/test_start.py has it on the clock."""
    times = []
    for _ in range(200):
        began = time.process_time()
        toy = Toy().start()
        with socket.create_connection((toy.host, toy.port)):
            times.append(time.process_time() - began)
        toy.stop()
    assert sorted(times)[100] < 0.001


@pytest.mark.parametrize("where", ["Driver", "Toy._bound", "Toy._serve"])
def test_a_start_that_is_interrupted_leaves_no_descriptor(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with Toy():
        pass  # the loop thread is there
    gc.collect()
    before = sorted(os.listdir("/proc/self/fd"))
    toy = Toy(journal_dir=tmp_path)
    owner, _, name = where.rpartition(".")
    monkeypatch.setattr(Toy if owner else sys.modules["fakebrokers.core.lifetime"], name, interrupt)
    with pytest.raises(KeyboardInterrupt):
        toy.start()
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert toy.journal.sink is None
