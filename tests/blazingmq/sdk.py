"""The C++ SDK in its Python wheel, always in a process of its own: it aborts under some faults.

done = run(broker, '''
    client.open(Q)
    client.post(Q, b"x")
    client.wait(acks=1)
    tell(acks=client.acks)
''')
assert done.told["acks"] == ["SUCCESS"]
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import pytest

from fakebrokers.blazingmq.server import BlazingMQ
from fakebrokers.server import FakeServer
from tests.eventually import PATIENCE_S

MISSING = "missing: the C++ SDK (pip install blazingmq==1.2.2)"
PROGRAMS = Path(__file__).with_name("programs")

PRELUDE = (
    f"PATIENCE_S = {PATIENCE_S}"
    + """
import json, sys, time
import blazingmq
from blazingmq import BasicHealthMonitor, CompressionAlgorithmType, PropertyType, QueueOptions, Timeouts
Q = "bmq://bmq.test.mem.priority/q"
FANOUT = "bmq://bmq.test.mem.fanout/q"
BROADCAST = "bmq://bmq.test.mem.broadcast/q"

class Client:
    def __init__(self, confirm=True, **options):
        self.acks, self.messages, self.handles, self.events = [], [], [], []
        self._confirm = confirm
        options.setdefault("timeout", PATIENCE_S)
        self.session = blazingmq.Session(self._on_event, self._on_message, **options)
        self.open = self.session.open_queue
        self.close = self.session.close_queue
        self.stop = self.session.stop

    def _on_event(self, event):
        self.events.append(type(event).__name__)

    def _on_message(self, message, handle):
        self.messages.append((message.queue_uri, message.data, dict(message.properties)))
        if self._confirm:
            handle.confirm()
        else:
            self.handles.append(handle)

    def post(self, uri, data, ack=True, **properties):
        on_ack = (lambda answer: self.acks.append(answer.status.name)) if ack else None
        self.session.post(uri, data, properties=properties or None, on_ack=on_ack)

    def wait(self, acks=0, messages=0, event=None):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if len(self.acks) >= acks and len(self.messages) >= messages and event in (None, *self.events):
                return
            time.sleep(0.005)
        raise SystemExit(f"this did not come: {self.acks} {self.messages} {self.events}")

def tell(**found):
    print(json.dumps(found, default=repr), flush=True)

def go_on():
    sys.stdin.readline()
"""
)


class Done(NamedTuple):
    """How a program ended; a negative code is the number of a signal."""

    code: int
    told: dict[str, Any]
    errors: str


def need_sdk() -> None:
    """Skip where the wheel is not installed."""
    pytest.importorskip("blazingmq", reason=MISSING)


def start(broker: FakeServer, program: str, prepare: str = "client = Client()") -> subprocess.Popen[str]:
    """Start a program with a client; it can `tell` something, and waits for a line in `go_on`."""
    source = f"{PRELUDE}\n{prepare}\n{dedent(program)}\n"
    return subprocess.Popen(
        [sys.executable, "-c", source],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"BMQ_BROKER_URI": broker.url},
    )


def told(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What a program tells next."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, finish(process)
    found: dict[str, Any] = json.loads(line)
    return found


def let_go_on(process: subprocess.Popen[str]) -> None:
    """End the program's `go_on`."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def finish(process: subprocess.Popen[str], timeout: float = 2 * PATIENCE_S) -> Done:
    """Wait for a program's end."""
    try:
        out, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, errors = process.communicate()
        raise AssertionError(f"the program hangs: {out} {errors}") from None
    lines = [line for line in out.splitlines() if line.startswith("{")]
    return Done(process.returncode, json.loads(lines[-1]) if lines else {}, errors)


def run(broker: FakeServer, program: str, prepare: str = "client = Client()") -> Done:
    """Run a program to its end, which must be a good one."""
    done = finish(start(broker, program, prepare))
    assert done.code == 0, done
    return done


def run_program(broker: BlazingMQ, name: str, *arguments: str) -> subprocess.Popen[str]:
    """One of the documented programs."""
    return subprocess.Popen(
        [sys.executable, str(PROGRAMS / name), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"BMQ_BROKER_URI": broker.url},
    )
