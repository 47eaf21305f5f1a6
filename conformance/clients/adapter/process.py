"""A client whose adapter is a child process of its own.

The process leads its own session: Ctrl-C does not reach it, and everything in its process group is killed
with it. What has left the group (``setsid``) is found by a mark in its environment, where there is a /proc;
on macOS it stays. An adapter ends on EOF; where the system can do it, it also dies with the suite.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import shlex
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, Process
from bisect import bisect
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from conformance.clients.adapter.base import OWN_BUG, Adapter, AdapterFailed, ProcessFacts
from conformance.clients.adapter.messages import (
    LINE_BYTES_MAX,
    PROTOCOL_VERSION,
    BadLine,
    Request,
    decode,
    encode,
)

OWN_BUG_CODE = 3  #: exit code
EOF_GRACE_S = 2.0  #: from EOF to exit
#: Of the environment: the process measures its own coverage. It writes that down at SIGTERM in Python, and
#: where it ends by itself in the others.
MEASURED, V8_MEASURED, GO_MEASURED = "COVERAGE_PROCESS_START", "NODE_V8_COVERAGE", "GOCOVERDIR"
JAVA_MEASURED, RUST_MEASURED = "FAKEBROKERS_COVERAGE", "LLVM_PROFILE_FILE"
ALL_MEASURED = frozenset({MEASURED, V8_MEASURED, GO_MEASURED, JAVA_MEASURED, RUST_MEASURED})
STDERR_BYTES_MAX = 1 << 20
PIECES_MAX = 10_000  #: of stderr whose times are kept
_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
#: In the environment of each adapter and of all that it starts, with a value of its own.
MARK = "FAKEBROKERS_ADAPTER_MARK"
#: A backtrace of a panic in Rust loads the debug information of the program, more than a hundred MiB: to
#: scenarios that watch the memory that would be a leak. The message and its place are printed all the same.
QUIET = {"RUST_BACKTRACE": "0"}
LINES_AT_ONCE = 500  #: then others get their turn
RESET_PEAK = "5"  #: see proc(5), clear_refs
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)
_numbers = itertools.count(1)
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class _Tail:
    """The last bytes of an endless text, addressed by their position in the whole."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()
        #: Where pieces begin, and when they came.
        self._came: deque[tuple[int, float]] = deque(maxlen=PIECES_MAX)
        self.size = 0

    def add(self, data: bytes, at_s: float) -> None:
        self._came.append((self.size, at_s))
        self.size += len(data)
        self._data += data
        if len(self._data) > 2 * self._limit:
            del self._data[: -self._limit]

    def since(self, position: int) -> str:
        dropped = self.size - len(self._data)
        return self._data[max(0, position - dropped) :].decode(errors="replace")

    def lines(self, position: int) -> list[tuple[float, str]]:
        """Whole lines from a position on, each with the time at which its piece came."""
        dropped, found = self.size - len(self._data), list[tuple[float, str]]()
        at = max(position, dropped, self._came[0][0] if self._came else self.size)
        places = [place for place, _ in self._came]
        for line in self._data[at - dropped :].splitlines(keepends=True):
            came_s = self._came[bisect(places, at) - 1][1]
            at += len(line)
            if text := line.decode(errors="replace").strip():
                found.append((came_s, text))
        return found


class ProcessAdapter(Adapter):
    """Runs the command of an adapter; lines go over its stdin and stdout.

    Args:
        command: The argument vector, or a line in the manner of the shell (no shell is involved).
        env: Added to the environment.
        cwd: Working directory.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        protocol: str,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
    ) -> None:
        super().__init__(protocol)
        self.command = shlex.split(command) if isinstance(command, str) else list(command)
        self._env = dict(env or {})
        self._cwd = cwd
        self._process: Process | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stderr = _Tail(STDERR_BYTES_MAX)
        self._mark = ""
        self._is_read = True
        self._paused_ns = 0

    # Life.

    async def _open(self) -> None:
        if shutil.which(self.command[0], path=self._env.get("PATH")) is None:
            raise AdapterFailed(f"cannot start {shlex.join(self.command)}: no such program")
        self._stderr = _Tail(STDERR_BYTES_MAX)
        self._mark = f"{os.getpid()}-{next(_numbers)}"
        self._is_read = True
        environment = {
            **os.environ,
            **QUIET,
            **self._env,
            "FAKEBROKERS_PROTOCOL": self.protocol,
            "FAKEBROKERS_ADAPTER_VERSION": str(PROTOCOL_VERSION),
            MARK: self._mark,
        }
        try:
            process = await asyncio.create_subprocess_exec(
                *_dying_with_us(self.command),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                limit=LINE_BYTES_MAX,
                env=environment,
                cwd=self._cwd,
                start_new_session=True,
            )
        except OSError as error:
            raise AdapterFailed(f"cannot start {shlex.join(self.command)}: {error.strerror}") from None
        self._process = process
        self._tasks = [
            asyncio.create_task(self._read_lines(process)),
            asyncio.create_task(self._read_stderr(process)),
        ]

    async def shutdown(self) -> int | None:
        """Send ``shutdown``, wait 2 s for the exit, then kill. Returns the exit code."""
        if self.alive:
            await self.call("shutdown")
            await self._exit_within(EOF_GRACE_S)
        return await self._finish()

    async def end_of_input(self) -> int | None:
        """Close stdin and wait 2 s for the exit. Returns the exit code, None if it had to be killed."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        in_time = await self._exit_within(EOF_GRACE_S)
        code = await self._finish()
        return code if in_time else None

    async def kill(self) -> None:
        if self.alive and ALL_MEASURED & self._env.keys():
            await self._let_it_write()
        await self._finish()

    async def _let_it_write(self) -> None:
        """Let the process write down what it has executed."""
        assert self._process is not None
        assert self._process.stdin is not None
        if MEASURED in self._env:
            self._signal(signal.SIGTERM)
        else:
            self._process.stdin.close()
        await self._exit_within(EOF_GRACE_S)

    async def _exit_within(self, seconds: float) -> bool:
        assert self._process is not None
        waiting = asyncio.ensure_future(self._process.wait())
        await asyncio.wait({waiting}, timeout=seconds)
        if not waiting.done():
            waiting.cancel()
        return waiting.done() and not waiting.cancelled()

    async def _finish(self) -> int | None:
        """Kill what is left of the process group and outside it, close the pipes, collect the exit code."""
        if self._process is None:
            return None
        self._signal(signal.SIGKILL)
        code = await self._process.wait()
        if self._mark:
            await asyncio.to_thread(kill_marked, self._mark)
            self._mark = ""
        _, late = await asyncio.wait(self._tasks, timeout=1)
        for task in late:  # a grandchild outside the group still holds a pipe
            task.cancel()
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(OSError):
            await self._process.stdin.wait_closed()
        self._process._transport.close()  # type: ignore[attr-defined] # asyncio closes pipes late otherwise
        self._gone()
        return code

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        """Of the process that was started last."""
        return None if self._process is None else self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative for a signal."""
        return None if self._process is None else self._process.returncode

    # Lines.

    def _send(self, request: Request) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(encode(request))

    async def _read_lines(self, process: Process) -> None:
        assert process.stdout is not None
        while self._is_read and (line := await self._next_line(process.stdout)):
            if not line.endswith(b"\n") and isinstance(decode(line), BadLine):
                break  # the process died in the middle of a line
            self._receive(line)
            if self._lines % LINES_AT_ONCE == 0:
                await asyncio.sleep(0)
        while not self._is_read and await process.stdout.read(1 << 20):
            pass  # what is still in the pipe
        code = await process.wait()
        ended_ns = self.now_ns()
        await asyncio.wait({self._tasks[1]}, timeout=1)  # its last words
        self.ended_ns = ended_ns
        if code == OWN_BUG_CODE and self._lines:
            said = self.stderr().strip().rpartition("\n")[2]
            self.violate(f"it ended with exit code {OWN_BUG_CODE}, for {OWN_BUG}{said and f': {said}'}")
        self._gone()

    async def _next_line(self, lines: asyncio.StreamReader) -> bytes:
        """One line; empty at the end of all lines."""
        try:
            return await lines.readline()
        except ValueError:
            self.violate(f"a line of more than {LINE_BYTES_MAX} bytes")
            self._stop_reading()
            return b""

    def _stop_reading(self) -> None:
        self._is_read = False
        self._signal(signal.SIGKILL)

    async def _read_stderr(self, process: Process) -> None:
        assert process.stderr is not None
        while data := await process.stderr.read(1 << 16):
            self._stderr.add(data, self.now_ns() / 1e9)

    def stderr(self, since: int = 0) -> str:
        return self._stderr.since(since)

    def stderr_lines(self, since: int = 0) -> list[tuple[float, str]]:
        return self._stderr.lines(since)

    @property
    def stderr_mark(self) -> int:
        return self._stderr.size

    # The process.

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)
        self._paused_ns = self.now_ns()

    def resume(self) -> None:
        self._signal(signal.SIGCONT)
        if self.onlooker is not None and self._paused_ns:
            self.onlooker.stopped((self.now_ns() - self._paused_ns) / 1e9)
        self._paused_ns = 0

    def forget_peak(self) -> None:
        if self._process is not None:
            forget_peak(self._process.pid)

    def facts(self) -> ProcessFacts | None:
        if self._process is None:
            return None
        return process_facts(self._process.pid, self._process.returncode)


def forget_peak(pid: int) -> None:
    """Let the peak of a process's memory be what it has now."""
    with suppress(OSError):  # no such system, or no such process any more
        Path("/proc", str(pid), "clear_refs").write_text(RESET_PEAK)


def process_facts(pid: int, exit_code: int | None = None) -> ProcessFacts:
    """What /proc tells about a process; only the exit code if it has ended or there is no /proc."""
    root = Path("/proc", str(pid))
    try:
        fields = (root / "stat").read_text().rpartition(")")[2].split()  # the name may hold spaces
        fds = len(os.listdir(root / "fd"))
        peak = _PEAK.search((root / "status").read_text())
    except OSError:
        return ProcessFacts(pid, exit_code)
    user, system, threads, pages = (int(fields[index]) for index in (11, 12, 17, 21))
    peak_bytes = int(peak[1]) * 1024 if peak is not None else None
    cpu_s = (user + system) / _TICKS_PER_S
    return ProcessFacts(pid, exit_code, cpu_s, pages * _PAGE_BYTES, fds, threads, peak_bytes)


def kill_marked(mark: str) -> int:
    """Kill every process whose environment has the mark; how many these were. 0 where there is no /proc.

    Looks again until none is left: one may start another while it is looked for.
    """
    wanted, killed = f"{MARK}={mark}".encode(), 0
    for _ in range(5):
        found = [pid for pid in _processes() if wanted in _environment(pid)]
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed += len(found)
        if not found:
            break
    return killed


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []


def _environment(pid: int) -> list[bytes]:
    try:
        return Path("/proc", str(pid), "environ").read_bytes().split(b"\0")
    except OSError:  # ended, or another user's
        return []


def _dying_with_us(command: Sequence[str]) -> list[str]:
    """The command, killed by the kernel when the suite ends without saying so (Linux)."""
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    return [setpriv, "--pdeathsig", "KILL", "--", *command] if setpriv else list(command)
