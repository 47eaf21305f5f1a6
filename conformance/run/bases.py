"""Base scripts: what an application does with a client while the sweep disturbs it.

A base is an async function over a `ScriptContext`, about ten lines of ops of the adapter protocol::

    @base(role="publisher")
    async def waited(context):
        '''Publishes that wait for their outcomes.'''
        context.broker.create_stream("S")
        await context.connect()
        calls = [context.begin("publish", target="S", body=text(f"a{i}"), wait=True) for i in range(3)]
        await context.ended(calls)
        await context.finale("publish", target="S", body=text("probe"), wait=True)

Ops never raise for what the client does. What the base does not wait for is waited for at its end.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from conformance.clients.adapter.base import Adapter, Call
from conformance.clients.adapter.deadline import earliest
from conformance.clients.adapter.limits import has_one_timeout, without_lacking
from conformance.clients.adapter.result import Result
from conformance.run.concurrent_actions import CONCURRENT, HURRIED, UNIQUE, hurry, pass_turns
from conformance.run.notes import Notes
from conformance.run.pace import Pace
from conformance.run.specs import ArgumentChange, ConcurrentAction
from conformance.run.trace import Position, Trace
from fakebrokers.core.virtual import VirtualTime

OP_S = 2.0
OWN_S = 5.0  #: the time-out of a session that has one for all of its calls: no base gives a call more
PROBE_S = 400.0  #: for the op that has to work again once nothing disturbs it: back-offs are long
SETTLE_S = 0.5
AFTER_PROBE_S = 60.0
AFTER_CLOSE_S = 10.0
LAST_PHASES = ("subscribed", "calm", "probe", "close", "closed")
RETRIES = 3
RETRY_S = 6.0
LASTS_S = 25.0

Script = Callable[["ScriptContext"], Awaitable[None]]


class Base(NamedTuple):
    """A base script.

    Attributes:
        role: Of the adapter protocol; clients that lack it are not asked.
        needs: Capabilities, and ops, without which it makes no sense.
        server: Options of the fake.
        handshake: Whether faults are swept over the set-up of its first connection too. It is the same in
            most bases, so a few will do.
        injections: Whether faults are swept over it; some bases need none to show what they are for.
        costly: It runs for more than a tenth of a second: few specs, and not the first ones.
        is_drawn: Its steps are drawn by lot (`walks`): what it shows a base that has a purpose shows plainer.
    """

    name: str
    script: Script
    role: str = ""
    needs: tuple[str, ...] = ()
    server: Mapping[str, Any] = {}
    handshake: bool = False
    injections: bool = True
    costly: bool = False
    is_drawn: bool = False

    @property
    def about(self) -> str:
        """What it does, for people."""
        return " ".join((self.script.__doc__ or "").split())


def base(
    *,
    role: str = "",
    needs: Iterable[str] = (),
    server: Mapping[str, Any] | None = None,
    handshake: bool = False,
    injections: bool = True,
    costly: bool = False,
    name: str = "",
) -> Callable[[Script], Base]:
    """Declare a base script; its name is that of the function."""

    def make(script: Script) -> Base:
        own = name or script.__name__.replace("_", "-")
        return Base(own, script, role, tuple(needs), server or {}, handshake, injections, costly)

    return make


def bases_in(module: ModuleType) -> dict[str, Base]:
    """The bases that a module declares, by name."""
    found = [each for each in vars(module).values() if isinstance(each, Base)]
    found += [one for each in vars(module).values() if isinstance(each, list) for one in each
              if isinstance(one, Base)]  # fmt: skip
    return {each.name: each for each in found}


class Enough(Exception):
    """A base was cut short, because the spec says so."""


class RunOp:
    """An op of a run, as it is judged.

    Attributes:
        id: As the adapter protocol numbers it.
        given_ms: The deadline that the client was given; None for none.
        phase: The last mark before it began: "" at first, ``probe``, ``close`` ...
        begun, ended: When it began and when the client gave its answer; `ended` is None if it gave none.
        timeout_s: When it has to have ended: what the client was given, or what the library fixes by itself.
        result: How it ended; set when it has.
    """

    def __init__(
        self,
        id: int,
        op: str,
        args: Mapping[str, Any],
        *,
        given_ms: float | None,
        timeout_s: float,
        begun: Position,
        phase: str,
    ) -> None:
        self.id = id
        self.op = op
        self.args = args
        self.given_ms = given_ms
        self.timeout_s = timeout_s
        self.begun = begun
        self.phase = phase
        self.ended: Position | None = None
        self.result: Result | None = None

    @property
    def earliest_s(self) -> float:
        """How long the client waits for an answer at least."""
        given_s = self.timeout_s if self.given_ms is None else self.given_ms / 1000
        own_ms = self.args.get("timeout_ms") or math.inf
        return float(min(own_ms / 1000, earliest(given_s, self.timeout_s)))

    def may_run_out(self, at: Position, margin_s: float) -> bool:
        """Whether its time may be over at a moment: not before the earliest, not after the latest."""
        return self.earliest_s - margin_s < at.t - self.begun.t < self.timeout_s + margin_s

    def __repr__(self) -> str:
        return f"{self.op}({self.args}) -> {self.result}"


class LiveOp(RunOp):
    """An op of a run that goes on.

    Attributes:
        call: Await it for its result.
    """

    def __init__(
        self, call: Call, args: Mapping[str, Any], timeout_s: float, begun: Position, phase: str
    ) -> None:
        super().__init__(
            call.id,
            call.op,
            args,
            given_ms=call.timeout_ms,
            timeout_s=timeout_s,
            begun=begun,
            phase=phase,
        )
        self.call = call


class ScriptContext:
    """What a base script works with.

    Attributes:
        broker: The fake.
        adapter: The client.
        endpoint: Where the client finds the broker.
        ops: All ops so far.
        reconnects: Whether the session was asked to connect again by itself.
        notes: What rules have to know of the run, and no frame shows.
        killed: Connections that the base itself has ended.
        lasts: Whether the faults go on for a while when the base wants calm.
        until_s: When the base has to come to its end, seconds on the loop's clock, whatever it still wants:
            where time is real, a client that answers nothing could make it last for minutes.
    """

    def __init__(
        self,
        broker: Any,
        adapter: Adapter,
        trace: Trace,
        changes: Iterable[ArgumentChange] = (),
        most: int | None = None,
        pace: Pace | None = None,
        concurrent: Iterable[ConcurrentAction] = (),
    ) -> None:
        self.broker = broker
        self.adapter = adapter
        self.trace = trace
        self.endpoint = broker.where
        self.ops: list[LiveOp] = []
        self.phase = ""
        self.notes = Notes()
        self.killed: set[str] = set()
        self.lasts = False
        self.until_s = math.inf
        self._most = most
        self._pace = pace or Pace()
        self._changes: dict[int, list[ArgumentChange]] = {}
        for change in changes:
            self._changes.setdefault(change.op, []).append(change)
        self._concurrent = {action.op: action for action in concurrent}
        self._besides: set[asyncio.Task[None]] = set()
        self._timeouts: dict[str, float] = {}  # seconds, by session, where one is for all of its calls

    # ops

    def begin(self, op: str, timeout: float = OP_S, **args: Any) -> Call:
        """Begin an op; `session` is ``s1`` if it takes one and the script names none.

        Raises:
            Enough: The spec wants no more of the base, or there is no time for more.
            Cut: The spec wants the session to be closed now.
        """
        if self._is_enough():
            raise Enough
        if op not in WITHOUT_SESSION:
            args = {"session": "s1", **args}
        for change in self._changes.get(len(self.ops) + 1, ()):
            args = changed(args, change.path.split("."), change.value)
        action = self._concurrent.get(len(self.ops) + 1) if not self.phase else None
        if action is not None and action.what == HURRIED:
            timeout = hurry(self)
        done = self.take(op, args, timeout)
        if action is not None and action.what in CONCURRENT:
            CONCURRENT[action.what](self, done, action.turns)
        return done.call

    def _is_enough(self) -> bool:
        if self._most is not None and len(self.ops) >= self._most and not self.phase:
            return True
        return bool(self.ops) and self.now >= self.until_s and self.phase not in LAST_PHASES

    def take(self, op: str, args: Mapping[str, Any], timeout: float) -> LiveOp:
        """Begin an op with exactly these arguments, as far as the library has them."""
        args, timeout = self._fitted(op, args, timeout)
        begun = self.trace.note("op", op)
        call = self.adapter.begin(op, args, timeout * 1000)
        self.ops.append(LiveOp(call, args, timeout, begun, self.phase))
        return self.ops[-1]

    def _fitted(self, op: str, args: Mapping[str, Any], timeout: float) -> tuple[Mapping[str, Any], float]:
        """The op for a library that lacks some arguments: one time-out may be for all calls of a session."""
        hello = self.adapter.hello
        given = without_lacking(hello, op, args)
        if op == "connect" and has_one_timeout(hello):
            own_ms = given.get("options", {}).get("request_timeout_ms", OWN_S * 1000)
            self._timeouts[args["session"]] = own_ms / 1000
            given["options"] = {**given.get("options", {}), "request_timeout_ms": own_ms}
        elif "timeout_ms" in args and "timeout_ms" not in given:
            timeout = max(timeout, self._timeouts.get(args["session"], timeout))
        return given, timeout

    def besides(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something besides the base."""
        task = asyncio.get_running_loop().create_task(work)
        self._besides.add(task)
        task.add_done_callback(self._besides.discard)

    async def op(self, op: str, timeout: float = OP_S, **args: Any) -> Result:
        """Run an op to its end."""
        return await self.begin(op, timeout, **args)

    async def ended(self, calls: Iterable[Call]) -> None:
        """Wait for ops."""
        for call in calls:
            await call

    async def publish_each_turn(self, count: int, **args: Any) -> None:
        """Publish so many messages, one in each turn of the loop, whatever becomes of those before; and wait
        for them. What takes the client several turns is met at each of them."""
        calls = []
        for number in range(count):
            calls.append(self.begin("publish", body=text(f"t{number}"), **args))
            await pass_turns(1)
        await self.ended(calls)

    # time

    @property
    def now(self) -> float:
        """Seconds on the loop's clock."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        await self._pace.sleep(seconds)

    async def stand_still(self, seconds: float, *, stops_client: bool = False) -> None:
        """The process of client and broker is stopped.

        Args:
            stops_client: Where time is real and the broker goes on, stop a client in a process of its own;
                no op may be open. Otherwise only time passes there.
        """
        self.notes.stopped = True
        loop = asyncio.get_running_loop()
        if isinstance(loop, VirtualTime):
            loop.stand_still(seconds)
            await asyncio.sleep(0)
        elif stops_client:
            self.adapter.pause()
            try:
                await asyncio.sleep(seconds)
            finally:
                self.adapter.resume()
        else:
            await self.sleep(seconds)

    def mark(self, phase: str) -> Position:
        """A new phase begins: ops from here on belong to it."""
        self.phase = phase
        return self.trace.note("mark", phase)

    def calm(self) -> None:
        """No fault acts from here on."""
        if self.phase != "calm":
            self.mark("calm")
        if self.lasts:
            asyncio.get_running_loop().call_later(
                min(LASTS_S, self._pace.longest_s), self.broker.faults.clear
            )
        else:
            self.broker.faults.clear()

    def kill(self, how: str = "rst", connection: str | None = None) -> None:
        """End connections from the broker's side."""
        standing = list(self.broker.engine.connections)
        self.killed.update([connection] if connection else standing)
        self.broker.kill(connection, how)

    async def outage(self, seconds: float) -> None:
        """The broker is away for a while, with all connections."""
        self.notes.unreachable = True
        self.killed.update(self.broker.engine.connections)
        self.broker.crash()
        await self.sleep(seconds)
        self.broker.restart()

    # the beginning and the end that most bases share

    async def connect(
        self,
        session: str = "s1",
        timeout: float = 5.0,
        endpoints: Sequence[str] | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Result:
        """Connect; a fault in the handshake may end an attempt or two, the third one meets none."""
        options = self.notes.order_reconnect(options, can=self.adapter.hello.can("auto_reconnect"))
        own = self.endpoint if isinstance(self.endpoint, dict) else [self.endpoint]
        given = {"session": session, "endpoints": endpoints or own, "options": options}
        result = await self.op("connect", timeout, **given)
        for attempt in range(1, RETRIES):
            if result.ok or (result.error is not None and result.error.kind == "invalid"):
                break
            await self.sleep(RETRY_S)
            if attempt == RETRIES - 1:
                self.lasts = False
                self.calm()
            result = await self.op("connect", 20.0, **given)
        if not result.ok:
            self.notes.without_connection = True
        return result

    async def finale(self, probe: str = "", **args: Any) -> None:
        """Clear the faults, see that a question works again, close, and look at what is left.

        Args:
            probe: The op that has to work, with its arguments; "" where nothing can be expected to work.
        """
        await self.sleep(SETTLE_S)
        self.calm()
        await self.sleep(SETTLE_S + (LASTS_S if self.lasts else 0.0))
        await self.op("state")
        if probe:
            self.mark("probe")
            patience_s = min(PROBE_S, 3 * self._pace.longest_s)
            begun_s = self.now
            result = await self.op(probe, patience_s, **args)
            is_early = result.word == "timeout" and self.now < begun_s + patience_s - 1.0
            if not result.ok and (result.word in ("connection", "protocol") or is_early):
                await self.op(
                    probe, patience_s, **args
                )  # it was under way when the client gave up a connection
            await self.sleep(AFTER_PROBE_S)
            await self.op("state")
        await self.close()

    async def cut(self, turns: int) -> None:
        """Close while the last op is under way; what is asked after that has to fail."""
        last = self.ops[-1]
        await pass_turns(turns)
        await self.close()
        args = dict(last.args)
        if last.op == "publish":
            args["body"] = text("behind the close")
        if last.op not in UNIQUE or last.op == "publish":
            self.take(last.op, args, last.timeout_s)
            await self.sleep(OP_S)
            await self.op("stats")

    async def close(self, session: str = "s1", timeout: float = 5.0) -> None:
        """Close, wait, and ask what is left."""
        self.mark("close")
        await self.op("close", timeout, session=session)
        await self.closed(session)

    async def closed(self, session: str = "s1") -> None:
        """The session has ended: wait, and ask what is left."""
        self.mark("closed")
        await self.sleep(AFTER_CLOSE_S)
        await self.op("state", session=session)
        await self.op("stats")


#: Ops that belong to no session.
WITHOUT_SESSION = {"stats", "unsubscribe", "next", "raise_next", "cancel", "set_clock", "settle", "echo"}


def changed(args: Mapping[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    """Arguments with another value at a dotted path; what leads there is made if it is missing."""
    name, rest = path[0], path[1:]
    inner = args.get(name)
    if not rest:
        return {**args, name: value}
    if isinstance(inner, list):
        index = int(rest[0])
        new = changed(inner[index], rest[1:], value) if rest[1:] else value
        return {**args, name: [*inner[:index], new, *inner[index + 1 :]]}
    return {**args, name: changed(inner or {}, rest, value)}


def text(words: str) -> dict[str, str]:
    """A body of the adapter protocol."""
    return {"text": words}
