"""What a NATS server gets, and what it says, in bytes (docs/protocols/nats.md, 2). No IO."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from conformance.clients.reference.kit import ClientError

CRLF = b"\r\n"
SIZE_DIGITS = 9
LINE_MAX = 64 * 1024  #: bytes without an end of line
SUBJECT_MAX = 1024  #: characters; a server takes no line of more than 4096 bytes


class Message(NamedTuple):
    """A message, and for which subscription; `status` is that of the server, 0 for none."""

    subject: str
    sid: str
    payload: bytes
    reply: str = ""
    status: int = 0


class Line(NamedTuple):
    """Anything else: the verb in capitals, and what follows it."""

    verb: bytes
    rest: bytes = b""


class Parser:
    """Cuts what comes into lines and messages, however it is cut on its way."""

    def __init__(self) -> None:
        self.buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Message | Line]:
        """Take in bytes. Raises `ClientError` (protocol), after what came before."""
        self.buffer += data
        while (found := self.next()) is not None:
            yield found

    def next(self) -> Message | Line | None:
        """The next one, if all of it is there."""
        end = self.buffer.find(CRLF)
        if end < 0:
            if len(self.buffer) > LINE_MAX:
                raise ClientError("protocol", "a line without an end")
            return None
        line = bytes(self.buffer[:end])
        verb, _, rest = line.replace(b"\t", b" ").partition(b" ")
        verb = verb.upper()
        if verb in (b"MSG", b"HMSG"):
            return self.message(rest.split(), end + 2, has_headers=verb == b"HMSG")
        del self.buffer[: end + 2]
        return Line(verb, rest)

    def message(self, words: list[bytes], start: int, *, has_headers: bool) -> Message | None:
        """A message whose line ends at `start`, if all of it is there."""
        sizes = [self.size(word) for word in words[-1 - has_headers :]]
        names = [word.decode(errors="surrogateescape") for word in words[: -1 - has_headers]]
        if len(names) not in (2, 3):
            raise ClientError("protocol", f"a message with {len(words)} words")
        end = start + sizes[-1]
        if len(self.buffer) < end + 2:
            return None
        if self.buffer[end : end + 2] != CRLF or sizes[0] > sizes[-1]:
            raise ClientError("protocol", "a message of another size than it says")
        head = bytes(self.buffer[start : start + sizes[0]]) if has_headers else b""
        payload = bytes(self.buffer[start + len(head) : end])
        del self.buffer[: end + 2]
        return Message(names[0], names[1], payload, "".join(names[2:]), status_of(head))

    def size(self, word: bytes) -> int:
        """How many bytes follow."""
        if not word.isdigit() or len(word) > SIZE_DIGITS:
            raise ClientError("protocol", f"no size of a message: {word[:20]!r}")
        return int(word)


def status_of(headers: bytes) -> int:
    """The status in the first line of headers, such as ``NATS/1.0 503``."""
    words = headers.partition(CRLF)[0].split()
    return int(words[1]) if len(words) > 1 and words[1].isdigit() and len(words[1]) == 3 else 0


def object_of(rest: bytes) -> dict[str, Any]:
    """The JSON of an INFO. Raises `ClientError` (protocol)."""
    try:
        found = json.loads(rest)
    except (ValueError, RecursionError) as error:
        raise ClientError("protocol", f"an INFO that is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ClientError("protocol", "an INFO that is no object")
    return found


def check_subject(subject: str) -> None:
    """Raises `ClientError` (invalid) for what cannot be a subject."""
    if not subject or len(subject) > SUBJECT_MAX or any(letter.isspace() for letter in subject):
        raise ClientError("invalid", f"no subject: {subject[:40]!r}")


def connect(options: Mapping[str, Any]) -> bytes:
    """CONNECT."""
    return b"CONNECT %s\r\n" % json.dumps(options).encode()


def publish(subject: str, payload: bytes, reply: str = "") -> bytes:
    """PUB."""
    words = f"{subject} {reply}" if reply else subject
    return b"PUB %s %d\r\n%s\r\n" % (_bytes(words), len(payload), payload)


def subscribe(subject: str, sid: str, queue: str = "") -> bytes:
    """SUB."""
    return _bytes(" ".join(filter(None, ("SUB", subject, queue, sid)))) + CRLF


def unsubscribe(sid: str, limit: int = 0) -> bytes:
    """UNSUB, at once or after so many messages."""
    return f"UNSUB {sid} {limit}\r\n".encode() if limit else f"UNSUB {sid}\r\n".encode()


def _bytes(words: str) -> bytes:
    return words.encode("utf-8", "surrogateescape")
