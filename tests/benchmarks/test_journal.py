"""What writing the journal down costs: CPU time of the loop thread, the best of several rounds."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fakebrokers import RabbitMQStream
from fakebrokers.journal import Journal, RunJournal, Tap
from fakebrokers.rabbitmq_stream.frames import FRAMES, PublishConfirm
from tests.benchmarks.stream_load import frame, text

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(300)]

ROUNDS = 15


def cpu_ns(act: Callable[[], Any], times: int) -> float:
    begun = time.thread_time_ns()
    for _ in range(times):
        act()
    return (time.thread_time_ns() - begun) / times


def cost(act: Callable[[], Any], journal: Journal, sink: RunJournal, times: int) -> tuple[float, float]:
    """Nanoseconds without and with the sink; rounds take turns, so that a busy machine hits both."""
    without, with_sink = [], []
    for _ in range(ROUNDS):
        journal.sink = None
        without.append(cpu_ns(act, times))
        journal.sink = sink
        with_sink.append(cpu_ns(act, times))
    journal.sink = None
    return min(without), min(with_sink)


@pytest.mark.parametrize(("records", "limit_ns"), [(20, 600), (2, 800)])
def test_a_record_costs_little(tmp_path: Path, records: int, limit_ns: int) -> None:
    """At most 0.6 microseconds more than in memory alone; a turn of the loop with little in it costs more."""
    journal = Journal(FRAMES)
    confirm = PublishConfirm(1, (7).to_bytes(8, "big"))

    def turn() -> None:
        for _ in range(records):
            journal.add(1.5, "c1", Tap.OUT, confirm, 21)
        journal.flush()

    sink = RunJournal(tmp_path, "r")
    without, with_sink = cost(turn, journal, sink, 10_000 // records)
    sink.close()
    more = (with_sink - without) / records
    print(f"{records} at a time, each: {without / records:.0f} ns in memory, {more:.0f} ns more on disk")
    assert more < limit_ns


class Nowhere:
    """A transport that takes everything."""

    def write(self, units: list[Any]) -> None:
        pass

    def hang_up(self, how: Any) -> None:
        pass

    def stop_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


def test_batches_of_a_hundred(tmp_path: Path) -> None:
    """Under 15 % of what the fake spends on publish and confirm."""
    broker = RabbitMQStream()
    broker.create_stream("s")
    engine, now = broker.engine, time.monotonic()
    endpoint = broker._endpoints()[0]
    connection = engine.accept(endpoint.wire, *endpoint.new_session(None), Nowhere(), now)
    secret = b"\0guest\0guest"
    for request in (
        frame(17, struct.pack(">II", 1, 0)),
        frame(18, struct.pack(">I", 2)),
        frame(19, struct.pack(">I", 3) + text("PLAIN") + struct.pack(">I", len(secret)) + secret),
        frame(20, struct.pack(">II", 1 << 20, 0)),
        frame(21, struct.pack(">I", 4) + text("/")),
        frame(1, struct.pack(">IB", 5, 0) + text("") + text("s")),
    ):
        engine.receive(connection, request, now)
        engine.flush(now)
    batch = b"".join(struct.pack(">QI", n, 100) + b"x" * 100 for n in range(100))
    publish = frame(2, struct.pack(">BI", 0, 100) + batch)

    def turn() -> None:
        engine.receive(connection, publish, now)
        engine.flush(now)
        engine.journal.flush()

    confirms = len(broker.journal.select(kind="PublishConfirm"))
    turn()
    assert len(broker.messages("s")) == 100
    # one for each chunk that the writer cuts the batch into
    assert len(broker.journal.select(kind="PublishConfirm")) > confirms
    sink = RunJournal(tmp_path, "r")
    without, with_sink = cost(turn, broker.journal, sink, 200)
    sink.close()
    share = with_sink / without - 1
    print(f"100 messages: {without / 1e3:.1f} us, with a journal on disk {share:.1%} more")
    assert share < 0.15
