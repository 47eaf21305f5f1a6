"""The three real sockets, with pyzmq clients on loopback."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from fakebrokers.errors import UsageError
from fakebrokers.faults.build import crash, fault, slice_
from fakebrokers.pzq.faults import ChangeIdentity
from fakebrokers.pzq.frames import ProduceAck
from fakebrokers.pzq.server import PZQ, StoredMessage
from tests.eventually import PATIENCE_S, QUIET_S, eventually, settles

Connect = Callable[..., Any]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Makes client sockets: `connect(zmq.DEALER, url)`."""
    context = zmq.Context()

    def make(kind: int, url: str, **options: Any) -> Any:
        socket = context.socket(kind)
        socket.linger, socket.rcvtimeo, socket.reconnect_ivl = 0, int(PATIENCE_S * 1000), 20
        for name, value in options.items():
            setattr(socket, name, value)
        socket.connect(url)
        sockets.append(socket)
        return socket

    sockets: list[Any] = []
    yield make
    for each in sockets:
        each.close()
    context.term()


def silent(socket: Any) -> bool:
    """Nothing is there to be received, and nothing comes for a moment."""
    return not socket.poll(QUIET_S * 1000)


def produce(producer: Any, *bodies: bytes) -> None:
    for body in bodies:
        producer.send_multipart([b"id", b"", body])
        assert producer.recv_multipart() == [b"id", b"1", b""]


def resend(producer: Any, body: bytes) -> None:
    """Send until it is acknowledged: what was on its way when a connection ended is lost."""

    def is_acknowledged() -> bool:
        producer.send_multipart([b"id", b"", body])
        return not silent(producer) and producer.recv_multipart() == [b"id", b"1", b""]

    eventually(is_acknowledged)


def test_one_message_through(connect: Connect) -> None:
    with PZQ() as pzq:
        producer, consumer = connect(zmq.DEALER, pzq.url), connect(zmq.ROUTER, pzq.send_url)
        before = time.time()
        produce(producer, b"hello")
        assert [m.body for m in pzq.messages()] == [(b"hello",)]
        routing, key, sent, timeout, empty, body = consumer.recv_multipart()
        assert (timeout, empty, body) == (b"5000000", b"", b"hello")
        assert int(before * 1e6) <= int(sent) <= time.time() * 1e6
        monitor = connect(zmq.REQ, pzq.monitor_url)
        monitor.send(b"MONITOR")
        assert monitor.recv().startswith(b"messages: 1\nmessages_inflight: 1\n")
        consumer.send_multipart([routing, key, b"1"])
        eventually(lambda: pzq.statistics["messages"] == 0)
        assert pzq.messages() == []
        sockets = {c["socket"]: c["address"] for c in pzq.connections}
        assert sockets == {
            "send": "ROUTER 127.0.0.1",
            "receive": "DEALER 127.0.0.1",
            "monitor": "REQ 127.0.0.1",
        }


def test_three_mebibytes(connect: Connect) -> None:
    body = os.urandom(3 * 1024 * 1024)
    with PZQ() as pzq:
        producer, consumer = connect(zmq.DEALER, pzq.url), connect(zmq.ROUTER, pzq.send_url)
        produce(producer, body)
        assert consumer.recv_multipart()[-1] == body


def test_a_pipelining_producer_loses_acknowledgements_but_no_message(connect: Connect) -> None:
    """Recorded: 20,000 messages in one go, all stored, 19,885 acknowledgements."""
    with PZQ() as pzq:
        producer = connect(zmq.DEALER, pzq.url, sndhwm=0, rcvhwm=1)
        for number in range(3000):
            producer.send_multipart([b"%d" % number, b"", b"x"])
        # Nobody reads: acknowledgements pile up until the pipes are full.
        eventually(lambda: pzq.statistics["messages"] == 3000)
        lost = pzq.journal.select(kind="lost")
        got = [int(producer.recv_multipart()[0]) for _ in range(3000 - len(lost))]
        assert got == sorted(set(got))
        assert silent(producer)
        assert pzq.lost_acknowledgements == len(lost)
        produce(producer, b"and on")


def test_one_message_at_a_time_loses_no_acknowledgement(connect: Connect) -> None:
    with PZQ() as pzq:
        producer = connect(zmq.DEALER, pzq.url)
        produce(producer, *[b"x"] * 1000)
        assert pzq.lost_acknowledgements == 0


def test_larger_pipes_on_request(connect: Connect) -> None:
    with PZQ(high_water_marks=(0, 1, 1)) as pzq:
        producer = connect(zmq.DEALER, pzq.url, sndhwm=0, rcvhwm=1)
        for number in range(3000):
            producer.send_multipart([b"%d" % number, b"", b"x"])
        assert [int(producer.recv_multipart()[0]) for _ in range(3000)] == list(range(3000))


def test_libzmq_deals_out_to_several_consumers(connect: Connect) -> None:
    with PZQ() as pzq:
        monitor = pzq.call(pzq.listeners[1]._socket.get_monitor_socket, zmq.EVENT_HANDSHAKE_SUCCEEDED)
        consumers = [connect(zmq.ROUTER, pzq.send_url) for _ in range(2)]
        for _ in consumers:
            assert monitor.poll(PATIENCE_S * 1000)
            monitor.recv_multipart()
        pzq.call(pzq.listeners[1]._socket.disable_monitor)
        monitor.close()
        producer = connect(zmq.DEALER, pzq.url)
        produce(producer, *[b"%d" % number for number in range(6)])
        bodies = [[c.recv_multipart()[-1] for _ in range(3)] for c in consumers]
        assert sorted(bodies) == [[b"0", b"2", b"4"], [b"1", b"3", b"5"]]


def in_flight_to_one_that_does_not_read(pzq: PZQ) -> int:
    def in_flight() -> int:
        return int(pzq.statistics["messages_inflight"])

    eventually(lambda: in_flight() > 1)
    return settles(in_flight, lambda: pzq.call(lambda: None))


def test_a_consumer_that_does_not_read_gets_what_the_pipes_hold(connect: Connect) -> None:
    """Recorded: with a receive mark of 1, 14 of 60 messages of 200 kB."""
    with PZQ() as pzq:
        for _ in range(2000):
            pzq.publish(b"x" * 10_000)
        first = connect(zmq.ROUTER, pzq.send_url, rcvhwm=1, rcvbuf=8192)
        assert 1 < in_flight_to_one_that_does_not_read(pzq) < 2000
        assert not pzq.listeners[1]._backlog  # what is in flight has left
        first.close()
    with PZQ() as pzq:
        connect(zmq.ROUTER, pzq.send_url, rcvhwm=1)
        for _ in range(400):
            pzq.publish(b"x" * 200_000)
        assert 1 < in_flight_to_one_that_does_not_read(pzq) < 400
        late = connect(zmq.ROUTER, pzq.send_url)
        while pzq.statistics["messages_inflight"] < 400:  # the pipes of the first may still take a few
            if not silent(late):
                late.recv_multipart()


def test_a_negative_ack_brings_it_again_at_once(connect: Connect) -> None:
    """Long before the time-out does."""
    with PZQ(ack_timeout_s=2 * PATIENCE_S) as pzq:
        consumer = connect(zmq.ROUTER, pzq.send_url)
        key = pzq.publish(b"x")
        first = consumer.recv_multipart()
        consumer.send_multipart([first[0], key, b"0"])
        second = consumer.recv_multipart()
        assert (first[1], second[1]) == (key, key)


def test_the_timeout_brings_it_again(connect: Connect) -> None:
    with PZQ(ack_timeout_s=0.1, reaper_interval_s=0) as pzq:
        consumer = connect(zmq.ROUTER, pzq.send_url)
        key = pzq.publish(b"x")
        first, second = consumer.recv_multipart(), consumer.recv_multipart()
        assert (first[1], second[1]) == (key, key)
        assert int(second[2]) - int(first[2]) > 100_000


def test_an_ack_that_comes_while_the_loop_is_busy_is_read(connect: Connect) -> None:
    """What the fake sends eats libzmq's signal that something has come."""
    with PZQ() as pzq:
        consumer = connect(zmq.ROUTER, pzq.send_url)
        pzq.publish(b"a")
        first = consumer.recv_multipart()

        def busy() -> None:
            consumer.send_multipart([first[0], first[1], b"1"])
            time.sleep(0.1)
            pzq.publish(b"b")

        pzq.call(busy)
        eventually(lambda: [m.body for m in pzq.messages()] == [(b"b",)])


def test_a_message_that_comes_while_the_loop_is_busy_is_read(connect: Connect) -> None:
    with PZQ() as pzq:
        producer = connect(zmq.DEALER, pzq.url)
        produce(producer, b"a")
        (name,) = [c["name"] for c in pzq.connections if c["socket"] == "receive"]

        def busy() -> None:
            producer.send_multipart([b"id", b"", b"b"])
            time.sleep(0.1)
            pzq.say(name, ProduceAck(b"nobody asked"))

        pzq.call(busy)
        assert producer.recv_multipart() == [b"nobody asked", b"1", b""]
        assert producer.recv_multipart() == [b"id", b"1", b""]


def test_raw_messages(connect: Connect) -> None:
    with PZQ() as pzq:
        producer = connect(zmq.DEALER, pzq.url)
        produce(producer, b"a")
        (name,) = [c["name"] for c in pzq.connections if c["socket"] == "receive"]
        pzq.say_raw(name, (b"one", b"", b"two"))
        pzq.say_raw(name, b"alone")
        assert producer.recv_multipart() == [b"one", b"", b"two"]
        assert producer.recv_multipart() == [b"alone"]


def test_peers_that_went_are_forgotten(connect: Connect) -> None:
    with PZQ() as pzq:
        producer = connect(zmq.DEALER, pzq.url)
        produce(producer, b"a")
        (name,) = [c["name"] for c in pzq.connections if c["socket"] == "receive"]
        producer.close()

        def said() -> bool:
            names = [c["name"] for c in pzq.connections]
            if name in names:
                pzq.say(name, ProduceAck(b"i"))
            return name not in names

        eventually(said)
        assert pzq.client_holds(name) is None
        assert pzq.lost_acknowledgements == 0


def test_other_kinds_of_consumers(connect: Connect) -> None:
    with PZQ(ack_timeout_s=0.3, reaper_interval_s=0) as pzq:  # the one that leaves may be given a message
        dealer = connect(zmq.DEALER, pzq.send_url)
        pzq.publish(b"x")

        def is_taken() -> bool:
            if not silent(dealer):
                key, *_, body = dealer.recv_multipart()
                assert body == b"x"
                dealer.send_multipart([key, b"1"])
            return not pzq.messages()

        eventually(is_taken)
        dealer.close()
        answering = connect(zmq.REP, pzq.send_url)
        pzq.publish(b"y")
        assert answering.recv_multipart() == [b"y"]
        answering.send(b"1")
        assert answering.recv_multipart() == [b"y"]  # its answer counts as negative
        assert [c["address"] for c in pzq.connections] == ["DEALER 127.0.0.1, REP 127.0.0.1"]


def test_unknown_monitor_command_and_a_dealer(connect: Connect) -> None:
    with PZQ() as pzq:
        monitor = connect(zmq.DEALER, pzq.monitor_url)
        monitor.send(b"STATUS")  # is not answered
        monitor.send_multipart([b"r1", b"", b"x", b"MONITOR"])
        empty, text = monitor.recv_multipart()
        assert empty == b""
        assert silent(monitor)
        assert text.startswith(b"messages: 0\n")


def test_identity_of_the_instance_in_the_documents_profile(connect: Connect) -> None:
    with PZQ(profile="seed") as pzq:
        consumer = connect(zmq.ROUTER, pzq.send_url)
        pzq.publish(b"x", key=b"\x00")
        assert consumer.recv_multipart()[:2] == [b"pzq", b"\x00"]


def test_crash_and_restart(connect: Connect) -> None:
    with PZQ() as pzq:
        producer, consumer = connect(zmq.DEALER, pzq.url), connect(zmq.ROUTER, pzq.send_url)
        produce(producer, b"a", b"b")
        before = [consumer.recv_multipart() for _ in range(2)]
        consumer.send_multipart([before[0][0], before[0][1], b"1"])
        eventually(lambda: pzq.statistics["messages"] == 1)
        urls = pzq.urls
        pzq.crash()
        assert pzq.connections == []
        pzq.restart()
        assert pzq.urls == urls
        again = consumer.recv_multipart()
        assert (again[0], again[1], again[5]) == (before[1][0], before[1][1], b"b")
        assert int(again[2]) > int(before[1][2])
        produce(producer, b"c")
        assert pzq.publish(b"a", key=before[0][1]) == before[0][1]  # a removal that the kill lost
        assert {consumer.recv_multipart()[1] for _ in range(2)} == {
            before[0][1],
            pzq.messages()[-1].key,
        }


@pytest.mark.parametrize("pass_frame", [True, False])
def test_a_crash_set_off_by_an_acknowledgement(connect: Connect, pass_frame: bool) -> None:
    with PZQ() as pzq:
        pzq.faults.add(crash(restart_s=None, pass_frame=pass_frame, role="confirm"))
        producer = connect(zmq.DEALER, pzq.url)
        producer.send_multipart([b"id", b"", b"x"])
        if pass_frame:
            assert producer.recv_multipart() == [b"id", b"1", b""]
        else:
            pzq.wait_for(kind="crash")
            assert silent(producer)
        assert pzq.connections == []
        pzq.faults.clear()
        pzq.restart()
        resend(producer, b"y")
        assert pzq.messages()[0].body == (b"x",)


def test_crash_without_state(connect: Connect) -> None:
    with PZQ() as pzq:
        pzq.publish(b"a")
        pzq.crash(keep_state=False)
        pzq.restart()
        assert pzq.messages() == []


def test_killed_connections_come_back(connect: Connect) -> None:
    with PZQ() as pzq:
        producer = connect(zmq.DEALER, pzq.url)
        produce(producer, b"a")
        (name,) = [c["name"] for c in pzq.connections if c["socket"] == "receive"]
        pzq.kill(name, "rst")
        resend(producer, b"b")
        pzq.kill()
        resend(producer, b"c")
        consumer = connect(zmq.ROUTER, pzq.send_url)
        bodies = [consumer.recv_multipart()[-1] for _ in pzq.messages()]
        assert list(dict.fromkeys(bodies)) == [b"a", b"b", b"c"]
        assert len(pzq.journal.select(kind="rst", connection=name)) == 1


def test_refused_and_hanging_connects(connect: Connect) -> None:
    with PZQ() as pzq:
        old = connect(zmq.DEALER, pzq.url)
        produce(old, b"a")
        for shut in (pzq.refuse, pzq.black_hole):
            shut()
            new = connect(zmq.DEALER, pzq.url)
            new.send_multipart([b"id", b"", b"x"])
            assert silent(new)
            pzq.restart()
            assert new.recv_multipart() == [b"id", b"1", b""]
            resend(old, b"b")


def test_faults_at_the_level_of_messages(connect: Connect) -> None:
    plan = {
        "faults": [
            {"match": {"role": "confirm", "nth": 1}, "effect": {"type": "drop"}},
            {"match": {"role": "deliver", "nth": 1}, "effect": {"type": "duplicate"}},
            {
                "match": {"kind": "Delivery", "nth": 2},
                "effect": {"type": "rewrite", "fields": {"sent": "abc", "headers": ["h1", "h2"]}},
            },
        ]
    }
    with PZQ(faults=plan) as pzq:
        producer, consumer = connect(zmq.DEALER, pzq.url), connect(zmq.ROUTER, pzq.send_url)
        producer.send_multipart([b"1", b"", b"x"])  # its acknowledgement is lost
        first, copy = consumer.recv_multipart(), consumer.recv_multipart()
        assert first == copy
        producer.send_multipart([b"2", b"", b"y"])
        assert producer.recv_multipart() == [b"2", b"1", b""]
        key, *rest = consumer.recv_multipart()[1:]
        assert rest == [b"abc", b"5000000", b"h1", b"h2", b"", b"y"]
        with pytest.raises(UsageError):
            pzq.publish(b"x", key=key)


def test_byte_level_faults_are_refused() -> None:
    with pytest.raises(Exception, match="byte proxy"):
        PZQ(faults={"faults": [{"match": {"role": "deliver"}, "effect": {"type": "truncate"}}]})


def test_a_dropped_delivery_does_not_stop_the_others(connect: Connect) -> None:
    plan = {"faults": [{"match": {"role": "deliver", "first": 50}, "effect": {"type": "drop"}}]}
    with PZQ(faults=plan, ack_timeout_s=60) as pzq:
        for number in range(60):
            pzq.publish(b"%d" % number)
        consumer = connect(zmq.ROUTER, pzq.send_url)
        assert [consumer.recv_multipart()[-1] for _ in range(10)] == [b"%d" % n for n in range(50, 60)]


def test_a_fake_that_stops_reading(connect: Connect) -> None:
    plan = {"faults": [{"name": "stall", "match": {"role": "publish"}, "effect": {"type": "stall"}}]}
    with PZQ(faults=plan) as pzq:
        producer = connect(zmq.DEALER, pzq.url)
        produce(producer, b"a")
        producer.send_multipart([b"id", b"", b"b"])
        assert silent(producer)
        pzq.faults.remove("stall")
        assert producer.recv_multipart() == [b"id", b"1", b""]


def test_ports(tmp_path: Path) -> None:
    with PZQ() as pzq:
        assert pzq.receive_url == pzq.url == f"tcp://127.0.0.1:{pzq.port}"
        assert list(pzq.urls) == ["receive", "send", "monitor"]
        with pytest.raises(OSError, match="in use"):
            PZQ(port=pzq.port).start()
    endpoint = f"ipc://{tmp_path}/monitor"
    with PZQ(monitor=endpoint) as pzq:
        assert pzq.monitor_url == endpoint
    with pytest.raises(UsageError, match="does not listen"):
        _ = PZQ().send_url


def test_the_same_ports_again_at_once() -> None:
    with PZQ() as first:
        urls = first.urls
    ports = [int(url.rpartition(":")[2]) for url in urls.values()]
    for _ in range(5):
        with PZQ(port=ports[0], send_port=ports[1], monitor=urls["monitor"]) as again:
            assert again.urls == urls


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a port be kept")
def test_nobody_gets_its_ports_while_it_refuses() -> None:
    with PZQ() as pzq:
        pzq.refuse()
        for url in pzq.urls.values():
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", int(url.rpartition(":")[2])))


def test_messages_and_keys_from_a_file(tmp_path: Path, connect: Connect) -> None:
    path = tmp_path / "pzq.db"
    with PZQ(database=path) as pzq:
        key = pzq.publish(b"a", b"", b"b")
        pzq.publish(b"c")
    with PZQ(database=path) as pzq:
        assert pzq.messages()[0] == StoredMessage(key, (b"a", b"", b"b"), False)
        consumer = connect(zmq.ROUTER, pzq.send_url)
        assert consumer.recv_multipart()[1] == key


def test_sigkill_of_a_served_fake_loses_no_acknowledged_message(tmp_path: Path, connect: Connect) -> None:
    path = tmp_path / "pzq.db"
    code = (
        "import sys, threading\n"
        "from fakebrokers.pzq.server import PZQ\n"
        "pzq = PZQ(database=sys.argv[1]).start()\n"
        "print(pzq.url, flush=True)\n"
        "threading.Event().wait()\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    producer = connect(zmq.DEALER, child.stdout.readline().strip())
    produce(producer, *[b"%d" % number for number in range(100)])
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    with PZQ(database=path) as pzq:
        assert [m.body[0] for m in pzq.messages()] == [b"%d" % number for number in range(100)]


@pytest.mark.parametrize("order", ["strict", "skip"])
def test_order_of_a_backlog(connect: Connect, order: Any) -> None:
    with PZQ(order=order) as pzq:
        for number in range(60):
            pzq.publish(b"%d" % number)
        consumer = connect(zmq.ROUTER, pzq.send_url)
        got = [int(consumer.recv_multipart()[-1]) for _ in range(60)]
    assert sorted(got) == list(range(60))
    assert got[:11] == (list(range(11)) if order == "strict" else [0, 1, 2, 3, 4, 6, 7, 9, 11, 12, 14])


def test_async() -> None:
    async def conversation() -> None:
        async with PZQ() as pzq:
            context = zmq.Context()
            producer = context.socket(zmq.DEALER)
            producer.linger = 0
            producer.connect(pzq.url)
            producer.send_multipart([b"id", b"", b"x"])
            (record,) = await pzq.wait_for_async(role="confirm")
            assert record.keys == (b"id",)
            producer.close()
            context.term()

    asyncio.run(conversation())


def test_start_costs_little_and_stop_leaves_nothing() -> None:
    with PZQ():
        pass  # imports, and libzmq's threads
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    times = []
    for _ in range(20):
        before = time.process_time()
        pzq = PZQ().start()
        times.append(time.process_time() - before)
        pzq.stop()
    assert min(times) < 0.005  # of the processor
    assert threading.active_count() == threads
    eventually(lambda: len(os.listdir("/proc/self/fd")) <= descriptors)


def test_another_identity(connect: Connect) -> None:
    with PZQ(profile="seed") as pzq:
        pzq.faults.add(fault(ChangeIdentity(identity="other"), role="publish"))
        producer = connect(zmq.DEALER, pzq.url)
        produce(producer, b"a")
        eventually(lambda: len(pzq.journal.select(kind="closed")) == 1)
        consumer = connect(zmq.ROUTER, pzq.send_url)
        assert consumer.recv_multipart()[0] == b"other"


def test_behind_a_byte_proxy(connect: Connect) -> None:
    with PZQ(proxied=True, seed=7) as pzq:
        assert pzq.proxy is not None and pzq.proxy.faults.plan.seed == 7
        assert pzq.where == pzq.proxy.urls == pzq.urls
        pzq.proxy.faults.add(slice_(1, gap_s=0))
        producer, consumer = connect(zmq.DEALER, pzq.receive_url), connect(zmq.ROUTER, pzq.send_url)
        produce(producer, b"body")
        assert consumer.recv_multipart()[-1] == b"body"
        assert connect(zmq.REQ, pzq.monitor_url).send(b"MONITOR") is None
        pzq.wait_for(kind="MonitorReply")
        names = {record.note for record in pzq.proxy.journal.select(kind="upstream")}
        assert names == {"receive", "send", "monitor"}
        pzq.proxy.kill(how="rst")
        pzq.proxy.wait_for(kind="upstream", count=6)  # libzmq reconnects by itself
        produce(producer, b"and again")
        first = pzq.proxy
        pzq.stop()
        assert first.journal.select(kind="ServerBytes")  # still there to be looked at
        pzq.start()
        assert pzq.proxy is not first
        produce(connect(zmq.DEALER, pzq.receive_url), b"on another port")


def test_no_proxy_in_memory() -> None:
    async def look() -> None:
        with PZQ(memory=True, proxied=True) as pzq:
            assert pzq.proxy is None

    asyncio.run(look())


class Fails:
    """Fails a number of times, then does what it stands in for."""

    def __init__(self, action: Callable[..., Any], times: int = 1) -> None:
        self._action = action
        self._times = times

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._times:
            self._times -= 1
            raise RuntimeError("broken on purpose")
        return self._action(*args, **kwargs)


@pytest.mark.parametrize("what", ["_accept", "_rest", "_receive", "_events", "drained"])
def test_an_error_in_a_callback_is_kept_and_the_socket_goes_on(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    pzq = PZQ().start()
    try:
        good = connect(zmq.DEALER, pzq.url)
        produce(good, b"a")
        receive = pzq.listeners[0]
        monkeypatch.setattr(receive, what, Fails(getattr(receive, what)))
        stranger = connect(zmq.DEALER, pzq.url)
        stranger.send_multipart([b"id", *[b"header"] * 30, b"", b"x"])
        eventually(lambda: pzq.engine.errors)
        produce(good, b"b", b"c")
        resend(stranger, b"d")
        with pytest.raises(RuntimeError, match="on purpose") as caught:
            pzq.check()
        assert caught.value.__notes__ == [f"in the fake, at the socket {pzq.url}"]
        assert pzq.engine.errors == []
    finally:
        pzq.stop()


def test_a_full_pipe_is_looked_at_once_more(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client may have read the last answer without libzmq having noted it: its mark is one message."""
    with PZQ() as pzq:
        monitor = pzq.listeners[2]
        send, problems = monitor._send, [zmq.EAGAIN]
        monkeypatch.setattr(monitor, "_send", lambda *parts: problems.pop() if problems else send(*parts))
        client = connect(zmq.REQ, pzq.monitor_url)
        client.send(b"MONITOR")
        assert client.recv().startswith(b"messages")
        assert problems == []
        assert pzq.journal.select(kind="lost") == []


def test_a_unit_that_cannot_be_sent_does_not_stop_the_others(connect: Connect) -> None:
    """It waits for room, and so fails in the callback that reports room."""
    pzq = PZQ().start()
    try:
        dealer = pzq.listeners[1]
        (name,) = [c["name"] for c in pzq.connections if c["socket"] == "send"]
        pzq.say_raw(name, (b"one", "text", b"three"))  # nobody is connected yet
        consumer = connect(zmq.ROUTER, pzq.send_url)
        eventually(lambda: pzq.engine.errors)
        eventually(lambda: not dealer._backlog)  # the loop goes on while this looks
        pzq.publish(b"x")
        assert consumer.recv_multipart()[-1] == b"x"
        with pytest.raises(TypeError):
            pzq.check()
    finally:
        pzq.stop()
