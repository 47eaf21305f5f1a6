"""The journal on disk: what is written is read again, whatever became of the writer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.core.frames import Frame, FrameSpec, FrameTable, Items, Malformed, Role
from fakebrokers.errors import UsageError
from fakebrokers.journal import Journal, RunJournal, Tap, value_id
from fakebrokers.journal.keys import key_text
from fakebrokers.journal.lines import LENGTH, MAGIC, SCHEMA_VERSION, EventLine, encode, split
from fakebrokers.journal.reader import read_run, runs_in
from fakebrokers.journal.record import SILENCE_LIMIT
from fakebrokers.journal.rows import FrameRow, MetricRow, OpRow
from fakebrokers.journal.segment import Segment, is_being_written
from tests.marked import PASSWORD

HERE = Path(__file__).parent


class Login(Frame, frozen=True):
    number: int
    password: str


class Put(Frame, frozen=True):
    publisher: int
    ids: bytes
    body: bytes


class Stored(Frame, frozen=True):
    ids: tuple[Any, ...]
    code: int = 0


class Note(Frame, frozen=True):
    key: Any


class Many(Items):
    def __init__(self, size: int) -> None:
        self._size = size

    def count(self, frame: Any) -> int:
        return len(frame.ids) // self._size

    def keys(self, frame: Any) -> Any:
        return frame.ids

    def select(self, frame: Any, indices: Any) -> Any:
        return frame


FRAMES: FrameTable = {
    Login: FrameSpec(Role.HANDSHAKE, "number", secret=("password",)),
    Put: FrameSpec(Role.PUBLISH, "ids", Many(8), bulk=("body",), scope="publisher"),
    Stored: FrameSpec(Role.CONFIRM, "ids", Many(1), status="code"),
    Note: FrameSpec(Role.EVENT, "key"),
}


def packed(*ids: int) -> bytes:
    return b"".join(number.to_bytes(8, "big") for number in ids)


def written(run: RunJournal, *frames: Frame) -> list[FrameRow]:
    """The rows that these frames become, in memory."""
    journal = Journal(FRAMES)
    journal.sink = run
    for frame in frames:
        journal.add(1.5, "c1", Tap.IN, frame, 10)
    journal.flush()
    return run.log().frames


def test_a_frame_comes_back_with_all_that_the_tables_need() -> None:
    journal = Journal(FRAMES)
    journal.sink = run = RunJournal(None, "r", run="r")
    journal.add(1.25, "c1", Tap.RECEIVED, Put(7, packed(4, 5, 6), b"x"), 99, "slow, late")
    journal.add(1.5, "c1", Tap.SAID, Stored((4, 6), code=9), 0)
    journal.state(2.0, "c1", "fin", "by hand", "cut")
    journal.flush()
    assert run.log().frames == [
        FrameRow(
            "r",
            1,
            1_250_000_000,
            "c1",
            "received",
            "in",
            "Put",
            "publish",
            "7",
            4,
            3,
            (),
            99,
            None,
            "slow, late",
            key_type="u64",
        ),
        FrameRow(
            "r",
            2,
            1_500_000_000,
            "c1",
            "said",
            "out",
            "Stored",
            "confirm",
            "",
            None,
            2,
            ("4", "6"),
            0,
            9,
            key_type="u64",
        ),
        FrameRow("r", 3, 2_000_000_000, "c1", "state", "", "fin", note="by hand", fault="cut"),
    ]


@pytest.mark.parametrize(
    ("key", "first", "keys"),
    [
        (7, 7, ()),
        (-1, None, ("-1",)),
        ((1 << 63) - 1, (1 << 63) - 1, ()),
        (1 << 63, 1 << 63, ()),
        ((1 << 64) - 1, (1 << 64) - 1, ()),
        (1 << 64, None, (str(1 << 64),)),
        (1 << 70, None, (str(1 << 70),)),
        (b"msg-1", None, ("msg-1",)),
        (b"\xff\x00", None, ("0xff00",)),
        ("half \ud800", None, ("half \\ud800",)),
        (None, None, ()),
    ],
)
def test_single_keys_of_any_kind(key: Any, first: int | None, keys: tuple[str, ...]) -> None:
    (row,) = written(RunJournal(None, "r", run="r"), Note(key))
    assert (row.key_first, row.items, row.keys) == (first, 1, keys)


@given(
    st.lists(st.integers(0, (1 << 64) - 1), max_size=5)
    | st.integers(0, 99).map(lambda n: list(range(n, n + 4)))
)
def test_packed_ids_stay_the_same_ids(ids: list[int]) -> None:
    (row,) = written(RunJournal(None, "r", run="r"), Put(1, packed(*ids), b""))
    expanded = (
        row.keys
        if row.key_first is None
        else tuple(map(str, range(row.key_first, row.key_first + row.items)))
    )
    assert (row.items, list(map(int, expanded))) == (len(ids), ids)


def test_consecutive_ids_are_a_range() -> None:
    (row,) = written(RunJournal(None, "r", run="r"), Put(1, packed(*range(1000, 2000)), b""))
    assert (row.key_first, row.items, row.keys) == (1000, 1000, ())


def test_frames_are_only_written_on_demand_and_then_without_credentials_and_long_bodies() -> None:
    plain, *_ = written(RunJournal(None, "r", run="r"), Login(1, PASSWORD))
    assert plain.frame is None
    login, short, long = written(
        RunJournal(None, "r", run="r", frames=True),
        Login(1, PASSWORD),
        Put(1, b"", b"short"),
        Put(1, b"", b"x" * 2000),
    )
    assert json.loads(login.frame or "") == {"number": 1, "password": "***"}
    nonsense = Malformed(b"PASS %b" % PASSWORD.encode(), "expected a frame")
    (broken,) = written(RunJournal(None, "r", run="r", frames=True), nonsense)
    assert json.loads(broken.frame or "")["data"] == "***"
    assert json.loads(short.frame or "")["body"] == "c2hvcnQ="
    digest = "5c0e0ea421571c300b5df6aec0a118b5c3dc02e0683a546341d5efc689df2f58"
    assert json.loads(long.frame or "")["body"] == {"sha256": digest, "len": 2000}
    (whole,) = written(RunJournal(None, "r", run="r", frames=True, body_limit=None), Put(1, b"", b"x" * 2000))
    assert len(json.loads(whole.frame or "")["body"]) > 2000


@pytest.mark.parametrize(
    ("limits", "longest"),
    [([], None), (["2000 ms"], 2000.0), (["500 ms", "4e+03 ms"], 4000.0), (["2 ms", "inf ms"], None)],
)
def test_the_longest_silence_that_connections_agreed_on(limits: list[str], longest: float | None) -> None:
    journal = Journal(FRAMES)
    journal.sink = run = RunJournal(None, "r", run="r")
    for number, limit in enumerate(limits):
        journal.state(1.0, f"c{number}", SILENCE_LIMIT, limit)
    journal.flush()
    assert run.log().run.heartbeat_limit_ms == longest


def test_ops_events_metrics_and_attributes(tmp_path: Path) -> None:
    run = RunJournal(tmp_path, "r", run="r", client="rstream", seed=7)
    run.op(1.0, "p1", 1, "publish", "invoke", key="orders", value="ab", wire_key="0")
    run.op(2.0, "p1", 1, "publish", "info", key="orders", value="ab", error="timeout")
    run.event(3.0, "p1", "connection_lost", "reset")
    run.metric(4.0, "loop_lag_ms", 0.5)
    run.attributes(client_version="1.1")
    run.close(verdict="pass")
    log = read_run(tmp_path, "r")
    assert log.ops == [
        OpRow("r", 1, 10**9, "p1", 1, "publish", "invoke", "orders", "ab", wire_key="0"),
        OpRow("r", 2, 2 * 10**9, "p1", 1, "publish", "info", "orders", "ab", error="timeout"),
        OpRow("r", 3, 3 * 10**9, "p1", None, "connection_lost", "event", note="reset"),
    ]
    assert log.metrics == [MetricRow("r", 4, 4 * 10**9, "loop_lag_ms", 0.5)]
    assert (log.run.client, log.run.client_version, log.run.seed) == ("rstream", "1.1", 7)
    assert (log.run.verdict, log.run.ended, log.run.torn) == ("pass", True, False)
    assert log.run.started_ms > 1_600_000_000_000


def test_both_files_are_merged_by_time_without_reordering_either(tmp_path: Path) -> None:
    journal = Journal(FRAMES)
    journal.sink = run = RunJournal(tmp_path, "r", run="r")
    for at in (2.0, 1.0, 4.0):  # a clock that was read late
        journal.add(at, "c1", Tap.IN, Note(at), 1)
    for at in (0.5, 3.0, 5.0):
        run.op(at, "p", None, "deliver", "ok")
    journal.sink = None
    run.close()
    log = read_run(tmp_path, "r")
    assert [row.seq for row in log.ops] == [1, 4, 6]
    assert [row.keys for row in log.frames] == [("2.0",), ("1.0",), ("4.0",)]
    assert [row.seq for row in log.frames] == [2, 3, 5]


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 300])
def test_names_that_could_leave_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="name of a run"):
        RunJournal(tmp_path, name)


def test_wrong_use_is_told(tmp_path: Path) -> None:
    run = RunJournal(tmp_path, "r", run="r")
    with pytest.raises(UsageError, match="already"):
        RunJournal(tmp_path, "r", run="r")
    with pytest.raises(UsageError, match="attributes of a run, got colour"):
        run.attributes(colour="red")
    with pytest.raises(UsageError, match="read it from there"):
        run.log()
    run.close()
    run.close()


def test_values_are_named_by_their_digest() -> None:
    assert value_id(b"hello") == "2cf24dba5fb0a30e"


def test_keys_as_text() -> None:
    assert [key_text(k) for k in (5, "a", b"a", b"\n", b"\x80")] == ["5", "a", "a", "0x0a", "0x80"]


# values that do not fit


def test_a_value_that_does_not_fit_costs_that_value_and_nothing_else(tmp_path: Path) -> None:
    run = RunJournal(tmp_path, "r", run="r", seed=1 << 70, client=5, faults=1 << 63, verdict="pass")
    run.op(1.0, "p", 1 << 80, "publish", "ok", key={"a": 1}, value=7, offset=1 << 64, note="n")  # type: ignore[arg-type]
    run.op(1.1, "p", 1, "publish", "ok", offset="first")  # type: ignore[arg-type]
    run.op("soon", "p", 1, "publish", "ok")  # type: ignore[arg-type]
    run.event(1.2, None, "x")  # type: ignore[arg-type]
    run.op(1.3, "p", 2, "publish", "ok", offset=(1 << 64) - 1)
    run.close()
    log = read_run(tmp_path, run.run)
    assert [(op.op_id, op.key, op.value, op.offset, op.note) for op in log.ops] == [
        (None, "{'a': 1}", "7", None, f"n; op_id {1 << 80} does not fit; offset {1 << 64} does not fit"),
        (1, None, None, None, "offset first does not fit"),
        (None, None, None, None, ""),
        (2, None, None, (1 << 64) - 1, ""),
    ]
    assert (log.run.ended, log.run.torn, log.run.verdict) == (True, False, "pass")
    assert (log.run.seed, log.run.client, log.run.faults) == (None, "", 0)
    assert (
        log.run.note == f"client 5 does not fit; seed {1 << 70} does not fit; faults {1 << 63} does not fit"
    )


@pytest.mark.parametrize("status", [1 << 63, 1 << 70, "what?"])
def test_a_status_that_is_no_number_of_64_bits_is_named_in_the_note(status: Any) -> None:
    (row,) = written(RunJournal(None, "r", run="r"), Stored((1,), status))
    assert (row.status, row.note, row.key_first) == (None, f"status {status} does not fit", 1)


ANYTHING = st.none() | st.integers() | st.text() | st.binary() | st.floats()


@given(
    st.recursive(ANYTHING, lambda inner: st.lists(inner) | st.tuples(st.integers(0, 6), inner), max_leaves=9)
)
def test_no_line_whatever_it_holds_ends_the_file(line: Any) -> None:
    block = encode([line, (3, 1.0, "p", "after", "")])
    _, found, torn = split(MAGIC + LENGTH.pack(len(block)) + block, "x")
    assert not torn and isinstance(found[-1], EventLine) and found[-1].what == "after"


# torn ends


def test_every_torn_end_gives_the_lines_before_it(tmp_path: Path) -> None:
    run = RunJournal(tmp_path, "r", run="r")
    for number in range(5):
        run.event(float(number), "p", f"e{number}")
    run.close()
    path = tmp_path / "r.ops"
    whole = path.read_bytes()
    counts = []
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        log = read_run(tmp_path, "r")
        assert [op.f for op in log.ops] == [f"e{n}" for n in range(len(log.ops))]
        counts.append(len(log.ops))
    assert counts == sorted(counts) and set(counts) == set(range(6))


@pytest.mark.parametrize("torn", ["wire", "ops"])
def test_a_run_of_which_a_file_is_torn_has_not_ended(tmp_path: Path, torn: str) -> None:
    run = RunJournal(tmp_path, "r")
    run.event(1.0, "p", "e")
    run.close(verdict="pass")
    path = tmp_path / f"{run.run}.{torn}"
    path.write_bytes(path.read_bytes() + b"\0")
    row = read_run(tmp_path, run.run).run
    assert (row.torn, row.ended, row.verdict) == (True, False, "pass")


def test_a_block_whose_length_was_never_written_is_not_there(tmp_path: Path) -> None:
    block = encode([(3, 1.0, "p", "e", "")])
    good = LENGTH.pack(len(block)) + block
    (tmp_path / "r.ops").write_bytes(MAGIC + good + LENGTH.pack(0) + block + good)
    log = read_run(tmp_path, "r")
    assert (len(log.ops), log.run.torn) == (1, True)


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"PK\x03\x04 something else", "expected a journal file"), (MAGIC[:-1] + b"\x63", "got version 99")],
)
def test_foreign_files_and_versions_are_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "r.ops").write_bytes(content)
    with pytest.raises(UsageError, match=problem):
        read_run(tmp_path, "r")


KILLED = """
import os, signal, sys
from pathlib import Path
from fakebrokers.core.frames import Frame, FrameSpec, Role
from fakebrokers.journal import Journal, RunJournal, Tap

class Beat(Frame, frozen=True):
    n: int

journal = Journal({Beat: FrameSpec(Role.HEARTBEAT, "n")})
journal.sink = run = RunJournal(Path(sys.argv[1]), "r", run="r")
for turn in range(1000):
    for n in range(20):
        journal.add(float(turn), "c1", Tap.OUT, Beat(20 * turn + n), 4)
    if turn < 999:
        journal.flush()
run.op(1.0, "p", 1, "publish", "invoke")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_kill_loses_at_most_the_last_turn_of_the_loop(tmp_path: Path) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], check=False, cwd=HERE.parent.parent
    )
    assert killed.returncode == -signal.SIGKILL
    assert not is_being_written(tmp_path / "r.wire")
    log = read_run(tmp_path, "r")
    assert [row.key_first for row in log.frames] == list(range(20 * 999))
    assert [op.f for op in log.ops] == ["publish"]
    assert log.run.torn and not log.run.ended


def test_files_grow_by_windows_and_hold_blocks_of_any_size(tmp_path: Path) -> None:
    segment = Segment(tmp_path / "s.ops", window=4096)
    sizes = [10, 5000, 3, 100_000, 1, 4096, 4080, 70_000]
    for size in sizes:
        segment.append([(3, float(size), "p", "x" * size, "")])
    assert is_being_written(tmp_path / "s.ops") or os.name == "nt"
    segment.close()
    segment.close()
    assert not is_being_written(tmp_path / "s.ops")
    assert [len(op.f) for op in read_run(tmp_path, "s").ops] == sizes
    assert (tmp_path / "s.ops").stat().st_size < sum(sizes) + 1000


# the schema


def test_the_version_of_the_schema() -> None:
    assert SCHEMA_VERSION == 2


def test_a_journal_that_version_1_wrote_can_still_be_read() -> None:
    folder = HERE / "v1"
    assert runs_in(folder) == ["old"]
    log = read_run(folder, "old")
    assert log.run.client == "rstream" and log.run.verdict == "fail" and log.run.ended
    assert (log.run.run, log.run.name) == (log.frames[0].run, "old") and log.run.run.startswith("old~")
    assert [(f.kind, f.tap, f.key_first, f.keys, f.scope) for f in log.frames] == [
        ("accepted", "state", None, (), ""),
        ("Put", "in", 0, (), "1"),
        ("Stored", "said", None, ("0", "2"), ""),
    ]
    assert [(o.f, o.outcome, o.value) for o in log.ops] == [
        ("publish", "invoke", "2cf24dba5fb0a30e"),
        ("publish", "ok", "2cf24dba5fb0a30e"),
        ("connection_lost", "event", None),
    ]
    assert [m.name for m in log.metrics] == ["loop_lag_ms"]


def test_writing_needs_neither_arrow_nor_spark() -> None:
    code = (
        "import sys, fakebrokers.server, fakebrokers.journal.seal\n"
        "assert not {'pyarrow', 'pyspark', 'numpy', 'pandas'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=HERE.parent.parent)
