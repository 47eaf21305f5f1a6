"""The self-test of an adapter: does it speak the protocol?

The library has a part in one check only, `line order`, which needs a broker: one of the fakes.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from conformance.clients.adapter.contract import CONTRACT, OTHERS
from conformance.clients.adapter.hello import CLEAN_STDOUT, HELLO_S, Problem, introduce
from conformance.clients.adapter.kit.failure import Failure
from conformance.clients.adapter.limits import LIMITS
from conformance.clients.adapter.messages import Hello, Kind, body_bytes, same_body
from conformance.clients.adapter.order import OPS, order, overtaken
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapter.profile import (
    all_ops,
    bounds,
    capabilities,
    capability_ops,
    missing_ops,
    optional_arguments,
    profile_of,
    profiles,
)
from conformance.clients.adapter.roles import tried

DEADLINE_MS = 5000.0
CONCURRENT = 100
LONG_LINE_BYTES = 4 << 20
BODY_FIX = "see ADAPTER.md, Bodies: UTF-8 and base64; above 4096 bytes a report is sha256 and len"
ORDER_FIX = (
    "start the ops of one session one after the other: a publish has begun when its message is with the "
    "library; a thread per line lets them overtake each other (ADAPTER.md, Messages)"
)

ROLES_FIX = (
    "look at this op in the adapter, and at the end of its stderr; take the role out of `roles` if the "
    "library does not have it"
)

BODIES: tuple[Mapping[str, Any], ...] = (
    {"text": ""},
    {"text": "hi"},
    {"text": 'naïve \u20ac \U0001f407 \u0000 \\ " \n'},
    {"b64": base64.b64encode(bytes(range(256))).decode()},
    {"gen": "zero", "len": 4096},
    {"gen": "zero", "len": 4097},
    {"gen": "rand", "seed": 5, "len": 31},
    {"gen": "rand", "seed": 2**40, "len": 1 << 20},
)


class Check(msgspec.Struct, frozen=True):
    """One thing that was tried. `problem` (what came), `expected` and `fix` are empty if it went well.

    Attributes:
        not_tried: What of it was not tried, and why; empty if all was.
    """

    name: str
    asks: str
    problem: str
    expected: str
    fix: str
    seconds: float
    not_tried: str = ""

    @property
    def ok(self) -> bool:
        """Whether it went well."""
        return not self.problem


class CheckReport(msgspec.Struct, frozen=True):
    """What the self-test found."""

    command: list[str]
    protocol: str
    hello: Hello | None
    checks: list[Check]

    @property
    def ok(self) -> bool:
        """Whether everything went well."""
        return all(check.ok for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        """The document of ``--json``."""
        checks = [{**msgspec.to_builtins(check), "ok": check.ok} for check in self.checks]
        return {**msgspec.to_builtins(self), "checks": checks, "ok": self.ok}


class NotTried(NamedTuple):
    """Nothing went wrong, but this was not tried."""

    why: str


Step = Callable[[ProcessAdapter], Awaitable[Problem | NotTried | None]]
_STEPS: list[tuple[str, str, Step]] = []


def _asks(name: str, what: str) -> Callable[[Step], Step]:
    def add(step: Step) -> Step:
        _STEPS.append((name, what, step))
        return step

    return add


async def check(
    command: str | Sequence[str],
    protocol: str | None = None,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    hello_s: float = HELLO_S,
) -> CheckReport:
    """Start the adapter, try everything, end it. Without `protocol` it is offered each one in turn.

    Args:
        hello_s: How long the adapter may take from its start to the answer to hello.
    """
    checks: list[Check] = []

    def note(name: str, asks: str, found: Problem | NotTried | None, begun: float) -> None:
        came, expected, fix = found if isinstance(found, Problem) else ("", "", "")
        left = found.why if isinstance(found, NotTried) else ""
        checks.append(Check(name, asks, came, expected, fix, time.monotonic() - begun, left))

    begun = time.monotonic()
    for candidate in [protocol] if protocol else list(profiles()):
        adapter = ProcessAdapter(command, candidate, env=env, cwd=cwd)
        problem, goes_on = await introduce(adapter, hello_s)
        if not goes_on:
            break
    note("hello", "starts and answers hello with what it can do", problem, begun)
    if problem:
        return CheckReport(adapter.command, protocol or "", None, checks)
    try:
        for name, what, step in _STEPS:
            begun = time.monotonic()
            note(name, what, await step(adapter) if adapter.alive else _ended(adapter), begun)
    finally:
        await adapter.kill()
    return CheckReport(adapter.command, adapter.protocol, adapter.hello, checks)


def _ended(adapter: ProcessAdapter) -> Problem:
    came = f"the adapter has ended, exit code {adapter.exit_code}{adapter.stderr_tail()}"
    return Problem(
        came, "one process that goes through all checks", "catch what an op throws, and answer it as an error"
    )


@_asks("complete", "every declared role has the ops that it cannot do without")
async def _complete(adapter: ProcessAdapter) -> Problem | None:
    roles = profile_of(adapter.protocol).roles
    strangers = sorted(set(adapter.hello.roles) - set(roles))
    if strangers:
        came = f"{adapter.protocol} has no role {', '.join(strangers)}"
        return Problem(came, f"some of {', '.join(roles)}", "take it out of `roles`")
    missing = missing_ops(adapter.hello, adapter.protocol)
    if missing:
        came = f"not declared: {', '.join(missing)}"
        expected = f"all ops that {', '.join(adapter.hello.roles) or 'every adapter'} needs"
        return Problem(came, expected, "add the op to `ops`, or take the role out of `roles`")
    return None


@_asks("bodies", "echoes text, base64 and generated bodies byte by byte")
async def _bodies(adapter: ProcessAdapter) -> Problem | None:
    for body in BODIES:
        result = await adapter.call("echo", {"body": body}, DEADLINE_MS)
        shown, data = str(body)[:60], body_bytes(body)
        expected = f"the {len(data)} bytes of {shown}"
        if not result.ok:
            return Problem(f"{shown}: {result}", expected, BODY_FIX)
        try:
            came = result.value["body"]
            same = same_body(came, data)
        except (KeyError, TypeError, ValueError, AttributeError, Failure):
            return Problem(f"{shown}: {str(result.value)[:100]}", '{"body": {"b64": "..."}}', BODY_FIX)
        if not same:
            return Problem(f"{shown} came back as {str(came)[:100]}", expected, BODY_FIX)
    return None


@_asks("concurrency", f"{CONCURRENT} state ops at once: one answer each")
async def _concurrency(adapter: ProcessAdapter) -> Problem | None:
    calls = [adapter.begin("state", {"session": f"s{n}"}, DEADLINE_MS) for n in range(CONCURRENT)]
    results = await asyncio.gather(*calls)
    wrong = [result for result in results if not result.ok]
    if wrong:
        came = f"{len(wrong)} of {CONCURRENT} failed, the first: {wrong[0]}"
        return Problem(
            came, f"{CONCURRENT} answers", "answer every request once, also `state` of an unknown session"
        )
    closed = [isinstance(result.value, Mapping) and result.value.get("open") is False for result in results]
    if not all(closed):
        came = str(results[closed.index(False)].value)[:100]
        expected = 'the state of a session that does not exist is {"open": false}'
        return Problem(came, expected, "no session of that name: not open, and no error")
    return None


@_asks("roles", "connects to a fake broker and does one op of each role there")
async def _roles(adapter: ProcessAdapter) -> Problem | NotTried | None:
    failed, left = await tried(adapter)
    if failed:
        expected = "a fake broker that does everything right: connect, and one op of each role, are ok"
        return Problem(f"{failed}{adapter.stderr_tail()}", expected, ROLES_FIX)
    return NotTried("; ".join(left)) if left else None


@_asks("line order", f"{OPS} messages of one session reach a fake broker in line order")
async def _line_order(adapter: ProcessAdapter) -> Problem | NotTried | None:
    if not adapter.hello.can("concurrent"):
        return NotTried("the adapter says that ops do not overlap (concurrent: false)")
    if "publisher" not in adapter.hello.roles:
        return NotTried("it is no publisher")
    places = await order(adapter)
    if not places:
        return NotTried("no message of the burst reached the fake broker")
    passed = overtaken(places)
    if passed is None:
        return None
    later, earlier = passed
    came = f"message {later + 1} overtook message {earlier + 1}"
    return Problem(came, f"1 to {OPS} in that order", ORDER_FIX)


@_asks("honesty", "answers what it did not declare with unsupported")
async def _honesty(adapter: ProcessAdapter) -> Problem | None:
    hello = adapter.hello
    away = {name for name, value in hello.caps.items() if value is False}
    known = {*capabilities(), *(away & optional_arguments(adapter.protocol))}
    unknown = sorted(set(hello.caps) - known)
    if unknown:
        came = f"declares capabilities that do not exist: {', '.join(unknown)}"
        return Problem(came, "words of the table in ADAPTER.md", "look for a misspelt name")
    unknown = sorted(set(hello.limits) - {*LIMITS, *bounds(adapter.protocol)})
    if unknown:
        came = f"declares limits that do not exist: {', '.join(unknown)}"
        return Problem(came, "words of the table `limits` in ADAPTER.md", "look for a misspelt name")
    strange = sorted(set(hello.contract) - {*CONTRACT, OTHERS})
    if strange:
        came = f"its contract has words that do not exist: {', '.join(strange)}"
        return Problem(came, "words of the second table in ADAPTER.md, section 3", "look for a misspelt name")
    for capability, needed in capability_ops().items():
        if hello.can(capability) and needed not in hello.ops:
            came = f"declares {capability} without the op {needed}"
            return Problem(
                came, f"{needed} among its ops", f"write the op {needed}, or take {capability} back"
            )
    for op in ["fakebrokers.no_such_op", *sorted(set(all_ops()) - set(hello.ops))]:
        result = await adapter.call(op, {"session": "none", "id": 0}, DEADLINE_MS)
        if result.kind is not Kind.UNSUPPORTED or result.error is None or not result.error.definite:
            expected = f"{op} is not declared, so it must fail unsupported (definite)"
            return Problem(
                str(result), expected, f"declare {op} if it works, else answer it with unsupported"
            )
    for version, protocol in ((999, adapter.protocol), (1, "no-such-protocol")):
        args = {"version": version, "protocol": protocol}
        result = await adapter.call("hello", args, DEADLINE_MS)
        if result.kind is not Kind.UNSUPPORTED:
            return Problem(
                str(result), f"hello {args} must fail unsupported", "compare both members, in every hello"
            )
    return None


@_asks("long line", "takes a line of 4 MiB")
async def _long_line(adapter: ProcessAdapter) -> Problem | None:
    data = bytes(LONG_LINE_BYTES * 3 // 4)
    body = {"b64": base64.b64encode(data).decode()}
    result = await adapter.call("echo", {"body": body}, 2 * DEADLINE_MS)
    expected = f"the {len(data)} bytes of the line, as digest and length"
    if not result.ok:
        return Problem(str(result), expected, "lines have up to 8 MiB; many readers of lines stop far below")
    if same_body(result.value["body"], data):
        return None
    return Problem(f"came back as {str(result.value['body'])[:100]}", expected, BODY_FIX)


@_asks("extra members", "ignores members that it does not know")
async def _extra_members(adapter: ProcessAdapter) -> Problem | None:
    args = {"body": {"text": "hi"}, "from_the_future": [1, {"a": None}]}
    result = await adapter.call("echo", args, DEADLINE_MS)
    return (
        None
        if result.ok
        else Problem(str(result), "the body, as without them", "read the members that you know")
    )


@_asks("cancel", "survives a cancel for an op that has ended")
async def _cancel(adapter: ProcessAdapter) -> Problem | None:
    ended = await adapter.call("echo", {"body": {"text": "hi"}}, DEADLINE_MS)
    result = await adapter.call("cancel", {"id": ended.id}, DEADLINE_MS)
    if result.ok or "cancel" not in adapter.hello.ops:  # an undeclared op is judged by `honesty`
        return None
    return Problem(str(result), "ok: there is nothing left to cancel", "an id that is not open is no error")


@_asks("reset", "resets twice and goes on")
async def _reset(adapter: ProcessAdapter) -> Problem | None:
    for result in (await adapter.reset(), await adapter.reset()):
        if not result.ok:
            return Problem(str(result), "ok, whatever there was to drop", "reset may find nothing to close")
    result = await adapter.call("echo", {"body": {"text": "still here"}}, DEADLINE_MS)
    if result.ok:
        return None
    return Problem(
        f"after the reset: {result}", "the state after hello", "reset drops sessions, not the adapter"
    )


@_asks("order", "counts its lines from 1 without gaps, answers once, writes nothing else to stdout")
async def _order(adapter: ProcessAdapter) -> Problem | None:
    if not adapter.violations:
        return None
    came = "; ".join(adapter.violations[:3])
    expected = "`n` counts every line in the order of writing; each request has one answer"
    return Problem(came, expected, f"count and write under one lock; {CLEAN_STDOUT}")


@_asks("end of input", "exits with 0 within 2 s when its stdin ends")
async def _end_of_input(adapter: ProcessAdapter) -> Problem | None:
    code = await adapter.end_of_input()
    if code == 0:
        return None
    came = "it had to be killed" if code is None else f"exit code {code}{adapter.stderr_tail()}"
    fix = "leave when reading gives nothing more, whatever the library's threads do"
    return Problem(came, "exit code 0 within 2 s", fix)
