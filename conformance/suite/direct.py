"""A client called directly, without processes and lines: what a reproducer runs a scenario's script with."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Mapping
from typing import Any

import msgspec

from conformance.clients.adapter.deadline import deadline_ms, patience_ms
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.adapter.messages import Error, Event, Hello, Message
from conformance.clients.adapter.result import Result
from conformance.clients.adapter.transcript import Inbox

#: What a request or an answer takes through a pipe, seconds: scripts and clients are used to that. By then
#: the fake has taken in what the client sent before, and the client what the fake did to it.
PIPE_S = 0.005


class DirectCall:
    """An op that has begun; await it for its `Result`."""

    def __init__(self, request_id: int, op: str, begun_ns: int, ended: asyncio.Future[Result]) -> None:
        self.id = request_id
        self.op = op
        self.begun_ns = begun_ns
        self.ended = ended

    @property
    def done(self) -> bool:
        """Whether the result is there."""
        return self.ended.done()

    def __await__(self) -> Generator[Any, None, Result]:
        return asyncio.shield(self.ended).__await__()


class Words(logging.Handler):
    """What a library logs, in place of the stderr of a process of its own."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Take one message, with its traceback."""
        self.text += self.format(record) + "\n"


class Direct:
    """In place of `adapter.base.Adapter`, for a client in Python; make it on the loop where it runs."""

    alive = True

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
            contract=dict(adapter.contract),
        )
        self._adapter = adapter
        self._loop = asyncio.get_running_loop()
        self._next_id = 1
        self._pending: dict[int, DirectCall] = {}
        self._words = Words()
        logging.getLogger().addHandler(self._words)
        self.clock_offset_ms = self._loop.time() * 1000
        adapter.start(self._heard)

    def begin(
        self, op: str, args: Mapping[str, Any] | None = None, timeout_ms: float | None = None
    ) -> DirectCall:
        """Start an op."""
        request_id, self._next_id = self._next_id, self._next_id + 1
        given = dict(args or {})
        request = {"id": request_id, "op": op, "args": given, "timeout_ms": timeout_ms}
        call = DirectCall(request_id, op, self.now_ns(), self._loop.create_future())
        self._pending[request_id] = call
        self._loop.call_later(PIPE_S, self._adapter.receive, request)
        limit_s = patience_ms(deadline_ms(self.hello, op, given, timeout_ms)) / 1000
        self._loop.call_later(limit_s, self._end, request_id, {})
        return call

    async def call(
        self, op: str, args: Mapping[str, Any] | None = None, timeout_ms: float | None = None
    ) -> Result:
        """Run an op to its end."""
        return await self.begin(op, args, timeout_ms)

    async def cancel(self, call: DirectCall) -> Result:
        """Cancel a running op, as an application does with its task."""
        return await self.call("cancel", {"id": call.id})

    def _heard(self, line: Mapping[str, Any]) -> None:
        """Take a line of any thread."""
        self._loop.call_soon_threadsafe(self._take, dict(line))

    def _take(self, line: dict[str, Any]) -> None:
        if "event" in line:
            self.inbox.add(Event(line.pop("n"), line.pop("t"), line.pop("event"), line))
        else:
            self._loop.call_later(PIPE_S, self._end, line["id"], line)

    def _end(self, request_id: int, answer: Mapping[str, Any]) -> None:
        """Give an op its result, unless it has one; without an answer it hangs."""
        call = self._pending.pop(request_id, None)
        if call is None:
            return
        result = Result(request_id, call.op, False, call.begun_ns, self.now_ns(), hang=not answer)
        if answer:
            result.ok, result.value, result.n, result.t = (
                answer["ok"],
                answer.get("result"),
                answer["n"],
                answer["t"],
            )
            result.error = msgspec.convert(answer["error"], Error) if "error" in answer else None
        if call.op == "next" and result.ok:
            for message in msgspec.convert(result.value["messages"], list[Message]):
                self.inbox.add_message(message)
        call.ended.set_result(result)

    @property
    def events(self) -> list[Event]:
        """All events so far."""
        return self.inbox.events

    async def event(
        self, name: str, where: Callable[[Event], bool] | None = None, **options: Any
    ) -> Event | None:
        """The first event that fits, or None; see `Inbox.event`."""
        return await self.inbox.event(name, where, **options)

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
        """What the library has logged, from a position on."""
        return self._words.text[since:]

    @property
    def stderr_mark(self) -> int:
        """The position up to which it has come."""
        return len(self._words.text)
