"""Turns of a loop on virtual time: what is ready, in which order, and when time passes."""

from __future__ import annotations

import asyncio
import heapq
import os
import random
import threading
from asyncio import base_events
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from functools import partial
from itertools import count
from typing import Any, TypeVar

from fakebrokers.core.virtual import VirtualTime
from fakebrokers.errors import Deadlock
from fakebrokers.simulation.handles import Handle, Raising, TimerHandle
from fakebrokers.simulation.hosts import PROCESS
from fakebrokers.simulation.network import Network
from fakebrokers.simulation.refusals import RealThings, refusing_to_wait, watch_for_real_things
from fakebrokers.simulation.tasks import SimulatedFuture, SimulatedTask, in_order

T = TypeVar("T")
_ASYNCIO = os.path.dirname(asyncio.__file__)

#: Virtual seconds after which a run is an error, unless it was told otherwise: a day.
LONGEST_S = 86_400.0
#: How likely a task that is ready waits for the next turn, where the order is drawn.
HOLD_BACK = 0.25


class TurningLoop(RealThings, VirtualTime, base_events.BaseEventLoop):
    """A loop that waits for nothing real; nothing of a killed process is called.

    Args:
        random: Draws the order of ready tasks, if it is to be drawn.
        longest_s: Virtual seconds that a run may take; see the attribute.

    Attributes:
        longest_s: The time after which nothing happens any more but an error.
        network: What its connections go through.
        refusals: What was asked for and is not simulated.
        transports: Of connections that are open.
    """

    # of asyncio's base class, whose annotations leave them out
    _ready: deque[Any]
    _closed: bool
    _debug: bool
    _scheduled: list[tuple[float, int, Any]]  #: a timer's time and number, which it is called by, and itself
    _stopping: bool
    _thread_id: int | None
    _timer_cancelled_count: int

    def __init__(self, random: random.Random | None = None, longest_s: float = LONGEST_S) -> None:
        super().__init__()
        watch_for_real_things()
        self.refusals = []
        self._now = 0.0
        self._random = random
        self.longest_s = longest_s
        self._number = count(1).__next__  #: of the next task, future or timer
        self.network = Network(self)
        self.transports: dict[asyncio.Transport, None] = {}
        #: Calls a handle at the next turn.
        self.call: Callable[[asyncio.Handle], None] = self._ready.append

    # time

    def time(self) -> float:
        """Virtual seconds."""
        return self._now

    def stand_still(self, seconds: float) -> None:
        self._now += seconds

    def set_debug(self, enabled: bool) -> None:
        """Asyncio's debug mode."""
        super().set_debug(enabled)
        self.get_debug = partial(bool, enabled)  # type: ignore[method-assign] # each future asks, from C

    def run_forever(self) -> None:
        """Run until it is stopped."""
        with refusing_to_wait():
            super().run_forever()

    def _run_once(self) -> None:
        """One turn: call everything that is ready; if nothing is, let time pass."""
        ready, network = self._ready, self.network
        if not (ready or self._stopping):
            self._drop_timers()
            self._let_time_pass()
        while self._scheduled and self._scheduled[0][0] <= self._now:
            ready.append(self._pop_timer())
        late = self._shuffle(self._random) if self._random is not None and len(ready) > 1 else ()
        for _ in range(len(ready)):
            handle = ready.popleft()
            callback = handle._callback  # None where it was cancelled
            if callback is None or (network.has_lost_a_process and not _is_alive(handle)):
                continue
            args = handle._args
            try:
                if not args:  # most have none or one, and to unpack them costs more than to call
                    handle._context.run(callback)
                elif len(args) == 1:
                    handle._context.run(callback, args[0])
                else:
                    handle._context.run(callback, *args)
            except BaseException as error:
                _report(handle, error)
        if late:
            ready.extend(late)

    def _drop_timers(self) -> None:
        """Forget timers that no call waits for any more."""
        if self._timer_cancelled_count > max(100, len(self._scheduled) // 2):
            for _, _, timer in self._scheduled:
                timer._scheduled = timer._callback is not None
            self._scheduled = [entry for entry in self._scheduled if entry[2]._scheduled]
            heapq.heapify(self._scheduled)
            self._timer_cancelled_count = 0
        while self._scheduled:
            timer = self._scheduled[0][2]
            if timer._callback is not None and _is_alive(timer):
                break
            self._pop_timer()

    def _pop_timer(self) -> Any:
        """Take the timer that is due first out of the heap."""
        timer = heapq.heappop(self._scheduled)[2]
        timer._scheduled = False
        if timer._callback is None:
            self._timer_cancelled_count -= 1
        return timer

    def _let_time_pass(self) -> None:
        if not self._scheduled:
            raise Deadlock(f"nothing is going to happen, and these wait:\n{self._waiting()}")
        due = self._scheduled[0][0]
        if due > self.longest_s:
            passed = f"{self.longest_s:g} virtual seconds have passed (longest_s)"
            raise Deadlock(f"{passed}, and these wait:\n{self._waiting()}")
        self._now = max(self._now, due)

    def _waiting(self) -> str:
        lines = []
        for task in in_order(asyncio.all_tasks(self)):
            lines.append(f"  {task.process.host.name}: {task.get_name()} at {_where(task)}")
        return "\n".join(lines)

    def _shuffle(self, random: random.Random) -> list[Any]:
        """Draw the order of the tasks that are ready, and which of them wait for the next turn.

        Callbacks come in the order in which they were asked for: asyncio promises that.
        """
        ready, late = self._ready, []
        places = [
            at
            for at, each in enumerate(ready)
            if isinstance(getattr(each._callback, "__self__", None), _MOVE)
        ]
        moved = [ready[at] for at in places]
        if len(moved) > 1:
            random.shuffle(moved)
        for at, handle in enumerate(moved):
            waits = random.random() < HOLD_BACK
            if waits:
                late.append(handle)
            ready[places[at]] = _NOTHING if waits else handle
        return late

    # callbacks

    def call_soon(  # type: ignore[override] # its types are those of a function, not of a method
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Call it at the next turn."""
        if self._debug or self._closed:
            return super().call_soon(callback, *args, context=context)
        handle = _new_handle(Handle)
        handle._callback = callback
        handle._args = args
        handle._loop = self
        handle._context = copy_context() if context is None else context
        self.call(handle)
        return handle

    def handle(self, act: Callable[[], object]) -> Handle:
        """What `call` takes, as often as it is wanted; in the present context."""
        handle = _new_handle(Handle)
        handle._callback, handle._args, handle._loop, handle._context = act, (), self, copy_context()
        return handle

    def call_later(  # type: ignore[override] # likewise
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Any:
        """Call it after so many seconds; see `call_at`."""
        if self._debug or self._closed or delay is None:
            return super().call_later(delay, callback, *args, context=context)
        return self._set_timer(self._now + delay, callback, args, context)

    def call_at(  # type: ignore[override] # likewise
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Any:
        """Call it at that time, after what was asked for before and is due then, too."""
        if when is None:
            raise TypeError("when cannot be None")
        self._check_closed()  # type: ignore[attr-defined] # typeshed leaves it out
        if self._debug:
            self._check_callback(callback, "call_at")  # type: ignore[attr-defined] # likewise
            timer = asyncio.TimerHandle(when, callback, args, self, context)
            timer._scheduled = True  # type: ignore[attr-defined] # likewise
            heapq.heappush(self._scheduled, (when, self._number(), timer))
            return timer
        return self._set_timer(when, callback, args, context)

    def _set_timer(
        self, when: float, callback: Callable[..., object], args: tuple[Any, ...], context: Context | None
    ) -> TimerHandle:
        timer = _new_timer(TimerHandle)
        timer._callback = callback
        timer._args = args
        timer._loop = self
        timer._context = copy_context() if context is None else context
        timer._when = when
        timer._scheduled = True
        heapq.heappush(self._scheduled, (when, self._number(), timer))
        return timer

    # tasks

    def create_future(self) -> asyncio.Future[Any]:
        """A future whose hash repeats."""
        future: SimulatedFuture[Any] = SimulatedFuture(loop=self)
        future.number = self._number()
        return future

    def create_task(  # type: ignore[override] # older Pythons give no further options
        self,
        coro: Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: Context | None = None,
        **options: Any,
    ) -> asyncio.Task[T]:
        """A task of the process that is running, or of that of `context`."""
        number = self._number()
        named = str(name) if name is not None else f"Task-{number}"
        here = self.network.here() if context is None else context.get(PROCESS, self.network.outside)
        return SimulatedTask(coro, number, here, loop=self, name=named, context=context, **options)

    def run_in_executor(  # type: ignore[override] # its types are those of a function, not of a method
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run it to its end, here, at the next turn: a thread that takes no time."""
        if "ProcessPool" in type(executor).__name__:
            raise self.refuse("a child process", "use the default executor")
        work = _Work(self.create_future(), func, args)
        self.call_soon(work.run)
        return work.future

    def call_soon_threadsafe(  # type: ignore[override] # likewise
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Call it at the next turn.

        Raises:
            NotSimulated: Another thread asks for it, whose time is real.
        """
        if self._thread_id not in (None, threading.get_ident()):
            raise self.refuse("a call from a thread of its own", "run everything on the simulation's loop")
        return self.call_soon(callback, *args, context=context)

    def _write_to_self(self) -> None:
        """It never waits in a selector."""


class _Work:
    """What would run in a thread."""

    def __init__(
        self, future: asyncio.Future[Any], act: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> None:
        self.future = future
        self._act = act
        self._arguments = arguments

    def run(self) -> None:
        """Run it to its end."""
        if self.future.cancelled():
            return
        try:
            self.future.set_result(self._act(*self._arguments))
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self.future.set_exception(error)


def _where(task: asyncio.Task[Any]) -> str:
    """File and line of the code that awaits; the innermost that is not asyncio's own."""
    found = "its end"
    work: Any = task.get_coro()
    while isinstance(work, Coroutine):
        frame = getattr(work, "cr_frame", None)
        if frame is not None and not frame.f_code.co_filename.startswith(_ASYNCIO):
            found = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        work = getattr(work, "cr_await", None)
    return found


def _is_alive(handle: asyncio.Handle) -> bool:
    """Whether the process that a callback belongs to was not killed."""
    process = handle._context.get(PROCESS)  # type: ignore[attr-defined] # typeshed leaves it out
    return process is None or process.alive


def _report(handle: Any, error: BaseException) -> None:
    """Let asyncio report what a callback has raised, or raise it again where it ends the program."""
    context, handle._context = handle._context, Raising(error)
    try:
        handle._run()
    finally:
        handle._context = context


_new_handle: Callable[[type[Handle]], Handle] = Handle.__new__
_new_timer: Callable[[type[TimerHandle]], TimerHandle] = TimerHandle.__new__

_NOTHING = _new_handle(Handle)  #: in the place of what waits for the next turn
_NOTHING.cancel()

#: Whose callbacks are the next step of a task, or work that would run in a thread.
_MOVE = (SimulatedTask, _Work)
