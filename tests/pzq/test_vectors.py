"""Every exchange that was recorded from the real daemon, played against the fake.

What may differ has a name here and nowhere else:

* key: the store's key; the form is checked, and one recorded key stands for one of the fake's throughout.
* delivery time: checked against the clock of this test instead of the recorded one.
* routing id: the consumer's own socket puts it in front, the broker never sees it.
* envelope: what REQ and REP sockets add and strip, done here as libzmq does it.
* db_size: pages of the real daemon's file.
* burst order: five messages that expired together; the recorded order is that of a full pipe.
* long body: the recording shows its first 16 bytes.
* lost removal: the real daemon may forget removals when it is killed; the fake does not.

Where document and daemon do not contradict each other, profile ``seed`` plays the same records, with two
more: its keys are the producer's ids, and the monitor spells and measures in its own way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

Parts = tuple[bytes, ...]

RECORDS = [
    json.loads(line) for line in (Path(__file__).parent / "vectors" / "pzq.jsonl").read_text().splitlines()
]
SCENARIOS = sorted({r["scenario"] for r in RECORDS if "scenario" in r})
PROFILES = pytest.mark.parametrize("profile", ["real", "seed"])
SPELLING = {"messages_inflight": "messages_in_flight", "inflight_db_size": "in_flightdb_size"}
KEY = re.compile(rb"\d{16}\|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
BIG = b"z" * 3_145_728
DEFAULT_BURST = {b"x0", b"x1", b"x2", b"x3", b"x4"}

OPTIONS: dict[str, dict[str, Any]] = {
    "nack": {"ack_timeout": 30_000_000},
    "ack_timeout": {"ack_timeout": 1_000_000, "reaper_frequency": 500_000},
    "lazy_expiry": {"ack_timeout": 1_000_000, "reaper_frequency": 3_600_000_000},
    "late_ack": {"ack_timeout": 500_000, "reaper_frequency": 100_000},
    "late_ack_idle": {"ack_timeout": 300_000, "reaper_frequency": 100_000},
}


class Replay:
    """One scenario: the broker, a peer per socket of the recording, and what stands for what."""

    def __init__(self, make_daemon: Any, scenario: str, profile: str = "real") -> None:
        self.profile = profile
        self.daemon = make_daemon(profile, **OPTIONS.get(scenario, {}))
        self.start = self.daemon.now
        self.peers: dict[str, Any] = {}
        self.keys: dict[bytes, bytes] = {}  # recorded to ours
        self.times: dict[bytes, list[int]] = {}  # of deliveries, by key
        self.routing_ids: dict[str, bytes] = {}

    def peer(self, socket: str) -> Any:
        if socket not in self.peers:
            kind = socket.partition("-")[0]
            self.peers[socket] = getattr(self.daemon, kind)()
        return self.peers[socket]

    def step(self, record: dict[str, Any]) -> None:
        elapsed = self.daemon.now - self.start
        waits = record["dir"] != "s2c"
        if waits and record["t"] > elapsed:
            self.daemon.advance(record["t"] - elapsed)
        parts = tuple(bytes.fromhex(part) for part in record["parts"] or ())
        if record["dir"] == "c2s":
            if record.get("truncated"):
                parts = (*parts[:-1], BIG)
            self.send(record["socket"], parts)
        elif record["dir"] == "s2c":
            self.expect(record["socket"], parts, record)
        elif record["dir"] == "none":
            assert not self.peer(record["socket"]).inbox, record["desc"]

    def send(self, socket: str, parts: Parts) -> None:
        peer = self.peer(socket)
        if socket in ("monitor", "producer-REQ"):
            parts = (b"", *parts)  # envelope of REQ
        elif socket == "consumer-REP":
            parts = (*self.envelope, b"", *parts)
        elif socket.startswith("consumer"):
            if socket != "consumer-DEALER":
                assert parts[0] == self.routing_ids[socket]
                parts = parts[1:]
            parts = (self.keys.get(parts[0], parts[0]), *parts[1:])
        peer.send(*parts)

    def expect(self, socket: str, want: Parts, record: dict[str, Any]) -> None:
        peer = self.peer(socket)
        if not peer.inbox:
            self.daemon.advance(10.0, until=lambda: peer.inbox)
        assert peer.inbox, f"nothing came where the daemon sent {want}"
        got = peer.inbox.popleft()
        if socket.startswith("consumer"):
            self.expect_delivery(socket, want, got, bool(record.get("truncated")))
        elif socket.startswith("monitor"):
            if socket == "monitor":
                assert got[0] == b""  # envelope of REQ
                got = got[1:]
            assert [self.normal(part) for part in got] == [self.normal(part, recorded=True) for part in want]
        else:
            if socket == "producer-REQ":
                assert got[0] == b""
                got = got[1:]
            assert got == want

    def normal(self, text: bytes, recorded: bool = False) -> bytes:
        """A monitor's reply with the daemon's own file size left out; recorded ones respelt if need be."""
        rows = dict(row.split(": ") for row in text.decode().splitlines() if row)
        seed = self.profile == "seed"
        if seed and recorded:
            rows = {SPELLING.get(key, key): value for key, value in rows.items()}
            text = text.rstrip(b"\n")
        for key in ("db_size", *(("in_flightdb_size",) if seed else ())):
            if key in rows:
                assert rows[key].isdigit()
                rows[key] = "#"
        end = "\n" if text.endswith(b"\n") else ""
        return "\n".join(f"{key}: {value}" for key, value in rows.items()).encode() + end.encode()

    def expect_delivery(self, socket: str, want: Parts, got: Parts, truncated: bool) -> None:
        key, sent, timeout, empty, *body = got
        if socket == "consumer-REP":
            self.envelope = got[:3]
            assert tuple(body) == want
            return
        if socket != "consumer-DEALER":
            self.routing_ids[socket] = want[0]
            want = want[1:]
        wanted_key, wanted_sent, wanted_timeout, wanted_empty, *wanted_body = want
        assert self.keys.setdefault(wanted_key, key) == key
        if KEY.fullmatch(wanted_key):
            assert KEY.fullmatch(key) or self.profile == "seed"
        else:
            assert key == wanted_key
        assert sent.isdigit() and wanted_sent.isdigit()
        earliest, latest = (self.daemon.broker.microseconds(at) for at in (self.start, self.daemon.now))
        assert earliest <= int(sent) <= latest
        self.times.setdefault(key, []).append(int(sent))
        assert (timeout, empty) == (wanted_timeout, wanted_empty)
        if truncated:
            assert [body[0][:16]] == wanted_body
            assert body == [BIG]
        else:
            assert body == wanted_body


def ack_all(replay: Replay, socket: str) -> None:
    """Acknowledge what a consumer got last; the recording leaves such acks out."""
    for key in list(replay.daemon.broker.in_flight):
        replay.peer(socket).send(key, b"1")


def play(
    make_daemon: Any, scenario: str, before: dict[int, Callable[[Replay], None]], profile: str = "real"
) -> Replay:
    """Play all records of a scenario; `before` does what the recording left out, by sequence number."""
    replay = Replay(make_daemon, scenario, profile)
    for record in RECORDS:
        if record.get("scenario") == scenario:
            if record["seq"] in before:
                before[record["seq"]](replay)
            replay.step(record)
    assert not any(peer.inbox for peer in replay.peers.values()), "more came than was recorded"
    return replay


def attach(*sockets: str) -> Callable[[Replay], None]:
    def act(replay: Replay) -> None:
        for socket in sockets:
            replay.peer(socket)

    return act


def produce(*bodies: bytes, gap: float = 0.0) -> Callable[[Replay], None]:
    """Messages whose sending was not recorded."""

    def act(replay: Replay) -> None:
        peer = replay.peer("producer")
        for body in bodies:
            peer.send(b"", b"", body)
            assert peer.inbox.pop() == (b"", b"1", b"")
            replay.daemon.advance(gap)

    return act


@PROFILES
def test_basic(make_daemon: Any, profile: str) -> None:
    def settle(replay: Replay) -> None:
        ack_all(replay, "consumer")

    play(make_daemon, "basic", {3: attach("consumer"), 32: settle}, profile)


def test_malformed(make_daemon: Any) -> None:
    def settle(replay: Replay) -> None:
        ack_all(replay, "consumer")

    play(make_daemon, "malformed", {34: attach("consumer"), 49: settle, 56: settle})


@PROFILES
def test_nack(make_daemon: Any, profile: str) -> None:
    def settle(replay: Replay) -> None:
        ack_all(replay, "consumer")

    play(
        make_daemon,
        "nack",
        {64: attach("consumer"), 80: produce(b"msg1", b"msg2", b"msg3", b"msg4"), 88: settle},
        profile,
    )


@PROFILES
def test_unknown_ack(make_daemon: Any, profile: str) -> None:
    def last_delivery(replay: Replay) -> None:
        assert replay.peer("consumer").inbox.pop()[-1] == b"y"

    replay = Replay(make_daemon, "unknown_ack", profile)
    replay.peer("consumer")
    for record in RECORDS:
        if record.get("scenario") == "unknown_ack":
            replay.step(record)
    last_delivery(replay)


@PROFILES
def test_ack_timeout(make_daemon: Any, profile: str) -> None:
    replay = play(make_daemon, "ack_timeout", {102: attach("consumer")}, profile)
    (times,) = replay.times.values()
    gaps = [later - sooner for sooner, later in pairwise(times)]
    assert len(gaps) == 4
    assert all(1_000_000 < gap <= 1_500_000 for gap in gaps)


def test_ack_timeout_default(make_daemon: Any) -> None:
    """Six messages 0.45 s apart; each comes again 5.0 to 7.5 s after its first delivery."""
    replay = Replay(make_daemon, "ack_timeout_default")
    replay.daemon.advance(0.283)  # the recorded reaper looked 7.217 s after the first delivery
    consumer = replay.peer("consumer")
    produce(b"x0", b"x1", b"x2", b"x3", b"x4", b"x5", gap=0.45)(replay)
    first = {unit[4]: int(unit[1]) for unit in consumer.take()}
    records = [r for r in RECORDS if r.get("scenario") == "ack_timeout_default" and r["dir"] == "s2c"]
    bodies = [bytes.fromhex(r["parts"][-1]) for r in records]
    assert set(bodies[:5]) == DEFAULT_BURST  # burst order
    assert bodies[5] == b"x5"
    replay.daemon.advance(10.0, until=lambda: len(consumer.inbox) >= 5)
    burst = consumer.take()
    replay.daemon.advance(10.0, until=lambda: consumer.inbox)
    last = consumer.take()
    assert len(last) == 1
    again = {unit[4]: int(unit[1]) for unit in (*burst, *last)}
    assert {unit[4] for unit in burst} == DEFAULT_BURST
    assert last[0][4] == b"x5"
    assert all(5_000_000 < again[body] - first[body] <= 7_500_000 for body in first)
    for record, unit in zip(records, sorted((*burst, *last), key=lambda u: bodies.index(u[4])), strict=True):
        assert unit[2].hex() == record["parts"][3]


@PROFILES
def test_lazy_expiry(make_daemon: Any, profile: str) -> None:
    play(make_daemon, "lazy_expiry", {127: attach("consumer")}, profile)


@PROFILES
def test_late_ack(make_daemon: Any, profile: str) -> None:
    play(make_daemon, "late_ack", {137: attach("consumer-A", "consumer-B")}, profile)


@PROFILES
def test_late_ack_idle(make_daemon: Any, profile: str) -> None:
    replay = Replay(make_daemon, "late_ack_idle", profile)
    replay.peer("consumer")
    stale = None
    for record in RECORDS:
        if record.get("scenario") != "late_ack_idle":
            continue
        if record["seq"] == 149:
            stale = replay.routing_ids.pop("consumer")
            replay.peers.pop("consumer").close()
        if record["dir"] == "c2s" and record["parts"][0] == (stale or b"-").hex():
            continue  # routing id: the consumer's own socket dropped it, the broker saw nothing
        replay.step(record)


@PROFILES
def test_two_consumers(make_daemon: Any, profile: str) -> None:
    def set_up(replay: Replay) -> None:
        attach("consumer-A", "consumer-B")(replay)
        produce(b"m0", b"m1", b"m2", b"m3", b"m4", b"m5", gap=0.03)(replay)

    play(make_daemon, "two_consumers", {158: set_up}, profile)


@PROFILES
def test_restart(make_daemon: Any, profile: str) -> None:
    replay = Replay(make_daemon, "restart", profile)
    replay.peer("consumer")
    acked = b""
    for record in RECORDS:
        if record.get("scenario") != "restart":
            continue
        if record["seq"] == 176:
            acked = next(ours for theirs, ours in replay.keys.items() if b"932540" in theirs)
            replay.peer("consumer").send(acked, b"1")
            assert replay.daemon.report()["messages"] == 2
            replay.peer("consumer").capacity = 0  # the consumer is not back yet
            replay.daemon.restart()
            assert replay.daemon.report()["messages"] == 2
            replay.daemon.broker.put((b"m1",), replay.daemon.now, id=acked, replica=True)  # lost removal
        if record["seq"] == 179:
            consumer = replay.peer("consumer")
            consumer.capacity = 10
            consumer.session.writable(replay.daemon.now)
            (back,) = [unit for unit in consumer.inbox if unit[0] == acked]
            consumer.inbox.remove(back)  # the recorder counted it, but wrote it not down
        replay.step(record)


@PROFILES
def test_other_types(make_daemon: Any, profile: str) -> None:
    def rep(replay: Replay) -> None:
        replay.peers.pop("consumer-DEALER").close()
        replay.peer("consumer-REP")

    play(make_daemon, "other_types", {184: attach("consumer-DEALER"), 190: rep}, profile)


def test_evict(make_daemon: Any) -> None:
    """Marks vanish from a table of 4096 bytes: 16 of them for 300 messages, and no end of deliveries."""
    daemon = make_daemon(inflight_size=4096, ack_timeout=60_000_000, order="skip")
    producer, consumer = daemon.producer(), daemon.consumer()
    for number in range(300):
        producer.send(b"", b"", b"%d" % number)
    delivered = 0
    for _ in range(100):
        daemon.broker.timers.run(daemon.now)
        delivered += len(consumer.take())
    (record,) = [r for r in RECORDS if r.get("scenario") == "evict" and r["dir"] == "s2c"]
    want = dict(row.split(": ") for row in bytes.fromhex(record["parts"][0]).decode().splitlines())
    got = daemon.report()
    assert {k: int(v) for k, v in want.items() if k != "db_size"} == {
        k: v for k, v in got.items() if k != "db_size"
    }
    assert delivered > 2 * 300


@pytest.mark.parametrize(
    ("scenario", "order"), [("backlog_order", "skip"), ("backlog_order_other_regime", "strict")]
)
def test_backlog(make_daemon: Any, scenario: str, order: str) -> None:
    (record,) = [r for r in RECORDS if r.get("scenario") == scenario]
    daemon = make_daemon(order=order)
    producer = daemon.producer()
    for number in range(60):
        producer.send(b"", b"", b"%d" % number)
    consumer = daemon.consumer()
    daemon.advance(1.0)
    assert [int(unit[4]) for unit in consumer.take()] == record["order"]


def test_crash_after_ack(make_daemon: Any) -> None:
    """5 stored, 4 acked; after SIGTERM the fifth is there and comes again (after SIGKILL: lost removal)."""
    daemon = make_daemon()
    producer, consumer = daemon.producer(), daemon.consumer()
    for number in range(5):
        producer.send(b"", b"", b"%d" % number)
    for unit in consumer.take()[:4]:
        consumer.send(unit[0], b"1")
    daemon.restart()
    daemon.broker.turn(daemon.now)
    assert [unit[4] for unit in consumer.take()] == [b"4"]
    assert daemon.report()["messages"] == 1


def test_all_scenarios_are_played() -> None:
    """`lost_producer_acks` needs real sockets and is played in test_sockets.py."""
    here = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    played = {*here, "backlog_order", "backlog_order_other_regime", "lost_producer_acks"}
    assert set(SCENARIOS) <= played
