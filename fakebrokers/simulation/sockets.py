"""What stands for a socket where libraries ask for one."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakebrokers.simulation.ends import Address, End


class SimulatedSocket:
    """The socket of a connection, or of a listener: it has addresses and options, and nothing to read."""

    family = socket.AF_INET
    type = socket.SOCK_STREAM
    proto = socket.IPPROTO_TCP

    def __init__(self, end: End | None = None, local: Address | None = None) -> None:
        self._end = end
        self._local = local
        self._options: dict[tuple[int, int], Any] = {} if end is None else end.options

    def __repr__(self) -> str:
        return f"<SimulatedSocket {self.getsockname()}>"

    def getsockname(self) -> Address:
        """Its own address."""
        return self._end.local if self._end is not None else self._local or ("0.0.0.0", 0)

    def getpeername(self) -> Address:
        """That of the other side."""
        if self._end is None:
            raise OSError("a listener has no peer")
        return self._end.remote

    def setsockopt(self, level: int, option: int, value: Any = None, length: int | None = None) -> None:
        """Keep an option; ``SO_LINGER`` is the one that has an effect."""
        self._options[level, option] = value

    def getsockopt(self, level: int, option: int, size: int = 0) -> Any:
        """An option as it was set."""
        return self._options.get((level, option), b"" if size else 0)

    def fileno(self) -> int:
        """There is no descriptor."""
        return -1

    def gettimeout(self) -> float:
        """It never blocks."""
        return 0.0

    def setblocking(self, flag: bool) -> None:
        """It never blocks.

        Raises:
            ValueError: It is asked to.
        """
        if flag:
            raise ValueError("setblocking(): transport sockets cannot be blocking")
