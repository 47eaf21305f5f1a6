"""A node of the Rust crate ``moleculer`` 0.4.1 joins the embedded NATS server, answers a call, and calls.

There is no adapter for it, as little of what scenarios ask for can be asked of the crate: a broker cannot be
stopped (lib.rs has ``start`` alone), whether it has joined is told to nobody and a connect that fails is a
panic in a task of its own (channels.rs), a service that is added later is announced to nobody (broker.rs
``add_service``), callbacks are function pointers, and a call can neither fail nor time out, as the last test
shows.
"""

from __future__ import annotations

import select
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakebrokers import Moleculer
from fakebrokers.moleculer.node import Node
from tests.cargo import build
from tests.eventually import PATIENCE_S

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]  # the build of all crates takes minutes

Process = subprocess.Popen[str]


def fails(context: Any) -> None:
    raise ValueError("no")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The node, built."""
    source = Path(__file__).with_name("rust_node.rs")
    return build(source, tmp_path_factory.mktemp("rust"), "--no-default-features")


@pytest.fixture
def bus() -> Iterator[Moleculer]:
    with Moleculer() as moleculer:
        yield moleculer


@pytest.fixture
def python(bus: Moleculer) -> Node:
    return bus.node("python-1", {"hello": {"say": lambda ctx: f"hi {ctx.params['to']}", "fail": fails}})


@pytest.fixture
def rust(bus: Moleculer, python: Node, program: Path) -> Iterator[Process]:
    """A process of it that has joined; its stdin takes calls."""
    pipe = subprocess.PIPE
    with subprocess.Popen([program, bus.url], stdin=pipe, stdout=pipe, text=True) as process:
        try:
            bus.wait_for(kind="Info", count=4, timeout=PATIENCE_S)  # its own, and python-1's, in and out
            yield process
        finally:
            process.kill()


def said(process: Process, action: str, params: str, timeout: float = PATIENCE_S) -> str | None:
    """What the node says of a call; nothing if it says nothing within the time."""
    assert process.stdin is not None and process.stdout is not None
    print(action, params, file=process.stdin, flush=True)
    ready, _, _ = select.select([process.stdout], [], [], timeout)
    return process.stdout.readline() if ready else None


def test_it_joins_answers_and_calls(python: Node, rust: Process) -> None:
    assert said(rust, "hello.say", '{"to": "rust"}') == 'Ok(String("hi rust"))\n'
    assert python.call("math.add", {"a": 2, "b": 3}, timeout=PATIENCE_S) == 5


def test_a_call_that_fails_has_no_end(rust: Process) -> None:
    """Its errors have codes of eight bits (messages.rs ``MoleculerError``), and one of 500 is not told."""
    assert said(rust, "hello.fail", "{}", timeout=1.5) is None, "the node says now what became of a call"
