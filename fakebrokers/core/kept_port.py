"""A TCP port that stays ours while the socket that listens there is exchanged."""

from __future__ import annotations

import os
import socket
import weakref


class KeptPort:
    """A bound socket that never listens: the system gives the port to nobody else.

    Linux lets two sockets have one port as long as at most one of them listens, so whoever means to listen
    there can come and go. It is taken while nobody listens, and given back by `close`, or when it is dropped.

    Raises:
        OSError: The address cannot be had.

    Attributes:
        port: The port; a free one if 0 was asked for.
    """

    def __init__(self, host: str, port: int) -> None:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((host, port))
            self.port: int = sock.getsockname()[1]
            self._descriptor = sock.detach()
        self._closed = weakref.finalize(self, os.close, self._descriptor)
        self._closed.atexit = False
        _at_fork.add(self)

    def close(self) -> None:
        """Give the port back. Safe to call twice."""
        self._closed()

    def _forget(self) -> None:
        if self._closed.alive:
            os.close(self._descriptor)
            self._closed.detach()


_at_fork: weakref.WeakSet[KeptPort] = weakref.WeakSet()


def _let_go_after_fork() -> None:
    """A forked child must not keep its parent's ports."""
    for kept in tuple(_at_fork):
        kept._forget()
    _at_fork.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_after_fork)
