"""Waiting in tests: for what happens, however long a busy machine takes, and for what must not happen."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

#: Seconds after which a test gives up what it waits for. Nobody waits that long where all is well: a busy
#: machine makes a test slower, and only what hangs makes it fail.
PATIENCE_S = 120.0

#: Seconds in which nothing may come. A slow machine only makes such a look less thorough.
QUIET_S = 0.05


def eventually(condition: Callable[[], T], what: Any = "it", *, patience_s: float = PATIENCE_S) -> T:
    """Wait until the condition holds; returns what it gave.

    Args:
        condition: Asked again and again. It raises where it cannot hold any more.
        what: What did not happen, for the message; a function is asked when it did not.
        patience_s: More than `PATIENCE_S`, for programs that need minutes on a busy machine.
    """
    end, pause_s = time.monotonic() + patience_s, 0.002
    while not (found := condition()):
        if time.monotonic() > end:
            pytest.fail(f"did not happen: {what() if callable(what) else what}")
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.2, 0.1)  # who waits long leaves the processor to others
    return found


async def eventually_async(condition: Callable[[], T | Awaitable[T]], what: Any = "it") -> T:
    """`eventually`, for async code; where time is virtual, so are these seconds."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE_S
    while True:
        found = condition()
        if isinstance(found, Awaitable):
            found = await found
        if found:
            return found
        if loop.time() > end:
            pytest.fail(f"did not happen: {what() if callable(what) else what}")
        await asyncio.sleep(0.005)


def settles(value: Callable[[], T], turn: Callable[[], object], turns: int = 50) -> T:
    """The value once it has stayed the same in as many turns: a pipe is full, say."""
    before, same = value(), 0
    while same < turns:
        turn()
        now = value()
        before, same = now, same + 1 if now == before else 0
    return before


def nothing_comes(sock: socket.socket) -> None:
    """Nothing is there to be read, no end either, and nothing comes for a moment."""
    before = sock.gettimeout()
    sock.settimeout(QUIET_S)
    with pytest.raises(TimeoutError):
        sock.recv(1, socket.MSG_PEEK)
    sock.settimeout(before)


@contextmanager
def takes_at_least(seconds: float) -> Iterator[None]:
    """What is done inside takes real time: where a real clock and a real socket are the point.

    An upper limit would be one on the machine. What takes a thousand times as long, as where a unit is
    mistaken, is more than anybody's patience.
    """
    began = time.monotonic()
    yield
    assert time.monotonic() - began >= seconds
