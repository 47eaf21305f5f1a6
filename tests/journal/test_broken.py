"""A journal that cannot be written down says so, ends torn, and is nobody else's trouble."""

from __future__ import annotations

import errno
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fakebrokers.errors import JournalError
from fakebrokers.journal import Journal, RunJournal, Tap
from fakebrokers.journal.reader import RunLog, read_run, runs_in
from fakebrokers.journal.segment import Segment, is_being_written
from tests.eventually import PATIENCE_S, eventually
from tests.toy import FRAMES, Get, Toy

ROOT = Path(__file__).parents[2]


def the_run(folder: Path) -> RunLog:
    (run,) = runs_in(folder)
    return read_run(folder, run)


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file grows any more."""
    first = Segment._mapped

    def mapped(segment: Segment, size: int) -> Any:
        if segment._base:
            raise OSError(errno.ENOSPC, "No space left on device")
        return first(segment, size)

    monkeypatch.setattr(Segment, "_mapped", mapped)


def fill(journal: Journal) -> None:
    """More than a file takes without growing."""
    for number in range(24):
        journal.state(float(number), "c1", "what", "x" * 50_000)
        journal.flush()


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_is_told_and_the_journal_in_memory_goes_on(tmp_path: Path) -> None:
    journal = Journal(FRAMES)
    journal.sink = run = RunJournal(tmp_path, "r")
    fill(journal)
    journal.add(99.0, "c1", Tap.IN, Get("after"), 6)
    journal.flush()
    assert journal.sink is None
    assert [record.kind for record in journal] == ["what"] * 24 + ["Get"]
    run.op(99.0, "p", 1, "publish", "invoke")
    run.close(verdict="pass")
    told = journal.pop_failure()
    assert isinstance(told, JournalError) and told is run.failure
    assert told.path == tmp_path / f"{run.run}.wire"
    assert "No space left on device; nothing from record 21 on is recorded" in str(told)
    assert journal.pop_failure() is None
    log = the_run(tmp_path)
    assert (log.run.ended, log.run.torn, log.run.verdict) == (False, True, "pass")
    assert log.run.note == str(told)
    assert len(log.frames) == 20
    assert [op.f for op in log.ops] == ["publish"]


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_for_the_runner_too(tmp_path: Path) -> None:
    run = RunJournal(tmp_path, "r")
    for number in range(20):
        run.event(float(number), "p", "e", "x" * 5000)
    run.close(verdict="pass")
    assert run.failure is not None and run.failure.path == tmp_path / f"{run.run}.ops"
    log = the_run(tmp_path)
    assert (log.run.ended, log.run.torn, log.run.verdict) == (False, True, "")
    assert len(log.ops) == 13


def test_a_frame_that_cannot_be_taken_down_ends_the_run_the_same_way(tmp_path: Path) -> None:
    journal = Journal(FRAMES)
    journal.sink = run = RunJournal(tmp_path, "r")
    journal.add(1.0, "c1", Tap.IN, Get("a"), 6)
    journal.flush()
    run._plans.clear()
    journal._frames.pop(Get)
    spec_less = journal._frames
    journal.add(1.0, "c1", Tap.IN, Get("b"), 6)
    journal.flush()
    assert Get not in spec_less
    assert "KeyError" in str(journal.pop_failure())
    run.close()
    assert (the_run(tmp_path).run.torn, len(the_run(tmp_path).frames)) == (True, 1)


@pytest.mark.parametrize("last", [3, 4])
def test_an_abandoned_file_ends_torn_even_where_it_is_full(tmp_path: Path, last: int) -> None:
    segment = Segment(tmp_path / "s.ops", window=4096)
    segment.append([(3, 1.0, "p", "e", "")])
    room = segment._size - segment._at
    segment.append([(3, 1.0, "p", "x" * (room - 20 - last), "")])
    segment.abandon()
    segment.close()
    log = read_run(tmp_path, "s")
    assert (len(log.ops), log.run.torn) == (2, True)


def test_both_files_or_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match="Not a directory; nothing is recorded") as told:
        RunJournal(tmp_path / "file" / "journal", "r")
    assert told.value.path == tmp_path / "file" / "journal"


def test_a_file_that_cannot_be_made_leaves_no_other_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Segment._mapped

    def mapped(segment: Segment, size: int) -> Any:
        if segment.path.suffix == ".wire":
            raise OSError(errno.ENOSPC, "No space left on device")
        return first(segment, size)

    monkeypatch.setattr(Segment, "_mapped", mapped)
    with pytest.raises(JournalError, match="No space left on device"):
        RunJournal(tmp_path, "r")
    assert list(tmp_path.iterdir()) == []


# a fake that writes a journal


@pytest.mark.usefixtures("full_disk")
def test_clients_do_not_notice_and_the_test_does(tmp_path: Path) -> None:
    broker = Toy(journal_dir=tmp_path).start()
    clients = [socket.create_connection(("127.0.0.1", broker.port)) for _ in range(2)]
    for client in clients:
        client.sendall(b"hello me\n")
        assert client.recv(100) == b"welcome\n"
    broker.call(lambda: fill(broker.journal))
    late = socket.create_connection(("127.0.0.1", broker.port))
    late.sendall(b"hello me\n")
    assert late.recv(100) == b"welcome\n"
    for client in (*clients, late):
        client.sendall(b"put a,b body\n")
        assert b"stored" in client.recv(100)
        client.close()
    broker.stop()
    assert len(broker.journal.select(kind="Stored")) == 3
    with pytest.raises(JournalError, match="No space left on device"):
        broker.check()
    broker.check()
    assert (the_run(tmp_path).run.ended, the_run(tmp_path).run.torn) == (False, True)


@pytest.mark.skipif(os.name == "nt", reason="Windows does not remove a file that is open")
def test_a_folder_that_was_removed_is_told(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="was removed"), Toy(journal_dir=tmp_path / "j"):
        shutil.rmtree(tmp_path / "j")


def test_a_folder_that_cannot_be_made_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    broker = Toy(journal_dir=tmp_path / "file" / "j")
    with pytest.raises(JournalError, match="Not a directory"):
        broker.start()
    broker.stop()


SERVE = """
import resource, sys
from fakebrokers.cli import main
from fakebrokers.journal import segment
segment.Segment.__init__.__defaults__ = (4096,)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
main(["serve", "narconi", "--journal", sys.argv[1]])
"""


@pytest.mark.skipif(os.name == "nt", reason="no limit of a file's size here")
def test_serve_says_that_its_journal_broke_off_goes_on_and_ends_with_an_error(tmp_path: Path) -> None:
    served = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert served.stdout is not None
    address = served.stdout.readline().split()[2].partition("//")[2]
    client = http.client.HTTPConnection(address.rstrip("/"), timeout=PATIENCE_S)
    for _ in range(1500):
        client.request("GET", "/nothing")
        client.getresponse().read()
    client.close()
    served.send_signal(signal.SIGTERM)
    _, errors = served.communicate(timeout=60)
    assert served.returncode == 3
    assert "File too large; nothing from record" in errors
    assert errors.startswith("Error: ") and "Traceback" not in errors
    assert errors.count("\n") == 1  # said once, though the end of the journal tells of it again
    log = the_run(tmp_path)
    assert (log.run.ended, log.run.torn) == (False, True) and log.frames


def test_serve_into_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    command = ["serve", "narconi", "--journal", str(tmp_path / "file" / "j")]
    done = subprocess.run(
        [sys.executable, "-m", "fakebrokers", *command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert "cannot write the journal: Not a directory" in done.stderr
    assert "Traceback" not in done.stderr


# processes

FORKED = """
import os, signal, sys, time
from pathlib import Path
from fakebrokers.journal import RunJournal
run = RunJournal(Path(sys.argv[1]), "r")
run.event(1.0, "p", "parent")
child = os.fork()
if child == 0:
    run.event(2.0, "p", "child")
    run.close()
    print(os.getpid(), flush=True)
    sys.stdout.close()
    time.sleep(600)
sys.stdin.read(1)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_neither_holds_the_files_nor_writes_to_them(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", FORKED, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert parent.stdin is not None and parent.stdout is not None
    child = int(parent.stdout.readline())
    try:
        files = [*tmp_path.glob("*.wire"), *tmp_path.glob("*.ops")]
        assert len(files) == 2 and all(map(is_being_written, files))
        parent.stdin.write("x")
        parent.stdin.flush()
        parent.wait(60)
        os.kill(child, 0)
        # the child may not have run yet since the fork
        eventually(lambda: not any(map(is_being_written, files)))
    finally:
        os.kill(child, signal.SIGKILL)
        parent.stdout.close()
        parent.stdin.close()
    log = the_run(tmp_path)
    assert [op.f for op in log.ops] == ["parent"]
    assert (log.run.ended, log.run.torn) == (False, True)
