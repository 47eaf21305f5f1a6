"""The client under test as scripts see it: ops of the adapter protocol with the names filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.clients.adapter.base import Adapter, Call, ProcessFacts
from conformance.clients.adapter.contract import Contract
from conformance.clients.adapter.deadline import deadline_of, earliest, least_ms
from conformance.clients.adapter.limits import NotFitting, fitted
from conformance.clients.adapter.messages import (
    TAKEN_FOR_GRANTED,
    Event,
    Hello,
    Message,
    Part,
    request_body,
)
from conformance.clients.adapter.profile import late_capability
from conformance.clients.adapter.result import Result
from conformance.suite.expect import Expect, Unsupported

DEFAULT_TIMEOUT_S = 5.0

#: Bytes, text, a body of the adapter protocol, or the parts of a message of several parts.
Body = bytes | str | Mapping[str, Any] | Sequence[bytes]
#: One address or several; by role where the protocol has several, in a role one or several again.
Endpoints = str | Sequence[str] | Mapping[str, str | list[str]]


class Client:
    """One client process (or object), driven by its adapter.

    Ops never raise for what the client does: they return a `Result`. The ``begin_*`` forms start an op
    and return at once; await the `Call` for its result. Times are seconds.

    Args:
        adapter: Speaks the adapter protocol.
        endpoint: ``host:port`` of the fake (or the real broker) of this run; addresses by role where the
            protocol has several.
        expect: Judges the steps that only prepare.
        connect_options: Options of every connect (user, password ... of a real broker).
    """

    def __init__(
        self,
        adapter: Adapter,
        endpoint: Endpoints,
        expect: Expect,
        connect_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.adapter = adapter
        self.endpoint = endpoint
        self._expect = expect
        self._connect_options = dict(connect_options or {})
        self.results: list[Result] = []
        self._connected_with: dict[str, Mapping[str, Any]] = {}

    @property
    def hello(self) -> Hello:
        """What the adapter declared."""
        return self.adapter.hello

    def can(self, need: str) -> bool:
        """Whether a capability is declared."""
        return self.hello.can(need)

    def has(self, op: str) -> bool:
        """Whether an op is declared."""
        return op in self.hello.ops

    def takes(self, op: str, argument: str) -> bool:
        """Whether the library has an optional argument of an op, or an option of ``connect``."""
        return self.hello.takes(op, argument)

    def may(self, word: str) -> bool:
        """Whether its ``contract`` allows the client something, by a word; what is left out is allowed."""
        return Contract(self.hello).allows(word)

    def options_of(self, session: str) -> Mapping[str, Any]:
        """What the last ``connect`` of a session was given as options."""
        return self._connected_with.get(session, {})

    def has_role(self, role: str) -> bool:
        """Whether a role is declared."""
        return role in self.hello.roles

    def reconnects(self, part: Part) -> bool:
        """Whether the library connects its ``locator``, ``producer`` or ``consumer`` again by itself."""
        return self.hello.reconnects(part)

    @property
    def limits(self) -> Mapping[str, float]:
        """What the library cannot do otherwise, by name; see ADAPTER.md."""
        return self.hello.limits

    def deadline_s(self, kind: str, timeout_s: float) -> float:
        """When ops of a kind (``connect``, ``request``, ``publish``, ``close``) have to have ended.

        What the library fixes itself counts, else what is given; see `deadline.deadline_of`.
        """
        return deadline_of(self.hello, kind, timeout_s * 1000) / 1000

    def earliest_s(self, kind: str, timeout_s: float) -> float:
        """Before when no op of a kind may end for want of an answer, but for a tenth; see `earliest`."""
        return earliest(timeout_s, self.deadline_s(kind, timeout_s))

    def heartbeat_s(self, wanted: float, at_most: float) -> float:
        """The heartbeat to ask for: `wanted`, or the smallest that the library takes.

        Raises:
            Unsupported: That is more than `at_most`, which the scenario cannot wait for.
        """
        return self._allowed(self.limits.get("heartbeat_min_s", 0.0), "heartbeat", wanted, at_most)

    def timeout_s(self, kind: str, wanted: float, at_most: float) -> float:
        """The same for the time-out of a kind of op, whose limit is ``<kind>_timeout_min_ms``."""
        return self._allowed(least_ms(self.hello, kind) / 1000, f"{kind} time-out", wanted, at_most)

    def _allowed(self, least: float, what: str, wanted: float, at_most: float) -> float:
        smallest = max(wanted, least)
        if smallest > at_most:
            raise Unsupported(f"the smallest {what} is {smallest:g} s, and {at_most:g} s are the most here")
        return smallest

    @property
    def now(self) -> float:
        """Seconds on the clock that scripts, client and fake share: virtual where they run in memory."""
        return self.adapter.now_ns() / 1e9

    # any op

    def begin(self, op: str, timeout: float = DEFAULT_TIMEOUT_S, **args: Any) -> Call:
        """Start an op.

        Raises:
            UsageError: It does not take these arguments.
            Unsupported: The library cannot do what they ask for, by its hello; see `limits.fitted`.
        """
        if check := getattr(self.adapter, "check_arguments", None):
            check(op, args)
        denied = [word for word in TAKEN_FOR_GRANTED if not self.can(word)]
        if denied and args.get("session") in self._connected_with and late_capability(op) in denied:
            raise Unsupported(f"the library takes no {op} after its connect ({late_capability(op)}: false)")
        try:
            timeout_ms = fitted(self.hello, op, args, timeout * 1000)
        except NotFitting as why:
            raise Unsupported(str(why)) from None
        return self.adapter.begin(op, args, timeout_ms)

    async def op(self, op: str, timeout: float = DEFAULT_TIMEOUT_S, **args: Any) -> Result:
        """Run an op to its end."""
        result = await self.begin(op, timeout, **args)
        self.results.append(result)
        return result

    async def prepare(self, op: str, timeout: float = DEFAULT_TIMEOUT_S, **args: Any) -> Any:
        """An op that only prepares: it must work. Returns its value."""
        return self._expect.prepared(await self.op(op, timeout, **args))

    # connections

    def begin_connect(
        self,
        session: str = "s1",
        *,
        endpoints: Endpoints | None = None,
        timeout: float = DEFAULT_TIMEOUT_S,
        **options: Any,
    ) -> Call:
        """Start to connect. What reconnects anyway is not asked to."""
        given = {**self._connect_options, **options}
        is_implied = self.can("auto_reconnect") and not self.takes("connect", "auto_reconnect")
        if is_implied and given.get("auto_reconnect"):
            del given["auto_reconnect"]
        self._connected_with[session] = given
        return self.begin(
            "connect",
            timeout,
            session=session,
            endpoints=_addresses(endpoints or self.endpoint),
            options=given,
        )

    async def connect(self, session: str = "s1", **options: Any) -> Result:
        """Connect; see `begin_connect`."""
        result = await self.begin_connect(session, **options)
        self.results.append(result)
        return result

    async def connected(self, session: str = "s1", **options: Any) -> None:
        """Connect as a step that only prepares."""
        self._expect.prepared(await self.connect(session, **options))

    async def close(self, session: str = "s1", timeout: float = DEFAULT_TIMEOUT_S) -> Result:
        """Close gracefully."""
        return await self.op("close", timeout, session=session)

    async def state(self, session: str = "s1") -> Mapping[str, Any]:
        """``{"open": bool, "pending": n or None}``."""
        value: Mapping[str, Any] = self._expect.prepared(await self.op("state", 5.0, session=session))
        return value

    # publishing

    def begin_publish(
        self,
        target: str,
        body: Body = b"hello",
        *,
        session: str = "s1",
        timeout: float = DEFAULT_TIMEOUT_S,
        wait: bool = True,
        **more: Any,
    ) -> Call:
        """Start a publish; `body` may be a body of the adapter protocol."""
        return self.begin(
            "publish", timeout, session=session, target=target, body=as_body(body), wait=wait, **more
        )

    async def publish(self, target: str, body: Body = b"hello", **more: Any) -> Result:
        """Publish one message and wait for its outcome."""
        result = await self.begin_publish(target, body, **more)
        self.results.append(result)
        return result

    # consuming

    async def subscribe(
        self,
        target: str,
        sub: str = "c1",
        *,
        session: str = "s1",
        timeout: float = DEFAULT_TIMEOUT_S,
        on_message: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Result:
        """Subscribe; messages are events unless `on_message` says otherwise."""
        return await self.op(
            "subscribe",
            timeout,
            session=session,
            sub=sub,
            target=target,
            options=options,
            on_message=dict(on_message or {"mode": "event"}),
        )

    async def subscribed(self, target: str, sub: str = "c1", **options: Any) -> None:
        """Subscribe as a step that only prepares."""
        self._expect.prepared(await self.subscribe(target, sub, **options))

    async def unsubscribe(self, sub: str = "c1", *, drain: bool = False, timeout: float = 5.0) -> Result:
        """End a subscription."""
        return await self.op("unsubscribe", timeout, sub=sub, drain=drain)

    def messages(self, sub: str = "c1") -> list[Message]:
        """What the application got on a subscription so far, in order."""
        return self.adapter.messages(sub)

    async def wait_messages(self, count: int, sub: str = "c1", within_s: float = 5.0) -> list[Message]:
        """The messages as soon as there are `count`, or what there is then."""
        found = await self.adapter.wait_messages(sub, count, within_s)
        if len(found) < count:
            self._expect.lapse()
        return found

    # events and facts

    @property
    def events(self) -> list[Event]:
        """All events so far; its length is a mark for `event(after=...)`."""
        return self.adapter.events

    async def event(self, name: str, within_s: float, after: int = 0, **fields: Any) -> Event | None:
        """The first event that fits, or None."""
        found = await self.adapter.event(name, timeout_s=within_s, after=after, **fields)
        if found is None:
            self._expect.lapse()
        return found

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self.adapter.alive

    def facts(self) -> ProcessFacts | None:
        """The process from outside; None in process."""
        look = getattr(self.adapter, "facts", None)
        facts: ProcessFacts | None = None if look is None else look()
        return facts


def _addresses(given: Endpoints) -> list[str] | dict[str, str | list[str]]:
    if isinstance(given, Mapping):
        return dict(given)
    return [given] if isinstance(given, str) else list(given)


def as_body(body: Body) -> dict[str, Any] | list[dict[str, Any]]:
    """A body of the adapter protocol; a list for a message of several parts."""
    if isinstance(body, bytes):
        return request_body(body)
    if isinstance(body, str):
        return {"text": body}
    return dict(body) if isinstance(body, Mapping) else list(map(request_body, body))
