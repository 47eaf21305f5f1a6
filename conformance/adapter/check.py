"""The self-test of an adapter: does it speak the protocol? No broker and no library are involved."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from conformance.adapter.base import AdapterFailed
from conformance.adapter.messages import Hello, Kind, body_bytes, same_body
from conformance.adapter.process import ProcessAdapter
from conformance.adapter.profile import ALL_OPS, CAPABILITIES, CAPABILITY_OPS, ROLE_OPS, missing_ops

DEADLINE_MS = 5000.0
CONCURRENT = 100
LONG_LINE_BYTES = 4 << 20

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
    """One thing that was tried. `problem` is empty if it went well."""

    name: str
    asks: str
    problem: str
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether it went well."""
        return not self.problem


class Report(msgspec.Struct, frozen=True):
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


Step = Callable[[ProcessAdapter], Awaitable[str]]
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
) -> Report:
    """Start the adapter, try everything, end it. Without `protocol` it is offered each one in turn."""
    checks: list[Check] = []
    begun = time.monotonic()
    adapter, problem = None, ""
    for candidate in [protocol] if protocol else list(ROLE_OPS):
        adapter = ProcessAdapter(command, candidate, env=env, cwd=cwd)
        try:
            await adapter.start()
        except AdapterFailed as error:
            problem = problem or str(error)
        else:
            problem = ""
            break
    assert adapter is not None
    asks = "starts and answers hello with what it can do"
    checks.append(Check("hello", asks, problem, time.monotonic() - begun))
    if problem:
        return Report(adapter.command, protocol or "", None, checks)
    try:
        for name, what, step in _STEPS:
            begun = time.monotonic()
            problem = await step(adapter) if adapter.alive else "the adapter has ended" + adapter.last_words()
            checks.append(Check(name, what, problem, time.monotonic() - begun))
    finally:
        await adapter.kill()
    return Report(adapter.command, adapter.protocol, adapter.hello, checks)


@_asks("complete", "every declared role has the ops that it cannot do without")
async def _complete(adapter: ProcessAdapter) -> str:
    missing = missing_ops(adapter.hello, adapter.protocol)
    strangers = sorted(set(adapter.hello.roles) - set(ROLE_OPS.get(adapter.protocol, {})))
    if strangers:
        return f"{adapter.protocol} has no role {', '.join(strangers)}"
    return f"not declared: {', '.join(missing)}" if missing else ""


@_asks("bodies", "echoes text, base64 and generated bodies byte by byte")
async def _bodies(adapter: ProcessAdapter) -> str:
    for body in BODIES:
        result = await adapter.call("echo", {"body": body}, DEADLINE_MS)
        shown = str(body)[:60]
        if not result.ok:
            return f"{shown}: {result}"
        if not same_body(result.value["body"], body_bytes(body)):
            return f"{shown} came back as {str(result.value['body'])[:100]}"
    return ""


@_asks("concurrency", f"{CONCURRENT} state ops at once: one answer each")
async def _concurrency(adapter: ProcessAdapter) -> str:
    calls = [adapter.begin("state", {"session": f"s{n}"}, DEADLINE_MS) for n in range(CONCURRENT)]
    results = await asyncio.gather(*calls)
    wrong = [result for result in results if not result.ok]
    if wrong:
        return f"{len(wrong)} of {CONCURRENT} failed, the first: {wrong[0]}"
    if any(result.value.get("open") is not False for result in results):
        return 'the state of a session that does not exist is {"open": false}'
    return ""


@_asks("honesty", "answers what it did not declare with unsupported")
async def _honesty(adapter: ProcessAdapter) -> str:
    hello = adapter.hello
    unknown = sorted(set(hello.caps) - CAPABILITIES)
    if unknown:
        return f"declares capabilities that do not exist: {', '.join(unknown)}"
    for capability, needed in CAPABILITY_OPS.items():
        if hello.can(capability) and needed not in hello.ops:
            return f"declares {capability} without the op {needed}"
    for op in ["fakebrokers.no_such_op", *sorted(ALL_OPS - set(hello.ops))]:
        result = await adapter.call(op, {"session": "none", "id": 0}, DEADLINE_MS)
        if result.kind is not Kind.UNSUPPORTED or result.error is None or not result.error.definite:
            return f"{op} is not declared, so it must fail unsupported (definite): {result}"
    for version, protocol in ((999, adapter.protocol), (1, "no-such-protocol")):
        args = {"version": version, "protocol": protocol}
        result = await adapter.call("hello", args, DEADLINE_MS)
        if result.kind is not Kind.UNSUPPORTED:
            return f"hello {args} must fail unsupported: {result}"
    return ""


@_asks("long line", "takes a line of 4 MiB")
async def _long_line(adapter: ProcessAdapter) -> str:
    data = bytes(LONG_LINE_BYTES * 3 // 4)
    body = {"b64": base64.b64encode(data).decode()}
    result = await adapter.call("echo", {"body": body}, 2 * DEADLINE_MS)
    if not result.ok:
        return str(result)
    return "" if same_body(result.value["body"], data) else f"came back as {str(result.value['body'])[:100]}"


@_asks("extra members", "ignores members that it does not know")
async def _extra_members(adapter: ProcessAdapter) -> str:
    args = {"body": {"text": "hi"}, "from_the_future": [1, {"a": None}]}
    result = await adapter.call("echo", args, DEADLINE_MS)
    return "" if result.ok else str(result)


@_asks("cancel", "survives a cancel for an op that has ended")
async def _cancel(adapter: ProcessAdapter) -> str:
    ended = await adapter.call("echo", {"body": {"text": "hi"}}, DEADLINE_MS)
    result = await adapter.call("cancel", {"id": ended.id}, DEADLINE_MS)
    if "cancel" not in adapter.hello.ops:
        return ""  # judged by `honesty`
    return "" if result.ok else str(result)


@_asks("reset", "resets twice and goes on")
async def _reset(adapter: ProcessAdapter) -> str:
    for result in (await adapter.reset(), await adapter.reset()):
        if not result.ok:
            return str(result)
    result = await adapter.call("echo", {"body": {"text": "still here"}}, DEADLINE_MS)
    return "" if result.ok else f"after the reset: {result}"


@_asks("order", "counts its lines from 1 without gaps, answers once, writes nothing else to stdout")
async def _order(adapter: ProcessAdapter) -> str:
    return "; ".join(adapter.violations[:3])


@_asks("end of input", "exits with 0 within 2 s when its stdin ends")
async def _end_of_input(adapter: ProcessAdapter) -> str:
    code = await adapter.end_of_input()
    if code is None:
        return "it had to be killed"
    return "" if code == 0 else f"exit code {code}{adapter.last_words()}"
