"""Messages that survive the process that kept them."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fakebrokers.errors import UsageError
from fakebrokers.pzq.broker import PzqBroker
from fakebrokers.pzq.store import Message, SqliteStore, Store, StoreError

BINARY = (b"\x00\xff", b"", b"body")


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store() if request.param == "memory" else SqliteStore(tmp_path / "pzq.db")


def test_messages_come_and_go(store: Store) -> None:
    store.put(Message(b"k2", b"2", BINARY))
    store.put(Message(b"k1", b"1", (b"x",)))
    assert len(store) == 2
    assert store.size == 2 + 8 * 3 + 6 + 2 + 8 + 1
    store.put(Message(b"k1", b"1", (b"longer",)))
    assert store.get(b"k1") == Message(b"k1", b"1", (b"longer",))
    store.remove(b"k2")
    assert store.get(b"k2") is None
    assert store.size == 2 + 8 + 6
    with pytest.raises(KeyError):
        store.remove(b"k2")
    store.clear()
    assert (len(store), store.size, list(store)) == (0, 0, [])
    store.close()


def test_a_file_gives_back_what_it_was_given(tmp_path: Path) -> None:
    path = tmp_path / "pzq.db"
    store = SqliteStore(path)
    for name in (b"c", b"a", b"b"):
        store.put(Message(name, name, BINARY))
    store.remove(b"b")
    store.close()
    again = SqliteStore(path)
    assert list(again) == [Message(b"a", b"a", BINARY), Message(b"c", b"c", BINARY)]
    assert again.size == store.size
    again.close()


def test_a_file_that_is_something_else(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no database at all, but long enough to be looked at " * 20)
    with pytest.raises(UsageError, match=r"notes\.txt"):
        SqliteStore(path)


def test_a_full_disk_is_told_to_the_producer(tmp_path: Path, make_daemon: Any) -> None:
    path = tmp_path / "pzq.db"
    store = SqliteStore(path)
    other = sqlite3.connect(path)
    daemon = make_daemon(store=store)
    producer = daemon.producer()
    store._file.execute("pragma busy_timeout = 0")
    other.execute("begin exclusive")
    producer.send(b"i", b"", b"x")
    other.rollback()
    producer.send(b"i", b"", b"x")
    refused, stored = producer.take()
    assert refused == (b"i", b"0", b"", b"database is locked")
    assert stored == (b"i", b"1", b"")
    assert daemon.report()["messages"] == 1
    other.close()
    store.close()


KILLED = """
import sys
from fakebrokers.pzq.broker import PzqBroker
from fakebrokers.pzq.store import SqliteStore
broker = PzqBroker(store=SqliteStore(sys.argv[1]))
for number in range(100_000):
    key = broker.put((b"%d" % number,), number / 1000)
    print(key.decode(), flush=True)
"""


def test_a_killed_process_loses_no_acknowledged_message(tmp_path: Path) -> None:
    path = tmp_path / "pzq.db"
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    acknowledged = [child.stdout.readline() for _ in range(200)]
    os.kill(child.pid, signal.SIGKILL)
    acknowledged += child.stdout.readlines()
    child.stdout.close()
    child.wait()
    keys = {line.strip().encode() for line in acknowledged if line.endswith("\n")}
    store = SqliteStore(path)
    broker = PzqBroker(store=store)
    assert len(keys) >= 200
    assert keys <= {message.key for message in store}
    assert broker.waiting == len(store)
    store.close()


def test_an_error_of_the_file_leaves_memory_as_it_was(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "pzq.db")
    store._file.execute("drop table message")
    with pytest.raises(StoreError, match="no such table"):
        store.put(Message(b"k", b"1", (b"x",)))
    assert (len(store), store.size) == (0, 0)
    store.close()
