"""The one loop thread per process that carries all fakes.

It starts with the first fake and is a daemon thread: it never keeps a process alive. A forked
child starts its own. Everything that a test says to a fake from another thread is carried out on
the loop thread, so the cores need no locks.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from fakebrokers.core.clock import monotonic
from fakebrokers.errors import UsageError

T = TypeVar("T")


class LoopHandle(Protocol):
    """The loop that a fake runs on: that of the loop thread, or the caller's own."""

    loop: asyncio.AbstractEventLoop

    def call(self, act: Callable[..., T], *arguments: Any) -> T:
        """Run `act` there and wait for what it returns or raises."""

    def post(self, act: Callable[[], Any]) -> None:
        """Run `act` there, some time soon."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and wait for it."""


class InsideLoop:
    """The caller's own running loop: everything is carried out on the spot."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop

    def call(self, act: Callable[..., T], *arguments: Any) -> T:
        """Run `act`."""
        return act(*arguments)

    def post(self, act: Callable[[], Any]) -> None:
        """Run `act` at the next turn."""
        self.loop.call_soon(act)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine that never waits for anything."""
        try:
            work.send(None)
        except StopIteration as stop:
            result: T = stop.value
            return result
        work.close()
        raise RuntimeError("this would wait on the loop that it runs on")


def refuse_to_block(method: str, *, inside: bool) -> None:
    """Raise `UsageError` where a method that waits would keep everything else from running.

    Args:
        method: Its name; its async twin is called ``METHOD_async``.
        inside: Whether the fake runs on its caller's loop, so that nothing happens while the caller waits.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        if not inside:
            return
    raise UsageError(f"{method} would block the event loop that it is called in: await {method}_async")


class _RealTimeLoop(asyncio.SelectorEventLoop):
    """Timers go by a clock that no test can freeze."""

    def time(self) -> float:
        return monotonic()


class LoopThread:
    """An asyncio loop in a thread of its own."""

    def __init__(self) -> None:
        # a selector on Windows too: ZeroMQ and listeners watch descriptors
        self.loop: asyncio.AbstractEventLoop = _RealTimeLoop()
        self._ready = threading.Event()
        self.thread = threading.Thread(target=self._run, name="fakebrokers", daemon=True)
        self.thread.start()
        self._ready.wait()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.call_soon(self._ready.set)
        self.loop.run_forever()

    @property
    def inside(self) -> bool:
        """Whether the caller is on the loop thread already."""
        return threading.get_ident() == self.thread.ident

    def call(self, act: Callable[..., T], *arguments: Any) -> T:
        """Run `act` on the loop thread and wait for what it returns or raises."""
        if self.inside:
            return act(*arguments)
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(act(*arguments))
            except BaseException as error:
                future.set_exception(error)

        self.loop.call_soon_threadsafe(run)
        error = future.exception()
        if error is not None:  # raised here rather than inside `Future`: what users see is their own line
            raise error
        return future.result()

    def post(self, act: Callable[[], Any]) -> None:
        """Run `act` on the loop thread, some time soon."""
        self.loop.call_soon_threadsafe(act)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop thread and wait for it."""
        if self.inside:
            return InsideLoop(self.loop).run(work)
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()


_current: LoopThread | None = None
_lock = threading.Lock()


def loop_thread() -> LoopThread:
    """The loop thread of this process; started if it does not run yet."""
    global _current  # noqa: PLW0603 - one per process is the point
    with _lock:
        if _current is None or not _current.thread.is_alive():
            _current = LoopThread()
        return _current


def _forget_after_fork() -> None:
    global _current, _lock  # noqa: PLW0603
    _current = None  # its thread did not come along
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
