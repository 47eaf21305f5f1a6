"""One client under test and its adapter, whatever carries the lines."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from conformance.clients.adapter.answers import check_arguments, event_problem, result_of
from conformance.clients.adapter.call import Call, ProcessFacts
from conformance.clients.adapter.conduct import TOO_MUCH, Conduct
from conformance.clients.adapter.deadline import deadline_ms, patience_ms
from conformance.clients.adapter.given import given
from conformance.clients.adapter.messages import (
    PROTOCOL_VERSION,
    BadLine,
    Error,
    Event,
    Hello,
    Kind,
    Message,
    Request,
    Response,
    decode,
)
from conformance.clients.adapter.onlooker import Onlooker
from conformance.clients.adapter.ops.messaging import NextResult, PublishManyResult, PublishResult
from conformance.clients.adapter.result import Result
from conformance.clients.adapter.transcript import WAITED, Inbox, Transcript, TranscriptLine
from conformance.clients.adapter.typed import Misfit, typed
from fakebrokers.errors import FakeBrokerError, UsageError

__all__ = ["Adapter", "AdapterFailed", "Call", "ProcessFacts"]

HELLO_DEADLINE_MS = 15_000.0  #: runtimes are slow to start on a loaded machine
CLOCK_PROBES = 3
SIGN_OF_LIFE_MS = 4_000.0
OWN_BUG = "a bug of its own"


class AdapterFailed(FakeBrokerError):
    """The adapter itself does not work: it did not start, said no to the hello, or broke the protocol.

    Attributes:
        answer: How the hello ended, if the adapter did start.
    """

    def __init__(self, text: str, answer: Result | None = None) -> None:
        super().__init__(text)
        self.answer = answer


class Adapter(ABC):
    """The runner's side of the protocol. `ProcessAdapter` and `InProcessAdapter` carry the lines.

    Attributes:
        hello: What the adapter said about itself; there after `start`.
        on_violation: Called when the adapter breaks the protocol; its word is worth nothing from then on.
        onlooker: Gets every op and line as it passes; None: no one.
        hung: The ops since the last reset that got no answer in time.
        ended_ns: When it ended, on the runner's clock; None while it lives.
        acked: How many messages the client has called acknowledged since then; a batch that is confirmed
            as one counts once.
        clock_offset_ms: Add it to an adapter's ``t`` to get the runner's clock, in milliseconds.
    """

    hello: Hello
    clock_offset_ms: float = 0.0
    onlooker: Onlooker | None = None

    def __init__(self, protocol: str) -> None:
        self.protocol = protocol
        self.on_violation: Callable[[], None] = lambda: None
        self._fresh()

    def _fresh(self) -> None:
        self.transcript = Transcript()
        self.inbox = Inbox()
        self.conduct = Conduct()
        self.hung: list[Result] = []
        self.ended_ns: int | None = None
        self.acked = 0
        self._announced: set[int] = set()
        self._next_id = 1
        self._lines = 0
        self._pending: dict[int, tuple[Call, asyncio.TimerHandle]] = {}
        self._given_up: dict[int, Result] = {}

    # Life.

    async def start(self, hello_ms: float = HELLO_DEADLINE_MS) -> Hello:
        """Get the adapter going and say hello. Raises `AdapterFailed` if that does not work."""
        self._fresh()
        await self._open()
        args = {"version": PROTOCOL_VERSION, "protocol": self.protocol}
        answer = await self.call("hello", args, hello_ms)
        if not answer.ok:
            await self.kill()
            raise AdapterFailed(f"no hello from the adapter: {answer}{self.stderr_tail()}", answer)
        try:
            self.hello = typed(answer.value, Hello, "result")
            if self.hello.version != PROTOCOL_VERSION:
                raise Misfit(f"result.version: expected {PROTOCOL_VERSION}, got {self.hello.version}")
        except Misfit as misfit:
            await self.kill()
            raise AdapterFailed(f"the hello does not fit the protocol: {misfit}", answer) from None
        await self._compare_clocks()
        return self.hello

    async def restart(self) -> Hello:
        """End the adapter by force and start a new one; a step of scenarios, too."""
        await self.kill()
        return await self.start()

    async def reset(self) -> Result:
        """Back to the state after hello; events, messages and transcript begin anew."""
        result = await self.call("reset")
        self.inbox.clear()
        self.transcript = Transcript()
        self.hung = []
        self.acked = 0
        self._announced = set()
        self.conduct.begin_anew()
        return result

    @abstractmethod
    async def shutdown(self) -> int | None:
        """Ask it to end, and see to it that it has. Returns the exit code, None in process."""

    @abstractmethod
    async def kill(self) -> None:
        """End it now. Harmless if it has ended."""

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether it can still answer."""

    # Ops.

    def begin(self, op: str, args: Mapping[str, Any] | None = None, timeout_ms: float | None = None) -> Call:
        """Send an op without waiting; `await` the call for its result."""
        request = Request(self._next_id, op, dict(args or {}), timeout_ms)
        self._next_id += 1
        loop = asyncio.get_running_loop()
        call = Call(request, self.now_ns(), loop.create_future())
        deadline = deadline_ms(getattr(self, "hello", None), op, request.args, timeout_ms)
        timer = loop.call_later(patience_ms(deadline) / 1000, self._give_up, call)
        self._pending[request.id] = (call, timer)
        self.transcript.add(call.begun_ns, "out", msgspec.to_builtins(request))
        if self.onlooker is not None:
            self.onlooker.begun(call, deadline / 1000)
        if self.alive:
            self._send(request)
        else:
            self._end(call, crashed=True)
        return call

    async def call(
        self, op: str, args: Mapping[str, Any] | None = None, timeout_ms: float | None = None
    ) -> Result:
        """Send an op and wait for its end; never raises for what the client does."""
        return await self.begin(op, args, timeout_ms)

    def check_arguments(self, op: str, args: Mapping[str, Any]) -> None:
        """Whether the op takes these arguments. Raises `UsageError`: the mistake of a script."""
        check_arguments(op, args, self.protocol)

    async def cancel(self, call: Call) -> Result:
        """Ask the adapter to cancel a running op."""
        return await self.call("cancel", {"id": call.id})

    async def settle(self, *, patiently: bool) -> None:
        """If an op is open, or got no answer, ask for a sign of life; what does not come is in `hung`.

        Args:
            patiently: Wait until all open ops have ended first, if only by being given up.
        """
        if not self._pending and not self.hung:
            return
        while self._pending and patiently:
            await asyncio.wait({call._ended for call, _ in self._pending.values()})
        if self.alive:
            await self.call("state", {"session": "still there"}, SIGN_OF_LIFE_MS)

    # What came.

    @property
    def events(self) -> list[Event]:
        """All events since the last reset; `len` of it is a mark for ``after``."""
        return self.inbox.events

    async def event(
        self, name: str, where: Callable[[Event], bool] | None = None, **options: Any
    ) -> Event | None:
        """The first event that fits, or None; see `Inbox.event`."""
        return await self.inbox.event(name, where, **options)

    def messages(self, sub: str) -> list[Message]:
        """The messages of a subscription since the last reset, in the client's order."""
        return self.inbox.messages(sub)

    async def wait_messages(self, sub: str, count: int, timeout_s: float) -> list[Message]:
        """The messages of a subscription as soon as there are `count`, or what there is after `timeout_s`.

        In the second case the transcript says so at the place where the waiting began: what was there by then
        has had its time.
        """
        place, begun_ns = len(self.transcript.lines), self.now_ns()
        came = await self.inbox.until(lambda: len(self.inbox.messages(sub)) >= count, timeout_s)
        if not came and self.alive:
            waited = {"sub": sub, "count": count, "within_s": timeout_s}
            self.transcript.lines.insert(place, TranscriptLine(begun_ns, WAITED, waited))
        return self.inbox.messages(sub)

    # The process, where there is one.

    def facts(self) -> ProcessFacts | None:
        """The process from outside; None in process."""
        return None

    def forget_peak(self) -> None:  # noqa: B027 - optional hook
        """From here on the peak of its memory is counted anew, where the system can do that."""

    def stderr(self, since: int = 0) -> str:
        """What it wrote to stderr from position `since` on, as far as it was kept."""
        return ""

    def stderr_lines(self, since: int = 0) -> list[tuple[float, str]]:
        """The lines of that with the times at which they came, seconds on the clock of `now_ns`."""
        return []

    @property
    def stderr_mark(self) -> int:
        """The position up to which stderr has come."""
        return 0

    def stderr_tail(self) -> str:
        """The end of stderr, as a paragraph for error messages."""
        tail = self.stderr()[-2000:].strip()
        return f"\n{tail}" if tail else ""

    def pause(self) -> None:
        """Stop the process (SIGSTOP). Raises `UsageError` in process."""
        raise UsageError("only a child process can be stopped")

    def resume(self) -> None:
        """Let it go on (SIGCONT). Raises `UsageError` in process."""
        raise UsageError("only a child process can be continued")

    # For those who carry the lines.

    @abstractmethod
    async def _open(self) -> None:
        """Begin to carry lines."""

    @abstractmethod
    def _send(self, request: Request) -> None:
        """Carry one request to the adapter."""

    def now_ns(self) -> int:
        """The runner's monotonic clock: that of the running loop."""
        return int(asyncio.get_running_loop().time() * 1e9)

    def _receive(self, raw: bytes | Mapping[str, Any]) -> None:
        """Take in one line of the adapter."""
        line = decode(raw)
        if isinstance(line, BadLine):
            self.transcript.add(self.now_ns(), "in", {"unreadable": line.text})
            self.violate(f"not a line of the protocol ({line.problem}): {line.text}")
            return
        self.transcript.add(self.now_ns(), "in", raw)
        self._came(line)
        if self.conduct.count(len(raw) if isinstance(raw, bytes) else 0):
            self.violate(TOO_MUCH)
            self._stop_reading()
        self._lines += 1
        if line.n != self._lines:
            self.violate(f"line {self._lines} has n {line.n}")
            self._lines = line.n
        if isinstance(line, Response):
            self._answered(line)
        elif problem := event_problem(line, self.protocol):
            self.violate(f"line {line.n}, {line.event!r}: {problem}")
        else:
            if line.event == "outcome" and line["id"] in self._announced:
                self.acked += line["outcome"] == "acked"
            self.inbox.add(line)

    def _came(self, line: Response | Event) -> None:
        """Give the onlooker a line that it did not get when the client wrote it."""
        if self.onlooker is not None:
            self.onlooker.wrote(line.event if isinstance(line, Event) else line.id, line.n)

    @property
    def violations(self) -> list[str]:
        """How the adapter broke the protocol, one sentence each; the first ones."""
        return self.conduct.violations

    def violate(self, problem: str) -> None:
        """The adapter has broken the protocol."""
        if self.conduct.violate(problem):
            self._stop_reading()
        self.on_violation()

    @abstractmethod
    def _stop_reading(self) -> None:
        """Nothing more is wanted of this adapter."""

    def _answered(self, line: Response) -> None:
        if line.id in self._given_up:
            self._given_up.pop(line.id).late = line
            return
        if line.id not in self._pending:
            self.violate(f"an answer to {line.id}, which is not open")
            return
        call, _ = self._pending[line.id]
        try:
            self._take(call, result_of(call.op, call.args, line, self.protocol))
        except Misfit as misfit:
            problem = f"line {line.n}, {call.op}: {misfit}"
            self.violate(problem)
            error = Error(Kind.INTERNAL, definite=False, text=f"the adapter broke its protocol: {problem}")
            line = msgspec.structs.replace(line, ok=False, result=None, error=error)
        self._end(call, answer=line)

    def _take(self, call: Call, result: Any) -> None:
        """What an answer has besides: messages, acknowledgements."""
        match result:
            case NextResult(messages=messages):
                for message in messages:
                    self.inbox.add_message(message)
            case PublishResult(outcome=outcome):
                self._count(call, [outcome])
            case PublishManyResult(outcomes=outcomes):
                self._count(call, [each.outcome for each in outcomes])

    def _count(self, call: Call, words: list[str]) -> None:
        self.acked += min(1, words.count("acked")) if call.args.get("subentry") else words.count("acked")
        if "sent" in words:
            self._announced.add(call.id)

    def _give_up(self, call: Call) -> None:
        self._given_up[call.id] = result = self._end(call, hang=True)
        self.hung.append(result)

    def _gone(self) -> None:
        """The adapter has ended: so has everything that was open."""
        self.ended_ns = self.now_ns() if self.ended_ns is None else self.ended_ns
        for call, _ in list(self._pending.values()):
            self._end(call, crashed=True)
        self.inbox.close()

    def _end(
        self, call: Call, *, answer: Response | None = None, hang: bool = False, crashed: bool = False
    ) -> Result:
        _, timer = self._pending.pop(call.id)
        timer.cancel()
        result = Result(call.id, call.op, False, call.begun_ns, self.now_ns(), hang=hang, crashed=crashed)
        if answer is not None:
            result.ok, result.value, result.error = answer.ok, given(answer.result), answer.error
            result.n, result.t = answer.n, answer.t
        call._ended.set_result(result)
        return result

    async def _compare_clocks(self) -> None:
        """The offset of the adapter's clock, from the quickest of three round trips."""
        best = float("inf")
        for _ in range(CLOCK_PROBES):
            result = await self.call("state", {"session": "clock"})
            if result.t is not None and result.elapsed_ms < best:
                best = result.elapsed_ms
                self.clock_offset_ms = (result.begun_ns + result.ended_ns) / 2e6 - result.t
