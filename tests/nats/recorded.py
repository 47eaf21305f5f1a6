"""What a real nats-server answered to the golden vectors: ``vectors/nats-server.jsonl``.

    python -m tests.nats.recorded

records it anew, with the nats-server on the PATH. The first line has the server's INFO; each other row is a
connection of its own: what a client said behind that, and what it heard.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from fakebrokers.nats import frames as f
from tests.nats import layouts
from tests.nats.layouts import END
from tests.real_buses import real_bus

FILE = Path(__file__).with_name("vectors") / "nats-server.jsonl"
LARGEST = 10000  #: bytes of what is recorded
PATIENCE_S = 10.0

CONNECT = b'CONNECT {"verbose":false,"headers":true}\r\n'
LOUD = b'CONNECT {"verbose":true,"headers":true}\r\n'
PING, PONG = b"PING\r\n", b"PONG\r\n"


class Recorded(NamedTuple):
    """A connection.

    Attributes:
        said: By the client.
        heard: What came behind INFO.
        ended: Whether the server ended the connection.
    """

    name: str
    said: bytes
    heard: bytes
    ended: bool

    def __str__(self) -> str:
        return self.name


def _subject(frame: f.Pub | f.Hpub) -> bytes:
    return frame.subject.encode(errors="surrogateescape")


def conversations() -> Iterator[tuple[str, bytes]]:
    """What is said, by the name of the vector."""
    for each in layouts.by_the_notes():
        if each.reader == "client" or len(each.wire) > LARGEST:
            continue
        if isinstance(each.frame, f.Pub | f.Hpub):
            yield each.name, CONNECT + b"SUB " + _subject(each.frame) + b" 7\r\n" + each.wire + PING
        elif isinstance(each.frame, f.Connect):
            yield each.name, each.wire + PING
        else:
            yield each.name, LOUD + each.wire + PING
    for limit in layouts.LIMITED:
        if limit.reader == "server" and limit.codec != "waits" and len(limit.wire) <= LARGEST:
            yield limit.name, CONNECT + limit.wire + PING


@cache
def rows() -> tuple[dict[str, str], ...]:
    """The lines of the file."""
    return tuple([json.loads(row) for row in FILE.read_text("utf-8").splitlines()])


def info() -> bytes:
    """The first line of the server."""
    return rows()[0]["info"].encode("latin-1")


def recorded() -> list[Recorded]:
    """All connections."""
    return [
        Recorded(
            row["name"], row["said"].encode("latin-1"), row["heard"].encode("latin-1"), bool(row["ended"])
        )
        for row in rows()[1:]
    ]


def talk(address: tuple[str, int], name: str, said: bytes) -> tuple[bytes, Recorded]:
    """Say it to a server; its INFO, and what it answered."""
    with socket.create_connection(address, PATIENCE_S) as client:
        first, heard, ended = b"", b"", False
        while not first.endswith(END):
            first += client.recv(65536)
        client.sendall(said)
        while not heard.endswith(PONG) and not ended:
            try:
                more = client.recv(65536)
            except ConnectionResetError:
                more = b""
            heard, ended = heard + more, not more
    return first, Recorded(name, said, heard, ended)


def heard() -> Iterator[tuple[bytes, Recorded]]:
    """What the server on this machine says: its INFO, and its answers."""
    with real_bus("nats") as url:
        found = urlsplit(url)
        for name, said in conversations():
            yield talk((str(found.hostname), int(found.port or 0)), name, said)


def record() -> None:
    """Write the file."""
    written: list[dict[str, object]] = []
    for first, each in heard():
        if not written:
            written.append({"server": "nats-server", "info": first.decode("latin-1")})
        texts = {"said": each.said.decode("latin-1"), "heard": each.heard.decode("latin-1")}
        written.append({"name": each.name, **texts, "ended": each.ended})
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text("".join([json.dumps(row) + "\n" for row in written]), "utf-8")


if __name__ == "__main__":
    sys.exit(record())
