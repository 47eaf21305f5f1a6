"""The process of one run: what it says when it has ended, and what becomes of one that does not end."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import NoReturn

import msgspec

from fakebrokers.errors import FakeBrokerError
from fakebrokers.simulation.search.lines import Place
from fakebrokers.simulation.search.run import Outcome
from fakebrokers.simulation.search.schedule import Failure, Schedule

#: Of the processor, for one run.
CPU_S = 60
#: Of real time: a run that uses no processor and does not end waits for something real.
REAL_S = 300.0
OUTPUT_MAX = 4000


class Told(msgspec.Struct):
    """What a child says: an outcome, what happened and which lines are new, or why there is none."""

    outcome: Outcome | None = None
    lines: list[str] = []
    reached: list[tuple[Place, float]] = []
    problem: str = ""


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nothing that is printed inside is seen."""
    sys.stderr.flush()
    nowhere, kept = os.open(os.devnull, os.O_WRONLY), os.dup(2)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(kept, 1)
        os.dup2(kept, 2)
        os.close(nowhere)
        os.close(kept)


def tell(writing: int, work: Callable[[], Told]) -> NoReturn:
    """In a child: do it, say what came of it, and end."""
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        try:
            told = work()
        except FakeBrokerError as error:
            told = Told(problem=str(error))
        except BaseException:
            told = Told(problem=traceback.format_exc())
        sys.stdout.flush()
        sys.stderr.flush()
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(msgspec.msgpack.encode(told))
    finally:
        os._exit(0)


def heard(reading: int, child: int, schedule: Schedule) -> Told:
    """What a child has said; where it said nothing, that is how the run ended."""
    pieces = []
    in_time = True
    while in_time:
        in_time = bool(select.select([reading], [], [], REAL_S)[0])
        piece = os.read(reading, 1 << 16) if in_time else b""
        if not piece:
            break
        pieces.append(piece)
    if not in_time:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if pieces and in_time:
        return msgspec.msgpack.decode(b"".join(pieces), type=Told)
    killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if not in_time:
        text = f"the run waited {REAL_S:g} s for something real, such as a lock of another thread"
    elif killed in (signal.SIGXCPU, signal.SIGKILL):
        text = f"the run took {CPU_S} s of the processor and was ended: a loop that never awaits?"
    else:
        text = f"the run's process ended with status {status}"
    return Told(Outcome(schedule, Failure("Hang" if not in_time or killed else "Crash", text)))


def end_of(output: int) -> str:
    """The end of what a child has printed, from its file."""
    size = os.fstat(output).st_size
    return os.pread(output, OUTPUT_MAX, max(0, size - OUTPUT_MAX)).decode(errors="replace")
