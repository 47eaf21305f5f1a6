"""A client called directly, without processes and lines: what a reproducer runs a scenario's script with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping
from typing import Any

import msgspec

from conformance.adapter.kit import AdapterBase
from conformance.adapter.messages import Error, Event, Hello, Message, deadline_ms, patience_ms
from conformance.adapter.result import Result
from conformance.adapter.transcript import Inbox

#: What a request or an answer takes through a pipe, seconds: scripts and clients are used to that. By then
#: the fake has taken in what the client sent before, and the client what the fake did to it.
PIPE_S = 0.005


class DirectCall:
    """An op that has begun; await it for its `Result`."""

    def __init__(self, request_id: int, op: str, begun_ns: int, ended: asyncio.Task[Result]) -> None:
        self.id = request_id
        self.op = op
        self.begun_ns = begun_ns
        self._ended = ended

    @property
    def done(self) -> bool:
        """Whether the result is there."""
        return self._ended.done()

    def __await__(self) -> Generator[Any, None, Result]:
        return asyncio.shield(self._ended).__await__()


class Direct:
    """In place of `adapter.base.Adapter`, for a client in Python; make it on the loop where it runs."""

    alive = True
    clock_offset_ms = 0.0
    stderr_mark = 0

    def __init__(self, adapter: AdapterBase, protocol: str) -> None:
        self.protocol = protocol
        self.inbox = Inbox()
        self.hello = Hello(
            adapter=adapter.adapter,
            library=adapter.library,
            library_version=adapter.library_version,
            language="python",
            protocols=list(adapter.protocols),
            roles=list(adapter.roles),
            ops=sorted(adapter.ops),
            caps=dict.fromkeys(["concurrent", *adapter.caps.split()], True),
            limits=dict(adapter.limits),
            settles=adapter.settles,  # type: ignore[arg-type] # a word of the protocol
            formats=list(adapter.formats),
        )
        self._adapter = adapter
        self._loop = asyncio.get_running_loop()
        self._next_id = 1
        self._tasks: dict[int, asyncio.Task[Any]] = {}
        adapter.start(self._heard)

    def begin(
        self, op: str, args: Mapping[str, Any] | None = None, timeout_ms: float | None = None
    ) -> DirectCall:
        """Start an op."""
        request_id, self._next_id = self._next_id, self._next_id + 1
        given = dict(args or {})
        request = {"id": request_id, "op": op, "args": given, "timeout_ms": timeout_ms}
        work = self._tasks[request_id] = asyncio.create_task(self._carry_out(request))
        limit_s = patience_ms(deadline_ms(self.hello, op, given, timeout_ms)) / 1000
        begun_ns = self.now_ns()
        ended = asyncio.create_task(self._end(request_id, op, begun_ns, work, limit_s))
        return DirectCall(request_id, op, begun_ns, ended)

    async def _carry_out(self, request: dict[str, Any]) -> Any:
        await asyncio.sleep(PIPE_S)
        return await self._adapter.attempt(request)

    async def _end(
        self, request_id: int, op: str, begun_ns: int, work: asyncio.Task[Any], limit_s: float
    ) -> Result:
        await asyncio.wait({work}, timeout=limit_s)
        await asyncio.sleep(PIPE_S)
        result = Result(request_id, op, False, begun_ns, self.now_ns(), hang=not work.done())
        if not result.hang:
            answer = work.result()
            result.ok, result.value = answer["ok"], answer.get("result")
            result.error = msgspec.convert(answer["error"], Error) if "error" in answer else None
            if op == "next" and result.ok:
                for message in msgspec.convert(answer["result"]["messages"], list[Message]):
                    self.inbox.add_message(message)
        return result

    async def call(
        self, op: str, args: Mapping[str, Any] | None = None, timeout_ms: float | None = None
    ) -> Result:
        """Run an op to its end."""
        return await self.begin(op, args, timeout_ms)

    async def cancel(self, call: DirectCall) -> Result:
        """Cancel a running op, as an application does with its task."""
        self._adapter._cancelled.add(call.id)
        self._tasks[call.id].cancel()
        return await self.begin("state", {"session": "s1"})

    def _heard(self, line: Mapping[str, Any]) -> None:
        """Take a line of any thread."""
        self._loop.call_soon_threadsafe(self._take, line)

    def _take(self, line: Mapping[str, Any]) -> None:
        fields = dict(line)
        self.inbox.add(Event(fields.pop("n"), fields.pop("t"), fields.pop("event"), fields))

    @property
    def events(self) -> list[Event]:
        """All events so far."""
        return self.inbox.events

    async def event(
        self,
        name: str,
        where: Callable[[Event], bool] | None = None,
        *,
        timeout_s: float,
        after: int = 0,
        **fields: Any,
    ) -> Event | None:
        """The first event that fits, or None."""

        def found() -> Event | None:
            return self.inbox.find(name, where, after=after, **fields)

        await self.inbox.until(lambda: found() is not None, timeout_s)
        return found()

    def messages(self, sub: str) -> list[Message]:
        """The messages of a subscription, in the client's order."""
        return self.inbox.messages(sub)

    async def wait_messages(self, sub: str, count: int, timeout_s: float) -> list[Message]:
        """The messages as soon as there are `count`, or what there is then."""
        await self.inbox.until(lambda: len(self.inbox.messages(sub)) >= count, timeout_s)
        return self.inbox.messages(sub)

    def now_ns(self) -> int:
        """The loop's clock."""
        return int(self._loop.time() * 1e9)

    def stderr(self, since: int = 0) -> str:
        """Nothing: the client writes to the test's own."""
        return ""
