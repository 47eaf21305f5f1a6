"""The servers of a cluster, and what each tells its clients of the others."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

#: Of the name that a server gives itself.
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


class Node:
    """One server.

    Attributes:
        id: As INFO has it, 56 letters.
        host, port, tls_port: The address that clients get of it.
        up: Whether it runs.
        leaving: Whether its clients know that it will stop (lame duck mode).
    """

    def __init__(self, id: str) -> None:
        self.id = id
        self.host = "127.0.0.1"
        self.port = self.tls_port = 0
        self.up = True
        self.leaving = False

    def __repr__(self) -> str:
        return f"Node({self.id[:8]!r}, {self.host!r}, {self.port}, {'up' if self.up else 'down'})"

    def address(self, tls: bool) -> str:
        """Where clients find it, such as ``127.0.0.1:4222``."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.tls_port if tls else self.port}"


def new_nodes(count: int, random: Random) -> list[Node]:
    """So many servers with names of their own."""
    return [Node("N" + "".join(random.choices(_LETTERS, k=55))) for _ in range(count)]


def connect_urls(nodes: Sequence[Node], tls: bool, first: Node) -> list[str]:
    """The servers of a cluster that a client may go to, that which tells it first."""
    there = [node for node in nodes if node.up and not node.leaving]
    return [node.address(tls) for node in sorted(there, key=lambda node: node is not first)]
