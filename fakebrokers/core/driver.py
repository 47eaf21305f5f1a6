"""An engine on an asyncio loop: its steps end here, and its timers are set here."""

from __future__ import annotations

import asyncio
import math
import threading
import weakref
from functools import cached_property

from fakebrokers.core.engine import Engine
from fakebrokers.core.virtual import VirtualTime
from fakebrokers.core.watch import Watcher

#: Bytes that one read takes at most.
READ_SIZE = 512 * 1024

_buffers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, memoryview] = weakref.WeakKeyDictionary()


class _OfThread(threading.local):
    """That of the loops on virtual time of a thread: there are many, one after another, and each is short."""

    def __init__(self) -> None:
        self.buffer = memoryview(bytearray(READ_SIZE))


_of_thread = _OfThread()


class Driver:
    """Keeps an engine's timers on an asyncio loop.

    Attributes:
        watcher: Is told what passes between the connections of this engine and their clients.
    """

    def __init__(
        self, engine: Engine, loop: asyncio.AbstractEventLoop, watcher: Watcher | None = None
    ) -> None:
        self.engine = engine
        self.loop = loop
        self.watcher = watcher
        self._timer: asyncio.TimerHandle | None = None
        self._armed = math.inf

    @cached_property
    def read_buffer(self) -> memoryview:
        """What all sockets of a loop are read into, one after another.

        New memory for each read would cost more than the read. A view: TLS reads into slices of it, and those
        of a bytearray are copies.
        """
        if isinstance(self.loop, VirtualTime):
            return _of_thread.buffer
        if self.loop not in _buffers:
            _buffers[self.loop] = memoryview(bytearray(READ_SIZE))
        return _buffers[self.loop]

    def finish_step(self) -> None:
        """End a step: write what is due, take it down, set the timer."""
        engine = self.engine
        try:
            now = self.loop.time()
            engine.flush(now)
            engine.journal.step_ended(now)
        except Exception as error:
            engine.keep_error(error, "at the end of a step")
        deadline = engine.timers.next_due
        if deadline < self._armed:
            if self._timer is not None:
                self._timer.cancel()
            self._armed = deadline
            self._timer = self.loop.call_at(deadline, _wake, weakref.ref(self))

    def _wake(self) -> None:
        self._armed = math.inf
        # the loop may call a timer up to its clock's resolution early
        self.engine.handle_timers(max(self.loop.time(), self._deadline_reached()))
        self.finish_step()

    def _deadline_reached(self) -> float:
        deadline = self.engine.next_deadline()
        return deadline if deadline - self.loop.time() < 0.001 else -math.inf

    def stop(self) -> None:
        """Set no timer any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._armed = -math.inf


def _wake(driver: weakref.ref[Driver]) -> None:
    """A timer is due; it does not keep alive a fake that nobody holds."""
    if (there := driver()) is not None:
        there._wake()
