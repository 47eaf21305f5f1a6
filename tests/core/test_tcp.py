"""Real sockets: segments, back pressure, ends as a client's kernel sees them."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

import pytest

from fakebrokers.errors import UsageError
from fakebrokers.faults import black_hole, coalesce, fault, fin, half_open, rst, slice_, stall, throttle
from fakebrokers.faults.effects import Inject, Rst, Truncate
from fakebrokers.journal import Tap
from tests.eventually import PATIENCE_S, QUIET_S, nothing_comes, settles, takes_at_least
from tests.onlooker import looked_at
from tests.test_server import ask, client
from tests.toy import Toy


def everything(sock: socket.socket) -> tuple[bytes, str]:
    """All bytes until the end, and how it ended."""
    got = b""
    try:
        while data := sock.recv(65536):
            got += data
    except ConnectionResetError:
        return got, "rst"
    return got, "fin"


def test_slices_are_writes_of_their_own() -> None:
    with Toy() as toy, client(toy) as sock:
        toy.faults.add(slice_(3, gap_s=0.03, role="confirm"))
        onlooker = looked_at(toy)
        with takes_at_least(0.06), sock.makefile("rb") as lines:
            sock.sendall(b"put a\n")
            assert lines.readline() == b"stored a\n"
        assert onlooker.of("handed over") == [b"sto", b"red", b" a\n"]


def test_frames_in_one_write() -> None:
    with Toy() as toy, client(toy) as sock:
        toy.faults.add(coalesce(3, within_s=PATIENCE_S, role="confirm", nth=1))
        for count, line in enumerate((b"put a\n", b"put b\n", b"put c\n"), 1):
            sock.sendall(line)
            toy.wait_for(kind="Stored", tap=Tap.SAID, count=count)
        assert sock.recv(100) == b"stored a\nstored b\nstored c\n"


@pytest.mark.parametrize("make, how", [(fin, "fin"), (rst, "rst")])
def test_ends(make: type[object], how: str) -> None:
    with Toy() as toy, client(toy) as sock:
        toy.faults.add(make(role="confirm", nth=2))  # type: ignore[call-arg]
        sock.sendall(b"put a\nput b\nput c\n")
        assert everything(sock) == (b"stored a\nstored b\n", how)


def test_half_a_frame_then_reset() -> None:
    with Toy() as toy, client(toy) as sock:
        toy.faults.add(fault(Truncate(keep=4), Rst(), role="confirm"))
        sock.sendall(b"put a\n")
        assert everything(sock) == (b"stor", "rst")


def test_garbage_before_anything_else() -> None:
    with Toy() as toy:
        toy.faults.add(fault(Inject(hex="7f" * 64), on="accept"))
        with client(toy) as sock:
            assert sock.recv(100) == b"\x7f" * 64


def test_half_open() -> None:
    with Toy() as toy, client(toy) as sock:
        toy.faults.add(half_open(role="confirm", nth=1))
        assert ask(sock, b"put a") == b"stored a\n"
        sock.sendall(b"put b\n")
        nothing_comes(sock)
        assert toy.journal.select(kind="Put")[-1].keys == ("a",)


def test_throttle() -> None:
    with Toy() as toy, client(toy) as sock:
        ask(sock, b"put k " + b"x" * 980)
        toy.faults.add(throttle(10_000, role="deliver"))
        with takes_at_least(0.04):
            sock.sendall(b"get k\n")
            got = b""
            while not got.endswith(b"\n"):
                got += sock.recv(5000)
        assert len(got) == 989


def test_a_stalled_fake_lets_the_clients_buffers_fill() -> None:
    with Toy() as toy, client(toy) as sock:
        name = toy.faults.add(stall(kind="Put", nth=1))
        assert ask(sock, b"put a") == b"stored a\n"
        sock.setblocking(False)
        sent = 0
        line = b"put k " + b"x" * 60_000 + b"\n"
        try:
            for _ in range(1000):
                sent += sock.send(line)
        except BlockingIOError:
            pass
        assert sent < 60_000_000
        received = toy.connections[0]["received_bytes"]
        assert received < 10
        toy.faults.release(name)
        toy.wait_for(kind="Stored", count=sent // len(line))


def rss() -> int:
    """Resident bytes of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_client_that_asks_and_never_reads_does_not_make_the_fake_grow() -> None:
    with Toy() as toy, client(toy) as sock:
        ask(sock, b"put k " + b"x" * 100_000)
        before = rss()
        sock.setblocking(False)
        asked = 0

        def ask_on() -> None:
            nonlocal asked
            toy.call(lambda: None)
            with contextlib.suppress(BlockingIOError):
                asked += sock.send(b"get k\n" * 1000)
            assert rss() - before < 40_000_000

        assert settles(lambda: asked, ask_on) > 60_000  # a gigabyte of answers
        answered = len(toy.journal.select(kind="Value", tap=Tap.SENT))
        assert answered < 500
        sock.setblocking(True)
        sock.settimeout(PATIENCE_S)
        got = 0
        while got < answered * 100_009 + 1_000_000:  # it goes on as soon as the client reads
            got += len(sock.recv(1 << 20))


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels answer a full accept queue in other ways")
def test_black_hole() -> None:
    with Toy() as toy, client(toy) as sock:
        name = toy.faults.add(black_hole(kind="Put"))
        ask(sock, b"put a")
        toy.wait_for(kind="black hole")
        with pytest.raises(TimeoutError):
            socket.create_connection((toy.host, toy.port), QUIET_S)
        assert ask(sock, b"get a") == b"value a\n"
        toy.faults.release(name)
        toy.wait_for(kind="listening")
        with client(toy) as other:
            assert ask(other, b"get a") == b"value a\n"


def test_a_client_that_resets_and_one_that_closes() -> None:
    import struct

    with Toy() as toy:
        with client(toy) as sock:
            ask(sock, b"put a")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        toy.wait_for(kind="closed")
        with client(toy) as sock:
            ask(sock, b"put a")
        records = toy.wait_for(kind="closed", count=2)
        assert [record.note for record in records] == ["reset by client", "closed by client"]
        assert toy.connections == []


def fails_once(action: Callable[..., Any]) -> Callable[..., Any]:
    """What raises at the first call, and from then on does what it stands in for."""
    calls = itertools.count()

    def act(*args: Any, **options: Any) -> Any:
        if not next(calls):
            raise RuntimeError("broken on purpose")
        return action(*args, **options)

    return act


@pytest.mark.parametrize(
    "where, what, note",
    [
        ("toy", "new_session", "while it accepted 127.0.0.1:"),
        ("engine", "accept", "while it accepted 127.0.0.1:"),
        ("loop", "connect_accepted_socket", "at the listener of 127.0.0.1:"),
    ],
)
def test_an_error_while_a_client_is_accepted(
    monkeypatch: pytest.MonkeyPatch, where: str, what: str, note: str
) -> None:
    toy = Toy().start()
    try:
        with client(toy) as good:
            assert ask(good, b"put a") == b"stored a\n"
            listener = toy.listeners[0]
            part = {"toy": toy, "engine": toy.engine, "loop": listener.driver.loop}[where]
            monkeypatch.setattr(part, what, fails_once(getattr(part, what)))
            listener.endpoint = toy._endpoints()[0]
            with client(toy) as refused:
                assert everything(refused)[0] == b""
            assert ask(good, b"put b") == b"stored b\n"
            with client(toy) as other:
                assert ask(other, b"get b") == b"value b\n"
        with pytest.raises(RuntimeError, match="on purpose") as caught:
            toy.check()
        assert caught.value.__notes__[0].startswith(f"in the fake, {note}")
    finally:
        toy.stop()


def test_an_error_at_the_end_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client whose step it was is served, too."""
    toy = Toy().start()
    try:
        with client(toy) as good:
            assert ask(good, b"put a") == b"stored a\n"
            monkeypatch.setattr(toy.journal, "flush", fails_once(toy.journal.flush))
            assert ask(good, b"put b") == b"stored b\n"
            assert ask(good, b"put c") == b"stored c\n"
        with pytest.raises(RuntimeError, match="on purpose") as caught:
            toy.check()
        assert caught.value.__notes__ == ["in the fake, at the end of a step"]
    finally:
        toy.stop()


def test_a_port_in_use_is_named() -> None:
    with Toy() as toy, pytest.raises(OSError, match=rf"Address already in use: '127\.0\.0\.1:{toy.port}'$"):
        Toy(port=toy.port).start()


def test_who_holds_a_connection_whose_begin_the_journal_has_forgotten() -> None:
    with Toy(journal_limit=1) as toy, client(toy) as sock:
        assert ask(sock, b"put a") == b"stored a\n"
        assert not toy.journal.select(kind="accepted")
        assert toy.client_holds("c1") is (True if sys.platform == "linux" else None)
        toy.kill("c1")
        assert toy.client_holds("c1") is None
        with pytest.raises(UsageError, match="c2"):
            toy.client_holds("c2")
