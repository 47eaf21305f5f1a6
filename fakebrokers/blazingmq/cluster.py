"""The brokers of a cluster: several addresses, one set of queues."""

from __future__ import annotations


class Node:
    """One broker.

    Attributes:
        name: Such as ``east-1``.
        host, port: Where it listens.
        up: Whether it runs; a client that connects to one that does not is cut off.
        stopping: It goes down in order: it opens no queues any more.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.host = "127.0.0.1"
        self.port = 0
        self.up = True
        self.stopping = False

    def __repr__(self) -> str:
        return f"Node({self.name!r}, {self.host!r}, {self.port}, {'up' if self.up else 'down'})"
