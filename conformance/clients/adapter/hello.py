"""The first words of an adapter: what its hello is, or what came instead."""

from __future__ import annotations

import asyncio
import json
import shlex
from typing import NamedTuple

from conformance.clients.adapter.base import AdapterFailed
from conformance.clients.adapter.messages import PROTOCOL_VERSION
from conformance.clients.adapter.process import ProcessAdapter

HELLO_S = 4.5  #: so that a caller knows within 5 s
NEEDED = ("adapter", "library", "library_version", "language", "protocols", "roles", "ops")
CLEAN_STDOUT = "send what the library or its log prints to stderr"


class Problem(NamedTuple):
    """What went wrong, in three answers to a stranger's questions."""

    came: str
    expected: str
    fix: str


async def introduce(adapter: ProcessAdapter, hello_s: float) -> tuple[Problem | None, bool]:
    """Say hello. Returns what is wrong with the answer, and whether another protocol may be right."""
    starting = asyncio.ensure_future(adapter.start((hello_s * 1000 - 250) / 1.2))
    while not starting.done() and not adapter.violations:
        await asyncio.wait({starting}, timeout=0.05)
    if adapter.violations:  # whatever else it says, it does not keep stdout clean
        starting.cancel()
        await asyncio.wait({starting})
        await adapter.kill()
        return Problem(
            adapter.violations[0].strip(), _expected(hello_s), f"answer hello; {CLEAN_STDOUT}"
        ), False
    try:
        starting.result()
    except AdapterFailed as error:
        return _no_hello(adapter, error, hello_s), error.answer is not None and error.answer.error is not None
    return None, False


def _no_hello(adapter: ProcessAdapter, error: AdapterFailed, hello_s: float) -> Problem:
    expected = _expected(hello_s)
    answer = error.answer
    if answer is None:
        fix = "name a program on the PATH, or its path; no shell is involved, except in `sh -c '...'`"
        return Problem(str(error), "a command that starts", fix)
    if answer.crashed:
        came = f"it ended with exit code {adapter.exit_code} before it answered{adapter.stderr_tail()}"
        args = {"version": PROTOCOL_VERSION, "protocol": adapter.protocol}
        line = json.dumps({"id": 1, "op": "hello", "args": args})
        by_hand = f"echo {shlex.quote(line)} | {shlex.join(adapter.command)}"
        return Problem(came, expected, f"try it by hand: {by_hand}")
    if answer.hang:
        fix = (
            "read stdin line by line, and flush stdout after every line; --hello-timeout if it starts slowly"
        )
        return Problem(f"nothing on stdout{adapter.stderr_tail()}", expected, fix)
    if answer.error is not None:
        fix = "answer hello for version 1 and every protocol that the library speaks; --protocol names one"
        return Problem(str(answer), expected, fix)
    fix = "see ADAPTER.md, Start-up and capabilities, or adapter/schema.json"
    return Problem(str(error), f"a result with at least {', '.join(NEEDED)}", fix)


def _expected(hello_s: float) -> str:
    return f'{{"n": 1, "t": 0.4, "id": 1, "ok": true, "result": {{...}}}} on stdout within {hello_s:g} s'
