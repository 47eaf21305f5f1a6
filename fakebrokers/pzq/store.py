"""Where messages are kept: in memory, or also in an SQLite file (docs/protocols/pzq.md, "Restart").

What a producer has been told is stored survives SIGKILL in the file: a message is committed before it is
acknowledged. It reaches the operating system's file cache, not the disk; so it is with the daemon.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec

from fakebrokers.errors import FakeBrokerError, UsageError
from fakebrokers.pzq.frames import Parts

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[bytes, ...]).decode

_SCHEMA = "create table if not exists message (key blob primary key, place blob not null, body blob not null)"


class StoreError(FakeBrokerError):
    """A message could not be stored; the text is what the producer is told."""


class Message(msgspec.Struct, frozen=True, gc=False):
    """A stored message.

    Attributes:
        key: What consumers know it by.
        place: Its place in the order of delivery; bytes that are compared.
        body: Its parts, at least one.
    """

    key: bytes
    place: bytes
    body: Parts

    @property
    def size(self) -> int:
        """Bytes it takes in the daemon's store: the key, and 8 bytes and the content of each part."""
        return len(self.key) + sum([8 + len(part) for part in self.body])


class Store:
    """Messages by key, in memory."""

    def __init__(self) -> None:
        self._messages: dict[bytes, Message] = {}
        self.size = 0  #: bytes of all messages

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages.values())

    def get(self, key: bytes) -> Message | None:
        """The message of that key, if it is stored."""
        return self._messages.get(key)

    def put(self, message: Message) -> None:
        """Keep a message, in place of another one with its key. `StoreError` if that fails."""
        old = self._messages.get(message.key)
        self._messages[message.key] = message
        self.size += message.size - (old.size if old else 0)

    def remove(self, key: bytes) -> None:
        """Forget a message. `KeyError` if there is none."""
        self.size -= self._messages.pop(key).size

    def clear(self) -> None:
        """Forget all messages."""
        self._messages.clear()
        self.size = 0

    def close(self) -> None:
        """No more calls will come."""


class SqliteStore(Store):
    """Messages in memory and in an SQLite file; each change is a transaction of its own.

    Args:
        path: The file; it is made if it is not there.

    Raises:
        UsageError: The file cannot be opened, or is something else.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        try:
            # autocommit; opened by the user's thread, used by the loop's thread only
            self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._file.execute("pragma journal_mode = wal")
            self._file.execute("pragma synchronous = normal")
            self._file.execute(_SCHEMA)
            rows = self._file.execute("select key, place, body from message order by place").fetchall()
        except sqlite3.Error as error:
            if hasattr(self, "_file"):
                self._file.close()
            raise UsageError(f"database {str(path)!r} cannot be used: {error}") from None
        for key, place, body in rows:
            super().put(Message(key, place, _decode(body)))

    def put(self, message: Message) -> None:
        try:
            self._file.execute(
                "insert or replace into message values (?, ?, ?)",
                (message.key, message.place, _encode(message.body)),
            )
        except sqlite3.Error as error:
            raise StoreError(str(error)) from None
        super().put(message)

    def remove(self, key: bytes) -> None:
        super().remove(key)
        self._file.execute("delete from message where key = ?", (key,))

    def clear(self) -> None:
        super().clear()
        self._file.execute("delete from message")

    def close(self) -> None:
        self._file.close()
