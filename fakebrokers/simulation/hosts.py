"""Hosts of a simulation, and the processes on them."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Literal, Protocol

from fakebrokers.simulation.ends import End

#: The first port that a program gets which asks for any.
FIRST_FREE_PORT = 40_000

#: In which process the code runs that is running.
PROCESS: ContextVar[Process] = ContextVar("PROCESS")


class Closable(Protocol):
    """What the kernel closes when its process ends."""

    def close(self) -> None:
        """Close it."""


class Host:
    """A machine with a name and an address; code on it reaches itself as ``localhost``, too.

    Attributes:
        doors: What listens for connections, by port.
        boxes: What takes datagrams, by port.
    """

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.doors: dict[int, Door] = {}
        self.boxes: dict[int, Box] = {}
        self._free = FIRST_FREE_PORT

    def __repr__(self) -> str:
        return f"<host {self.name} at {self.address}>"

    def free_port(self) -> int:
        """A free port."""
        while self._free in self.doors or self._free in self.boxes:
            self._free += 1
        self._free += 1
        return self._free - 1


class Process:
    """A program that runs on a host, until it is killed.

    Attributes:
        host: Where it runs.
        alive: Nothing of a process that is not alive is called any more.
        context: For what the kernel calls on its behalf.
        left: Its tasks when it was killed; they never go on.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self.alive = True
        self.left: list[asyncio.Task[object]] = []
        self._held: dict[Closable, None] = {}
        self.context: Context = copy_context()
        self.context.run(PROCESS.set, self)

    def hold(self, what: Closable) -> None:
        """The kernel closes this when the process ends."""
        self._held[what] = None

    def let_go(self, what: Closable) -> None:
        """It is closed."""
        self._held.pop(what, None)

    def kill(self, tasks: list[asyncio.Task[object]]) -> None:
        """End at once, without a last word: the kernel closes what is open."""
        self.alive = False
        self.left = tasks
        for each in tuple(self._held):
            each.close()
        self._held.clear()


class Door:
    """A port of a host on which a process listens for connections; implements `Closable`.

    Attributes:
        state: Whether connects are accepted, refused or left hanging.
        accept: Called with the new connection's end, in a context of the process.
    """

    def __init__(self, process: Process, port: int, accept: Callable[[End], None], *, inside: bool) -> None:
        self.process = process
        self.accept = accept
        self.state: Literal["open", "refusing", "hole"] = "open"
        self._inside = inside  #: only programs of this host get in
        host = process.host
        self.port = port or host.free_port()
        if self.port in host.doors:
            raise OSError(errno.EADDRINUSE, f"address in use: port {self.port} of {host.name}")
        host.doors[self.port] = self
        process.hold(self)

    def lets_in(self, guest: Host) -> bool:
        """Whether a program of that host reaches it."""
        return self.state == "open" and (not self._inside or guest is self.process.host)

    def close(self) -> None:
        """Nothing listens there any more."""
        self.process.host.doors.pop(self.port, None)
        self.process.let_go(self)


class Box(Protocol):
    """A port of a host that takes datagrams."""

    def arrived(self, data: bytes, source: tuple[str, int]) -> None:
        """A datagram has come."""
