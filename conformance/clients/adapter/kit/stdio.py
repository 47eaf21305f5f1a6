"""An adapter as a child process: requests on stdin, responses and events on stdout."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from .base import AdapterBase

LINE_BYTES_MAX = 8 << 20
GOODBYE_S = 1.5  #: what the library gets to close after EOF; the process has to be gone after 2 s
OWN_BUG = 3  #: exit code

Json = dict[str, Any]


def run(adapter: AdapterBase) -> NoReturn:
    """Serve until EOF or ``shutdown``; the exit code is 0, or 3 for a bug of the adapter itself."""
    lines = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the library prints must not get between the lines

    def write(line: Json) -> None:
        try:
            text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        except (TypeError, ValueError) as bug:  # bytes in a result, say
            _own_bug(bug)
        lines.write(text.encode(errors="replace") + b"\n")  # libraries may give bytes as lone surrogates
        lines.flush()

    try:
        asyncio.run(_serve(adapter, write))
    except Exception as bug:
        _own_bug(bug)
    _leave(0)


async def _serve(adapter: AdapterBase, write: Callable[[Json], None]) -> None:
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=LINE_BYTES_MAX)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    reading = loop.create_task(_read(adapter, lines))
    stopping = loop.create_task(adapter.stopping.wait())
    adapter.on_bug = _own_bug
    adapter.start(write, own_process=True)
    await asyncio.wait({reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if reading.done():
        reading.result()
        await asyncio.wait({loop.create_task(adapter.attempt({"op": "reset"}))}, timeout=GOODBYE_S)
    _leave(0)


async def _read(adapter: AdapterBase, lines: asyncio.StreamReader) -> None:
    while line := await lines.readline():
        adapter.receive(json.loads(line))


def _own_bug(bug: Exception) -> NoReturn:
    """The runner counts this exit code neither for nor against the library."""
    traceback.print_exception(bug)
    _leave(OWN_BUG)


def _leave(code: int) -> NoReturn:
    sys.stderr.flush()
    os._exit(code)  # neither threads nor tasks of the library may keep the process alive
