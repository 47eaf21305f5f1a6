"""What a simulation does not have, and who asked for it.

Code in a simulation must not do anything real without being noticed: a blocking socket would wait in real
time for a host that does not exist. Methods of the loop refuse by themselves; of what goes past the loop,
Python's audit events tell.
"""

from __future__ import annotations

import multiprocessing.util
import select
import sys
import sysconfig
import threading
import time
from asyncio import _get_running_loop
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from fakebrokers.errors import NotSimulated

_STREAMS = "use asyncio.open_connection, or a client library that is made for asyncio"
_PROGRAM = "start the program's own functions with simulation.start"
_THREADS = "use asyncio.to_thread, whose work runs to its end at once, or a task"

#: What is refused, by audit event, and what to do instead.
REFUSED = {
    "socket.connect": ("a socket of the operating system", _STREAMS),
    "socket.bind": ("a socket of the operating system", _STREAMS),
    "socket.sendto": ("a socket of the operating system", _STREAMS),
    "socket.sendmsg": ("a socket of the operating system", _STREAMS),
    "socket.getaddrinfo": ("a name of the real network", "await loop.getaddrinfo"),
    "socket.gethostbyname": ("a name of the real network", "await loop.getaddrinfo"),
    "socket.gethostbyaddr": ("a name of the real network", "await loop.getaddrinfo"),
    "socket.getnameinfo": ("a name of the real network", "await loop.getaddrinfo"),
    "select.select": ("a descriptor of the operating system", _STREAMS),
    "time.sleep": ("a sleep that really waits", "await asyncio.sleep"),
    "_thread.start_new_thread": ("a thread", _THREADS),
    "_thread.start_joinable_thread": ("a thread", _THREADS),
    "subprocess.Popen": ("a child process", _PROGRAM),
    "os.system": ("a child process", _PROGRAM),
    "os.posix_spawn": ("a child process", _PROGRAM),
    "os.fork": ("a child process", _PROGRAM),
    "os.forkpty": ("a child process", _PROGRAM),
    "os.exec": ("another program", _PROGRAM),
}

_LIBRARY = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib"))
_SITES = tuple(sysconfig.get_paths()[name] for name in ("purelib", "platlib"))
_OWN = str(Path(__file__).parent)


def who_asked() -> str:
    """File and line of the code that called, past the standard library and this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        is_library = file.startswith(_LIBRARY) and not file.startswith(_SITES)
        if not (is_library or file.startswith((_OWN, "<"))):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return "somebody"


class RealThings:
    """Those methods of a loop that need something real: all of them are refused.

    Attributes:
        refusals: All there were; a library may have caught the errors.
    """

    refusals: list[NotSimulated]

    def refuse(self, what: str, instead: str) -> NotSimulated:
        """The error for something that is not simulated, kept for the end of the run."""
        error = NotSimulated(f"{who_asked()} asks for {what}, which is not simulated: {instead}")
        self.refusals.append(error)
        return error


def _refusing(what: str, instead: str) -> Any:
    def method(self: RealThings, *arguments: Any, **options: Any) -> Any:
        raise self.refuse(what, instead)

    return method


def _nothing_there(self: RealThings, *arguments: Any) -> bool:
    return False


for _what, _instead, _names in (
    ("a descriptor of the operating system", _STREAMS, "add_reader add_writer"),
    ("a socket of the operating system", _STREAMS, "connect_accepted_socket sock_accept sock_sendfile"),
    ("a socket of the operating system", _STREAMS, "sock_recvfrom sock_recvfrom_into sock_sendto"),
    ("a Unix socket", "use TCP", "create_unix_connection create_unix_server"),
    ("a pipe", _STREAMS, "connect_read_pipe connect_write_pipe"),
    ("a child process", _PROGRAM, "subprocess_exec subprocess_shell"),
    ("a signal", "end an application with kill() or by an event of its own", "add_signal_handler"),
):
    for _name in _names.split():
        setattr(RealThings, _name, _refusing(_what, _instead))
for _name in ("remove_reader", "remove_writer", "remove_signal_handler"):
    setattr(RealThings, _name, _nothing_there)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event in REFUSED:
        loop = _get_running_loop()
        if isinstance(loop, RealThings):
            raise loop.refuse(*REFUSED[event])


#: What raises no audit event, or does so only from Python 3.13 on: module, name, and the event.
_SILENT = (
    (time, "sleep", "time.sleep"),
    (threading, "_start_new_thread", "_thread.start_new_thread"),
    (select, "select", "select.select"),
    (multiprocessing.util, "spawnv_passfds", "os.posix_spawn"),
)


@contextmanager
def refusing_to_wait() -> Iterator[None]:
    """Refuse sleeps and new threads, too."""
    there = [(vars(module), name, event) for module, name, event in _SILENT if name in vars(module)]
    real = [names[name] for names, name, _ in there]
    for (names, name, event), function in zip(there, real, strict=True):
        names[name] = partial(_unless_simulated, event, function)
    try:
        yield
    finally:
        for (names, name, _), function in zip(there, real, strict=True):
            names[name] = function


def _unless_simulated(event: str, function: Any, *arguments: Any) -> Any:
    _audit(event, arguments)
    return function(*arguments)


_watches: list[bool] = []


def watch_for_real_things() -> None:
    """From the first simulation on: refuse what code in a simulation asks the operating system for."""
    if not _watches:
        _watches.append(True)
        sys.addaudithook(_audit)  # nobody can take it away again
