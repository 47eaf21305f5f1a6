"""What a simulation does not have, and who asked for it.

Code in a simulation must not do anything real without being noticed: a blocking socket would wait in real
time for a host that does not exist. Methods of the loop refuse by themselves; of what goes past the loop,
Python's audit events tell.
"""

from __future__ import annotations

import asyncio
import multiprocessing.util
import os
import select
import socket
import sys
import sysconfig
import threading
import time
from asyncio import _get_running_loop, selector_events
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

from fakebrokers.errors import NotSimulated
from fakebrokers.simulation import waits
from fakebrokers.simulation.places import Places

_STREAMS = "use asyncio.open_connection, or a client library that is made for asyncio"
_PROGRAM = "start the program's own functions with simulation.start"
_THREADS = "use asyncio.to_thread, whose work runs to its end at once, or a task"
_TASKS = "use those of asyncio, or asyncio.to_thread, whose work runs to its end at once"
_LOOP = "await the function on the loop that runs, or start it with simulation.start"

#: What is refused, by audit event or a name of our own, and what to do instead.
REFUSED = {
    "socket.connect": ("a socket of the operating system", _STREAMS),
    "socket.bind": ("a socket of the operating system", _STREAMS),
    "socket.sendto": ("a socket of the operating system", _STREAMS),
    "socket.sendmsg": ("a socket of the operating system", _STREAMS),
    "socket.getaddrinfo": ("a name of the real network", "await loop.getaddrinfo"),
    "socket.gethostbyname": ("a name of the real network", "await loop.getaddrinfo"),
    "socket.gethostbyaddr": ("a name of the real network", "await loop.getaddrinfo"),
    "socket.getnameinfo": ("a name of the real network", "await loop.getaddrinfo"),
    "socket.socketpair": ("a pair of sockets", "use a stream of asyncio, or an asyncio.Queue"),
    "os.pipe": ("a pipe", "use a stream of asyncio, or an asyncio.Queue"),
    "a wait": ("a lock or a queue of threads that no thread frees or fills", _TASKS),
    "a loop": ("a second event loop", _LOOP),
    "libzmq": (
        "libzmq, which has threads and sockets of its own",
        "use the fixture of such a broker, without a simulation",
    ),
    "builtins.input": ("a line of the terminal", "hand it to the application as an argument"),
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


def _audit(event: str, arguments: tuple[Any, ...] = ()) -> None:
    if event in REFUSED:
        loop = _get_running_loop()
        if isinstance(loop, RealThings):
            raise loop.refuse(*REFUSED[event])
    elif event == "import" and arguments[0] in _OF_LIBRARIES and isinstance(_get_running_loop(), RealThings):
        _guard_library(arguments[0])


def _guarded(event: str, function: Callable[..., Any]) -> Any:
    """The same function, refused in a simulation."""

    @wraps(function)
    def guard(*arguments: Any, **options: Any) -> Any:
        _audit(event)
        return function(*arguments, **options)

    return guard


#: What raises no audit event, or does so only from Python 3.13 on: where it is, its name, and the event.
_SILENT = (
    (time, "sleep", "time.sleep"),
    (threading, "_start_new_thread", "_thread.start_new_thread"),
    (select, "select", "select.select"),
    (select, "poll", "select.select"),
    (select, "epoll", "select.select"),
    (multiprocessing.util, "spawnv_passfds", "os.posix_spawn"),
    (socket, "socketpair", "socket.socketpair"),
    (os, "pipe", "os.pipe"),
    (os, "pipe2", "os.pipe"),
    (asyncio, "run", "a loop"),
    (asyncio, "new_event_loop", "a loop"),
)
_KEYS = {
    f"{place.__name__}.{name}": (place, name, event) for place, name, event in _SILENT if hasattr(place, name)
}
_REAL = {key: getattr(place, name) for key, (place, name, _) in _KEYS.items()}
_GUARDS = {key: _guarded(event, _REAL[key]) for key, (_, _, event) in _KEYS.items()}
#: The fakes and pytest do nothing of that on a simulation's loop, and are not to be slowed down.
_PLACES = Places({**_REAL, **waits.REAL}, ("fakebrokers", "_pytest", "pytest"))
_EXCHANGES = {
    **_GUARDS,
    **waits.exchanges(lambda loop: isinstance(loop, RealThings), lambda: _audit("a wait")),
}
#: What all loops of asyncio itself are built on that wait for real descriptors.
_LOOPS: Any = selector_events.BaseSelectorEventLoop
_REAL_INIT = _LOOPS.__init__


def _init_loop(loop: Any, *arguments: Any, **options: Any) -> None:
    """`__init__` of such a loop."""
    loop._closed = True  # it has nothing to close, whatever its end looks for
    _audit("a loop")
    _REAL_INIT(loop, *arguments, **options)


@contextmanager
def refusing_to_wait() -> Iterator[None]:
    """Refuse what raises no audit event, too."""
    for library in _OF_LIBRARIES:
        if library in sys.modules:
            _guard_library(library)
    _LOOPS.__init__ = _init_loop
    try:
        with _PLACES.exchanged(_EXCHANGES):
            yield
    finally:
        _LOOPS.__init__ = _REAL_INIT


#: Classes of libraries in C, with methods that a simulation refuses: what they do raises no audit event.
_OF_LIBRARIES = {
    "uvloop": (("Loop", "__init__", "a loop"),),
    "zmq": (("Context", "__init__", "libzmq"), ("Context", "socket", "libzmq")),
}
_seen: set[str] = set()


def _guard_library(name: str) -> None:
    """Guard a library for good: outside of simulations it is what it was."""
    if name not in _seen:
        _seen.add(name)
        module = import_module(name)
        for class_name, method, event in _OF_LIBRARIES[name]:
            found: Any = getattr(module, class_name)
            setattr(found, method, _guarded(event, getattr(found, method)))


_watches: list[bool] = []


def watch_for_real_things() -> None:
    """From the first simulation on: refuse what code in a simulation asks the operating system for."""
    if not _watches:
        _watches.append(True)
        sys.addaudithook(_audit)  # nobody can take it away again
