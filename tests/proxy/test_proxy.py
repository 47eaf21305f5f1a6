"""The byte proxy in front of a fake: passes everything on, but for what faults do to it."""

from __future__ import annotations

import asyncio
import random
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import zmq

from fakebrokers.errors import UsageError
from fakebrokers.faults import (
    Fault,
    black_hole,
    coalesce,
    corrupt,
    fault,
    half_open,
    latency,
    refuse,
    silent,
    slice_,
    stall,
    throttle,
)
from fakebrokers.faults.effects import Fin, Inject, Rst, Silent, Truncate
from fakebrokers.journal import Tap
from fakebrokers.proxy import Proxy
from fakebrokers.pzq.server import PZQ
from tests.eventually import PATIENCE_S, QUIET_S, nothing_comes, settles, takes_at_least
from tests.toy import Toy


@contextmanager
def through(*faults: Fault, seed: int = 0) -> Iterator[tuple[Toy, Proxy, socket.socket]]:
    with Toy() as toy, Proxy(toy.url, seed=seed) as proxy:
        proxy.faults.add(*faults)
        with socket.create_connection((proxy.host, proxy.port), PATIENCE_S) as sock:
            sock.settimeout(PATIENCE_S)
            yield toy, proxy, sock


def read(sock: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size and (data := sock.recv(size - len(got))):
        got += data
    return got


def rest(sock: socket.socket) -> tuple[bytes, str]:
    got = b""
    try:
        while data := sock.recv(65536):
            got += data
    except ConnectionResetError:
        return got, "rst"
    return got, "fin"


def test_bytes_both_ways() -> None:
    with through() as (toy, proxy, sock):
        sock.sendall(b"hello me\nput a x\nget a\nbye\n")
        assert rest(sock) == (b"welcome\nstored a\nvalue a x\nbye\n", "fin")
        assert toy.broker.values == {"a": "x"}
        sent = proxy.journal.select(kind="ServerBytes")
        assert sum(record.size for record in sent) == 31
        assert proxy.journal.select(kind="half-closed", connection="c1")  # the server's end
        sock.close()
        proxy.wait_for(kind="closed")


def test_the_clients_end_reaches_the_server() -> None:
    with through() as (toy, _, sock):
        sock.sendall(b"put a x\n")
        sock.close()
        toy.wait_for(kind="closed")
        assert toy.broker.values == {"a": "x"}


def test_the_servers_end_reaches_the_client() -> None:
    with through() as (toy, _, sock):
        sock.sendall(b"put a x\n")
        assert read(sock, 9) == b"stored a\n"
        toy.kill(how="rst")
        assert rest(sock) == (b"", "rst")


def test_no_server() -> None:
    with Toy() as toy:
        address = toy.url
    with Proxy(address) as proxy, socket.create_connection((proxy.host, proxy.port), PATIENCE_S) as sock:
        sock.settimeout(PATIENCE_S)
        assert sock.recv(1) == b""
        proxy.wait_for(kind="no server")


def test_a_server_whose_name_can_be_none() -> None:
    with Proxy("a..b:80") as proxy, socket.create_connection((proxy.host, proxy.port), PATIENCE_S) as sock:
        assert rest(sock) == (b"", "fin")
        assert proxy.wait_for(kind="no server")


def test_a_client_that_has_gone_when_the_servers_refusal_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = asyncio.Event()

    async def refuse_late(*_: object) -> None:
        await gone.wait()
        raise ConnectionRefusedError("late")

    with Proxy("127.0.0.1:1") as proxy:
        monkeypatch.setattr(proxy.listeners[0].driver.loop, "create_connection", refuse_late)
        with socket.create_connection((proxy.host, proxy.port), PATIENCE_S):
            proxy.wait_for(kind="accepted")
            proxy.kill(how="rst")
            proxy.wait_for(kind="closed")
        proxy.call(gone.set)
        proxy.wait_for(kind="no server")
        assert proxy.engine.errors == []


def test_addresses() -> None:
    for bad in ("", "nowhere", "host:", ":1", "tcp://host"):
        with pytest.raises(UsageError, match="host:port"):
            Proxy(bad)
    with Proxy("[::1]:99") as proxy:
        assert proxy.address == f"127.0.0.1:{proxy.port}"


def test_a_megabyte_in_random_pieces() -> None:
    """Whatever the sizes and the faults that change no byte: all arrives, in order."""
    chance = random.Random(1)
    body = chance.randbytes(1_000_000).replace(b"\n", b"x").replace(b" ", b"x")
    body = bytes(byte & 0x7F or 1 for byte in body).replace(b"\n", b"x").replace(b" ", b"x").rstrip()
    plan = [
        slice_(up_to=1500, gap_s=0, name="slices"),
        latency(0.001, jitter=0.001, direction="in", name="late"),
        coalesce(within_s=0.002, name="together"),
    ]
    with through(*plan, seed=3) as (_, _, sock):

        def write() -> None:
            data, at = b"put k " + body + b"\nget k\n", 0
            while at < len(data):
                size = chance.randrange(1, 20_000)
                sock.sendall(data[at : at + size])
                at += size

        writer = threading.Thread(target=write)
        writer.start()
        expected = b"stored k\nvalue k " + body + b"\n"
        assert read(sock, len(expected)) == expected
        writer.join()


# effects that the NET scenarios use


def test_one_byte_at_a_time() -> None:
    with through(slice_(1, gap_s=0.001, gap_bytes=1000)) as (_, _, sock), takes_at_least(0.008):
        sock.sendall(b"put a\n")
        assert read(sock, 9) == b"stored a\n"


@pytest.mark.parametrize("k", [1, 5, 9, 12])
def test_cut_rst_and_fin_at_byte_k(k: int) -> None:
    answer = b"stored a\nvalue a x\n"
    with through(slice_(at=k, of="stream", byte=k, gap_s=0.03)) as (_, _, sock):
        sock.sendall(b"put a x\nget a\n")
        assert sock.recv(k) == answer[:k]
        assert read(sock, len(answer) - k) == answer[k:]
    for end in (Rst(), Fin()):
        kind = str(end.__struct_config__.tag)
        with through(fault(Truncate(keep=k, of="stream"), end, direction="out", byte=k)) as (_, _, sock):
            sock.sendall(b"put a x\nget a\n")
            assert rest(sock) == (answer[:k], kind)


def test_corrupt_at_an_offset_each_way() -> None:
    with through(corrupt(at=7, of="stream", xor=3, direction="out", byte=7)) as (_, _, sock):
        sock.sendall(b"put a\n")
        assert read(sock, 9) == b"stored b\n"
    with through(corrupt(at=4, of="stream", xor=3, direction="in", byte=4)) as (_, _, sock):
        sock.sendall(b"put a\n")
        assert read(sock, 9) == b"stored b\n"


def test_three_pieces_in_one_write() -> None:
    with through(coalesce(3, within_s=PATIENCE_S, direction="out")) as (_, proxy, sock):
        for count, line in enumerate((b"put a\n", b"put b\n", b"put c\n"), 1):
            sock.sendall(line)
            proxy.wait_for(kind="ServerBytes", tap=Tap.SAID, count=count)
        assert sock.recv(100) == b"stored a\nstored b\nstored c\n"


def test_latency_each_way() -> None:
    with through(latency(0.05)) as (_, _, sock), takes_at_least(0.1):
        sock.sendall(b"put a\n")
        assert read(sock, 9) == b"stored a\n"


def test_throttle_each_way() -> None:
    with through(throttle(20_000)) as (_, _, sock), takes_at_least(0.18):
        sock.sendall(b"put k " + b"x" * 1994 + b"\nget k\n")
        read(sock, 9 + 2003)


def test_garbage_for_the_first_connection_only() -> None:
    plan = fault(Inject(hex="7f00"), Silent(), on="accept", nth=1, scope="run")
    with through(plan) as (_, proxy, sock):
        sock.sendall(b"put a\n")
        assert read(sock, 2) == b"\x7f\x00"
        with socket.create_connection((proxy.host, proxy.port), PATIENCE_S) as second:
            second.sendall(b"put a\n")
            assert read(second, 9) == b"stored a\n"
        nothing_comes(sock)


def test_garbage_then_fin_after_a_while() -> None:
    plan = fault(Inject(hex="15030300020228"), Silent(), Fin(after_s=0.05), on="accept")
    with through(plan) as (_, _, sock):
        assert rest(sock) == (bytes.fromhex("15030300020228"), "fin")


def test_silence_and_half_open() -> None:
    for plan in (silent(direction="in", nth=1), half_open(direction="in", nth=1)):
        with through(plan) as (toy, _, sock):
            sock.sendall(b"put a\n")
            toy.wait_for(kind="Put")
            nothing_comes(sock)


def test_a_stalled_proxy_reads_no_more() -> None:
    with through(stall(on="ready", name="stall")) as (toy, proxy, sock):
        proxy.wait_for(kind="fault")
        sock.setblocking(False)
        sent = 0
        try:
            while sent < 100_000_000:
                sent += sock.send(b"put k " + b"x" * 50_000 + b"\n")
        except BlockingIOError:
            pass
        assert sent < 50_000_000
        assert not toy.journal.select(kind="Put")
        proxy.faults.release("stall")
        toy.wait_for(kind="Put")


def test_back_pressure_reaches_the_server() -> None:
    with through() as (toy, _, sock):
        sock.sendall(b"put k " + b"x" * 100_000 + b"\n")
        assert read(sock, 9) == b"stored k\n"
        sock.sendall(b"get k\n" * 1000)
        answers = settles(
            lambda: len(toy.journal.select(kind="Value", tap=Tap.SENT)), lambda: toy.call(lambda: None)
        )
        assert 0 < answers < 500
        left = 1000 * 100_009
        while left and (data := sock.recv(1 << 20)):
            left -= len(data)
        assert left == 0


def test_refuse_and_black_hole() -> None:
    with through(refuse(0.1, on="ready")) as (_, proxy, _):
        proxy.wait_for(kind="refusing")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((proxy.host, proxy.port), PATIENCE_S)
        proxy.wait_for(kind="listening")
        socket.create_connection((proxy.host, proxy.port), PATIENCE_S).close()
    if sys.platform == "linux":
        with through(black_hole(on="ready")) as (_, proxy, _):
            proxy.wait_for(kind="black hole")
            with pytest.raises(TimeoutError):
                socket.create_connection((proxy.host, proxy.port), QUIET_S)


def test_same_seed_same_cuts() -> None:
    def cuts(seed: int) -> list[int]:
        with through(slice_(up_to=4, gap_s=0), seed=seed) as (_, proxy, sock):
            sock.sendall(b"get " + b"k" * 100 + b"\n")
            assert len(read(sock, 107)) == 107
            rule = proxy.engine.injector.rules[0]
            return [rule.fired, *(rule.state("c1").random.randrange(1000) for _ in range(3))]

    assert cuts(1) == cuts(1) != cuts(2)


def test_in_front_of_a_wire_that_a_library_owns() -> None:
    context = zmq.Context()
    try:
        with PZQ() as pzq, Proxy(pzq.receive_url) as proxy:
            proxy.faults.add(slice_(1, gap_s=0))
            producer = context.socket(zmq.DEALER)
            producer.linger, producer.rcvtimeo = 0, int(PATIENCE_S * 1000)
            producer.connect(proxy.url)
            producer.send_multipart([b"id", b"", b"body"])
            assert producer.recv_multipart() == [b"id", b"1", b""]
            proxy.faults.clear()
            proxy.kill(how="rst")
            proxy.wait_for(kind="accepted", count=2)  # libzmq reconnects by itself
            producer.send_multipart([b"id2", b"", b"body"])
            assert producer.recv_multipart() == [b"id2", b"1", b""]
    finally:
        context.destroy(linger=0)


def test_several_servers_behind_one_proxy() -> None:
    with Toy() as one, Toy() as two, Proxy({"one": one.url, "two": two.url}) as proxy:
        assert proxy.where == proxy.urls
        proxy.faults.add(corrupt(at=7, of="stream", xor=3, direction="out", byte=7, connection="c2"))
        for url, answer in zip(proxy.urls.values(), (b"stored a\n", b"stored b\n"), strict=True):
            host, _, port = url.rpartition("//")[2].rpartition(":")
            with socket.create_connection((host, int(port)), PATIENCE_S) as sock:
                sock.sendall(b"put a x\n")
                assert read(sock, 9) == answer
        assert one.broker.values == two.broker.values == {"a": "x"}
        names = {record.connection: record.note for record in proxy.journal.select(kind="upstream")}
        assert names == {"c1": "one", "c2": "two"}


def test_stop_while_connecting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        upstream = f"127.0.0.1:{server.getsockname()[1]}"
        for _ in range(20):
            with Proxy(upstream) as proxy:
                socket.create_connection((proxy.host, proxy.port), PATIENCE_S).close()
            assert not proxy.engine.errors
