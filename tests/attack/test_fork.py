"""A process that forks while fakes run: the child ends, and takes nothing away from its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fakebrokers.journal.reader import read_run, runs_in
from fakebrokers.journal.segment import is_being_written
from tests.eventually import PATIENCE_S

if not hasattr(os, "fork"):
    pytest.skip("this platform has no fork", allow_module_level=True)

#: What each program begins with.
HEAD = """
import os, signal, socket, sys
from pathlib import Path
import fakebrokers
from fakebrokers.errors import UsageError
from tests.eventually import eventually

def lives(port):
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(bytes.fromhex("0000000c 0011 0001 00000001 00000000"))
        return sock.recv(4) != b""

def reaped(pid):
    "Its exit code; killed if it does not end."
    try:
        ended = eventually(lambda: (found := os.waitpid(pid, os.WNOHANG))[0] and found, "the child ends")
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    return os.waitstatus_to_exitcode(ended[1])

def wait_for_a_signal():
    signal.alarm(100)
    signal.pause()
"""


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", HEAD + program],
        capture_output=True, text=True, check=False, timeout=PATIENCE_S, start_new_session=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("kind", ["RabbitMQStream(tls=True, management=True)", "PZQ(proxied=True)",
                                  "Narconi(tls=True)", "BlazingMQ()", "Moleculer()"])  # fmt: skip
def test_a_child_that_leaves_the_with_block_ends_and_its_parent_goes_on(kind: str) -> None:
    program = f"""
with fakebrokers.{kind} as broker:
    folder = broker.tls and broker.tls.ca_file
    broker.expect(role="publish", count=0)
    pid = os.fork()
    if pid == 0:
        sys.exit(7)  # through the end of the block, and of the interpreter
    print(reaped(pid), broker.runs, folder is None or folder.exists())
    socket.create_connection(("127.0.0.1", broker.port)).close()
print(folder is None or not folder.exists())
"""
    assert run(program).split() == ["7", "True", "True", "True"]


def test_a_child_that_comes_to_the_end_by_itself() -> None:
    program = """
with fakebrokers.RabbitMQStream(tls=True) as broker:
    broker.expect(role="publish", count=1)
    pid = os.fork()
    if pid:
        print(reaped(pid), lives(broker.port), broker.tls.ca_file.exists())
        broker.expectations.clear()
if pid == 0:
    print(broker.runs, flush=True)
"""
    assert run(program).split() == ["False", "0", "True", "True"]


def test_a_child_is_told_that_the_fake_is_not_its_own_and_may_have_one() -> None:
    program = """
broker = fakebrokers.RabbitMQStream().start()
pid = os.fork()
if pid == 0:
    try:
        broker.create_stream("orders")
    except UsageError as error:
        print(error, flush=True)
    broker.stop()
    with fakebrokers.RabbitMQStream() as own:
        print(lives(own.port), flush=True)
    broker.start()
    print(lives(broker.port), flush=True)
    broker.stop()
    sys.exit()
print(reaped(pid), lives(broker.port))
broker.stop()
"""
    assert run(program).splitlines() == [
        "this rabbitmq-stream fake runs in the parent of this process",
        "True",
        "True",
        "0 True",
    ]


def test_a_fork_while_another_thread_stops_and_starts() -> None:
    """The lock of that thread does not come along."""
    program = """
import threading
broker = fakebrokers.RabbitMQStream().start()
ends = threading.Event()

def restart():
    while not ends.is_set():
        broker.stop()
        broker.start()

thread = threading.Thread(target=restart)
thread.start()
codes = set()
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        broker.stop()
        os._exit(0)
    codes.add(reaped(pid))
ends.set()
thread.join()
broker.stop()
print(codes)
"""
    assert run(program) == "{0}"


def test_a_child_that_starts_the_fake_again_writes_nothing_into_its_parents_journal(tmp_path: Path) -> None:
    program = f"""
broker = fakebrokers.RabbitMQStream(journal_dir={str(tmp_path)!r}).start()
lives(broker.port)
broker.journal.state(0.0, "", "not written down yet")
pid = os.fork()
if pid == 0:
    broker.start()
    lives(broker.port)
    broker.stop()
    broker.check()
    os._exit(0)
print(reaped(pid), lives(broker.port))
broker.stop()
broker.check()
"""
    assert run(program) == "0 True"
    runs = [read_run(tmp_path, run) for run in runs_in(tmp_path)]
    assert [log.run.torn for log in runs] == [False, False]
    told = [[frame.kind for frame in log.frames].count("not written down yet") for log in runs]
    assert sorted(told) == [0, 1]


def test_a_child_does_not_keep_its_dead_parents_journal_open(tmp_path: Path) -> None:
    program = f"""
broker = fakebrokers.RabbitMQStream(journal_dir={str(tmp_path)!r}).start()
lives(broker.port)
pid = os.fork()
if pid == 0:
    print(os.getpid(), flush=True)
    os.close(1)
wait_for_a_signal()
"""
    with subprocess.Popen(
        [sys.executable, "-c", HEAD + program], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            (wire,) = tmp_path.glob("*.wire")
            assert is_being_written(wire)
            parent.kill()
            parent.wait(PATIENCE_S)
            os.kill(child, 0)  # it is there
            assert not is_being_written(wire)
        finally:
            os.kill(child, signal.SIGKILL)


def test_the_port_of_a_stopped_parent_is_free_while_its_child_lives() -> None:
    program = """
broker = fakebrokers.RabbitMQStream().start()
pid = os.fork()
if pid == 0:
    os.close(1)
    wait_for_a_signal()
broker.stop()

def is_free():
    try:
        socket.create_server(("127.0.0.1", broker.port)).close()
    except OSError:  # the child has not come so far yet
        return False
    return True

eventually(is_free)
os.kill(pid, 9)
print(reaped(pid))
"""
    assert run(program) == "-9"
