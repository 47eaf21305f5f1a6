"""Adapters that break in the middle of their work: the correct client until somebody publishes.

python wrecks.py KIND PROTOCOL
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from conformance.clients.adapter.kit import AdapterBase, run
from conformance.clients.reference.registry import reference

#: What a publish is called; the first of any of them is the end.
PUBLISHING = ("publish", "publish_many", "narc.post")
FLOOD = 200 << 20  #: bytes; ten times what would be read of it

STDOUT = os.dup(1)  # before the kit takes it


def raw(data: bytes) -> None:
    """Past the kit, to the runner."""
    view = memoryview(data)
    while view:
        view = view[os.write(STDOUT, view) :]


def crash(adapter: AdapterBase) -> None:
    os._exit(7)


def own_bug(adapter: AdapterBase) -> None:
    adapter.on_bug(ValueError("I am no adapter"))


def segfault(adapter: AdapterBase) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def stop(adapter: AdapterBase) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def half_a_line(adapter: AdapterBase) -> None:
    raw(b'{"n":1,"t":')
    os._exit(0)


def not_utf8(adapter: AdapterBase) -> None:
    raw(b'{"n":1,"t":1,"event":"note","text":"caf\xe9"}\n')


def deep(adapter: AdapterBase) -> None:
    raw(b'{"n":1,"t":1,"event":"note","deep":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n")


def nested(adapter: AdapterBase) -> None:
    raw(b'{"n":1,"t":1,"event":"note","deep":' + b"[" * 150 + b"]" * 150 + b"}\n")


def surrogate(adapter: AdapterBase) -> None:
    raw(b'{"n":1,"t":1,"event":"note","text":"a\\ud800b"}\n')


def huge_number(adapter: AdapterBase) -> None:
    raw(b'{"n":' + b"9" * 400 + b',"t":1e999,"event":"note"}\n')


def flood_of_lines(adapter: AdapterBase) -> None:
    _flood(b"x\n" * 500_000)


def flood_of_notes(adapter: AdapterBase) -> None:
    _flood(b'{"n":1,"t":1,"event":"note","text":"again"}\n' * 20_000)


def flood_of_events(adapter: AdapterBase) -> None:
    """Right in form, and without end."""
    first = next(adapter._lines)
    for number in range(first, first + FLOOD // 256, 1000):
        lines = (
            b'{"n":%d,"t":1,"event":"note","text":"%s"}\n' % (n, b"x" * 200)
            for n in range(number, number + 1000)
        )
        raw(b"".join(lines))


def endless_line(adapter: AdapterBase) -> None:
    _flood(b"x" * 1_000_000)


def _flood(piece: bytes) -> None:
    for _ in range(FLOOD // len(piece)):
        raw(piece)


def flood_of_stderr(adapter: AdapterBase) -> None:
    def write() -> None:
        while True:
            os.write(2, b"E" * 65536 + b"\n")

    threading.Thread(target=write, daemon=True).start()


def grandchild(adapter: AdapterBase) -> None:
    """Leaves a process behind that leads a session of its own and holds the pipes."""
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    os._exit(5)


def hang(adapter: AdapterBase) -> None:
    while True:
        time.sleep(1000)


KINDS: Mapping[str, Callable[[AdapterBase], None]] = {
    kind.__name__: kind
    for kind in (
        crash, own_bug, segfault, stop, hang, half_a_line, grandchild, not_utf8, deep, nested, surrogate,
        huge_number, flood_of_lines, flood_of_notes, flood_of_events, endless_line, flood_of_stderr,
    )
}  # fmt: skip


def wreck(kind: str, protocol: str) -> type[AdapterBase]:
    """The adapter of the correct client, which goes to pieces at the first publish."""
    base = reference(protocol)

    class Wreck(base):  # type: ignore[misc, valid-type]
        adapter = library = "wreck"
        broken = False

        async def _perform(self, request: Any) -> Any:
            if request["op"] in PUBLISHING and not self.broken:
                self.broken = True
                KINDS[kind](self)
                if kind != "flood_of_stderr":
                    await asyncio.Event().wait()  # as good as dead
            return await super()._perform(request)

    return Wreck


if __name__ == "__main__":
    run(wreck(sys.argv[1], sys.argv[2])())
