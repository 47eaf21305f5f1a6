"""The adapter's side of the protocol, without the library and without stdin and stdout."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import cache, partial
from typing import Any, NamedTuple

from .belongings import Belongings, WholeProcess
from .bodies import body_bytes, report_body
from .failure import CallbackError, Failure
from .helpers import op
from .subscription import Subscription

VERSION = 1
THREADS_MAX = 128  #: ops of a synchronous library that can run at the same time
CANCEL_TRIES = 20
CANCEL_WAIT_S = 0.05

Json = dict[str, Any]

#: What the members of ``args`` mean when they are left out.
LEFT_OUT: Json = {
    "arguments": None,
    "headers": None,
    "key": None,
    "name": None,
    "on_message": {},
    "options": {},
    "roles": ["publisher"],
    "subentry": None,
    "wait": True,
}


class _Takes(NamedTuple):
    """The parameters of an op's method: all, those without a default, and whether it is ``async``."""

    names: tuple[str, ...]
    needed: tuple[str, ...]
    is_async: bool


@cache
def _takes(function: Callable[..., Any]) -> _Takes:
    """What the function of an op takes besides its ``self``; looked up once."""
    parameters = {key: p for key, p in inspect.signature(function).parameters.items() if key != "self"}
    needed = tuple(key for key, p in parameters.items() if p.default is p.empty)
    return _Takes(tuple(parameters), needed, inspect.iscoroutinefunction(function))


class AdapterBase:
    """Subclass it, fill in the facts, add methods marked with `op`."""

    adapter = "adapter"
    adapter_version = "1"
    library = ""
    library_version = ""
    protocols: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    caps = ""  #: capabilities, separated by spaces
    lacks = ""  #: optional arguments of ops that the library does not have: "mol.call.node connect.vhost"
    reconnects: tuple[str, ...] = ()  #: instead of the word auto_reconnect: locator, producer, consumer
    limits: Mapping[str, int] = {}
    contract: Mapping[str, bool] = {}  #: what the library may do besides; see ADAPTER.md
    settles = "none"
    restart = "never"
    formats: tuple[str, ...] = ()  #: the ways from a body to a record, the default first
    transporters: tuple[str, ...] = ()  #: moleculer: what carries its packets ...
    serializers: tuple[str, ...] = ()  #: ... and how they are written
    callbacks: tuple[str, ...] = ("message",)  #: the kinds of callback that call `trip`

    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        marked = [name for name in dir(type(self)) if hasattr(getattr(type(self), name), "op")]
        methods = [getattr(self, name) for name in marked]
        self.ops: dict[str, Callable[..., Any]] = {method.op: method for method in methods}
        if "callback_raise" not in self.caps.split():
            del self.ops["raise_next"]
        self.sessions: dict[str, Any] = {}  #: by name, whatever the library has for a session
        self.subs: dict[str, Subscription] = {}
        self.stopping = asyncio.Event()
        self._armed: dict[str, int] = {}
        #: Takes what the adapter's own code has raised outside the library; it is not asked further.
        self.on_bug: Callable[[Exception], None] = lambda bug: None
        self._running: dict[int, asyncio.Task[None]] = {}
        self._cancelled: set[int] = set()
        self._own: Belongings | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._lines = itertools.count(1)
        self._refs = itertools.count(1)

    # What adapters override.

    async def clear(self) -> None:
        """Forget what the sessions hold; part of ``reset``.

        In a child process the tasks and sockets of asyncio are ended for you. In the suite's own process this
        has to drop the connections, at once and without a Close.
        """

    def classify(self, error: Exception) -> Failure:
        """The `Failure` for what the library raised."""
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, TimeoutError):
            return Failure("timeout", text)
        if isinstance(error, OSError | EOFError):
            return Failure("connection", text, definite=isinstance(error, ConnectionRefusedError))
        return Failure("internal", text)

    # What adapters call.

    def emit(self, event: str, **fields: Any) -> None:
        """Write an event line; from any thread."""
        self._write({"event": event, **fields})

    def trip(self, callback: str) -> None:
        """Raise if ``raise_next`` armed this kind of callback; call it in each callback of the library."""
        if self._armed.get(callback, 0) > 0:
            self._armed[callback] -= 1
            raise CallbackError(f"raise_next {callback}")

    def next_ref(self) -> str:
        """A new message reference."""
        return f"m{next(self._refs)}"

    def session(self, name: str) -> Any:
        """The session of that name, or `Failure` (closed)."""
        if name not in self.sessions:
            raise Failure("closed", f"no session {name!r}", definite=True)
        return self.sessions[name]

    def subscription(self, sub: str) -> Subscription:
        """The subscription of that name, or `Failure` (closed)."""
        if sub not in self.subs:
            raise Failure("closed", f"no subscription {sub!r}", definite=True)
        return self.subs[sub]

    def handle_of(self, sub: str) -> Any:
        """What the library has given for it, or `Failure` (closed) while it has given nothing."""
        found = self.subscription(sub).handle
        if found is None:
            raise Failure("closed", f"{sub!r} is not subscribed", definite=True)
        return found

    async def attempt(self, request: Json) -> Json:
        """Carry out one op; never raises. Returns ``ok`` and ``result`` or ``error``."""
        try:
            return {"ok": True, "result": await self._perform(request) or {}}
        except asyncio.CancelledError:
            ours = request.get("id") in self._cancelled
            failure = Failure("cancelled") if ours else Failure("internal", "the library cancelled the op")
        except Failure as error:
            failure = error
        except Exception as error:
            failure = self._classified(error)
        return {"ok": False, "error": failure.report()}

    def _classified(self, error: Exception) -> Failure:
        try:
            return self.classify(error)
        except Exception as bug:  # neither the library's nor the runner's
            self.on_bug(bug)
            return Failure("internal", f"{type(error).__name__}: {error}")

    # The protocol.

    def start(
        self,
        write: Callable[[Json], None],
        *,
        own_process: bool = False,
        belongings: Belongings | None = None,
    ) -> None:
        """Begin, on the running loop.

        Args:
            write: Takes every line; may be called from any thread.
            own_process: Every task that the library leaves may be ended by ``reset``.
            belongings: What may be ended, where others share the loop.
        """
        self.loop = asyncio.get_running_loop()
        self._epoch = self.loop.time()
        self._sink = write
        self._own = belongings or (WholeProcess() if own_process else None)

    def receive(self, request: Json) -> None:
        """Start one request; does not wait for it."""
        request_id = request["id"]
        task = self.loop.create_task(self._answer(request))
        self._running[request_id] = task
        task.add_done_callback(lambda _: self._forget(request_id))

    def _forget(self, request_id: int) -> None:
        self._running.pop(request_id, None)
        self._cancelled.discard(request_id)

    async def _answer(self, request: Json) -> None:
        answer = await self.attempt(request)
        self._write({"id": request["id"], **answer})
        if request["op"] == "shutdown":
            self.stopping.set()

    async def _perform(self, request: Json) -> Any:
        name = str(request["op"])
        if name not in self.ops:
            raise Failure("unsupported", f"no op {name!r}")
        method = self.ops[name]
        args = request.get("args") or {}
        context = {"args": args, "timeout_ms": request.get("timeout_ms"), "request_id": request.get("id")}
        takes = _takes(getattr(method, "__func__", method))
        given = {**args, **context}
        taken = {key: given[key] for key in takes.names if key in given}
        for key in takes.names:
            if key not in given and key in LEFT_OUT:
                taken[key] = deepcopy(LEFT_OUT[key])
        missing = [key for key in takes.needed if key not in taken]
        if missing:
            raise Failure("invalid", f"{name} needs {', '.join(missing)}")
        if takes.is_async:
            return await method(**taken)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS_MAX)
        return await self.loop.run_in_executor(self._threads, partial(method, **taken))

    def _write(self, line: Json) -> None:
        with self._lock:
            stamp = round((self.loop.time() - self._epoch) * 1000, 3)
            self._sink({"n": next(self._lines), "t": stamp, **line})

    @op("hello")
    async def _hello(self, version: int, protocol: str) -> Json:
        if version != VERSION or protocol not in self.protocols:
            raise Failure("unsupported", f"version {VERSION} for {', '.join(self.protocols)} only")
        return {
            "version": VERSION,
            "adapter": self.adapter,
            "adapter_version": self.adapter_version,
            "library": self.library,
            "library_version": self.library_version,
            "language": "python",
            "runtime": ".".join(map(str, sys.version_info[:3])),
            "protocols": list(self.protocols),
            "roles": list(self.roles),
            "ops": sorted(self.ops),
            "caps": self._caps(),
            "limits": dict(self.limits),
            "settles": self.settles,
            "restart": self.restart,
            "formats": list(self.formats),
            "transporters": list(self.transporters),
            "serializers": list(self.serializers),
            "contract": dict(self.contract),
        }

    def _caps(self) -> Json:
        some = {"auto_reconnect": list(self.reconnects)} if self.reconnects else {}
        there = dict.fromkeys(["concurrent", *self.caps.split()], True)
        return there | dict.fromkeys(self.lacks.split(), False) | some

    @op("echo")
    async def _echo(self, body: Json) -> Json:
        return {"body": report_body(body_bytes(body))}

    @op("next")
    async def _next(self, sub: str, max: int = 1, wait_ms: float = 0) -> Json:
        return {"messages": await self.subscription(sub).take(max, wait_ms)}

    @op("cancel")
    async def _cancel(self, id: int) -> None:
        if task := self._running.get(id):
            self._cancelled.add(id)
            task.cancel()

    @op("raise_next")
    async def _raise_next(self, callback: str, times: int = 1) -> Json:
        armed = callback in self.callbacks
        if armed:
            self._armed[callback] = times
        return {"armed": armed}

    @op("stats")
    async def _stats(self) -> Json:
        tasks = asyncio.all_tasks() if self._own is None else self._own.tasks()
        return {"threads": threading.active_count(), "tasks": len(tasks)}

    @op("reset")
    async def _reset(self, request_id: int | None = None) -> None:
        await self.clear()
        self._cancelled.update(key for key in self._running if key != request_id)
        await self._end_tasks()
        if self._own is not None:
            self._own.drop()
            await asyncio.sleep(0)
            await self._end_tasks()  # what the library started because its connections are gone
        self.sessions.clear()
        self.subs.clear()
        self._armed.clear()

    async def _end_tasks(self) -> None:
        """Cancel the open requests and, in a child process, the library's tasks, until they listen."""
        for _ in range(CANCEL_TRIES):
            doomed = {self._running[key] for key in self._cancelled if key in self._running}
            if self._own is not None:
                doomed |= self._own.tasks()
            doomed.discard(asyncio.current_task())
            if not doomed:
                return
            for task in doomed:
                task.cancel()
            await asyncio.wait(doomed, timeout=CANCEL_WAIT_S)

    @op("shutdown")
    async def _shutdown(self, request_id: int | None = None) -> None:
        await self._reset(request_id)
