"""`FakeServer(journal_dir=...)` and ``serve --journal`` write down what the fake saw."""

from __future__ import annotations

import importlib.util
import socket
import sys
from pathlib import Path
from types import ModuleType

from fakebrokers.journal.reader import read_run, runs_in


def _toy() -> ModuleType:
    spec = importlib.util.spec_from_file_location("toy_for_journal", Path(__file__).parents[1] / "toy.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_conversation_is_on_disk_as_soon_as_it_is_answered(tmp_path: Path) -> None:
    toy = _toy()
    broker = toy.Toy(journal_dir=tmp_path, seed=3)
    with broker, socket.create_connection(("127.0.0.1", broker.port)) as client:
        client.sendall(b"hello me\nput a,b body\n")
        while b"stored" not in client.recv(100):
            pass
        (run,) = runs_in(tmp_path)
        broker.call(lambda: None)  # the turn that answered has ended
        kinds = [row.kind for row in read_run(tmp_path, run).frames]
        assert kinds == ["accepted", "Hello", "Welcome", "Put", "Stored"]
        assert not read_run(tmp_path, run).run.ended
    log = read_run(tmp_path, run)
    assert (log.run.protocol, log.run.seed, log.run.ended, log.run.torn) == ("toy", 3, True, False)
    assert [row.keys for row in log.frames if row.kind == "Put"] == [("a", "b")]
    with toy.Toy(journal_dir=tmp_path):
        pass
    assert len(runs_in(tmp_path)) == 2
