"""NATS, read line by line by the letter of docs/protocols/nats.md, 2, and docs/protocols/moleculer.md, 6.1.

A line ends with CR LF, and its words lie between spaces or tabs; PUB, HPUB, MSG and HMSG say in the last word
how many bytes follow, and CR LF after them. A line that says nothing known is skipped. A message whose size
is wrong is the end: it is not known where the next line begins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from conformance.decoders import SHOWN, Unreadable, json_value
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.nats import frames as nats

CRLF = b"\r\n"
ARGUMENTS_MAX = 4096  #: bytes after the verb and the space after it that anybody has to read
ENDLESS = 64 * 1024  #: bytes without an end of line
PAYLOAD_MAX = 64 << 20  #: bytes of a payload
DIGITS_MAX = 9
GARBAGE = "garbage"  #: `Malformed.code` of what cannot be read over
CONTROL = re.compile(rb"[\r\n\v\f]")
WITH_PAYLOAD = (b"PUB", b"HPUB", b"MSG", b"HMSG")
ALONE = (b"PING", b"PONG")
WITHOUT_ARGUMENTS = (*ALONE, b"+OK")

#: What of a CONNECT lets somebody in, and is in `Connect.credentials`, not in its options (section 4).
CREDENTIALS = ("user", "pass", "auth_token", "jwt", "nkey", "sig")


class NatsLine(NamedTuple):
    """A line.

    Attributes:
        words: What follows the verb.
        rest: The same as it came, with the space around it.
        payload: What follows the line; of a verb with a payload.
    """

    words: list[bytes]
    rest: bytes
    payload: bytes = b""


_Reader = Callable[[NatsLine, nats.Kinds], Frame]


class NatsDecoder:
    """Reads what one side of a connection is handed.

    Args:
        reader: Who is handed the bytes.
        kinds: The classes of the frames.
    """

    def __init__(self, reader: Literal["client", "server"], kinds: nats.Kinds = nats.KINDS) -> None:
        self._reader = reader
        self._verbs = FROM_SERVER if reader == "client" else FROM_CLIENT
        self._kinds = kinds
        self._buffer = bytearray()
        self._is_lost = False

    @property
    def partial(self) -> int:
        """Bytes of a frame that has not arrived whole."""
        return 0 if self._is_lost else len(self._buffer)

    def feed(self, unit: bytes) -> list[tuple[Frame, int]]:
        """Take in bytes; each frame that is whole now, with its size in bytes."""
        self._buffer += unit
        found = []
        while not self._is_lost and (one := self._next()) is not None:
            found.append(one)
        return found

    def _next(self) -> tuple[Frame, int] | None:
        end = self._buffer.find(CRLF)
        if end < 0:
            return self._lost("a line without an end") if len(self._buffer) > ENDLESS else None
        line = bytes(self._buffer[:end])
        size = end + len(CRLF)
        payload = b""
        words = line.split()
        verb = words[0].upper() if words else b""
        if CONTROL.search(line) is None and verb in WITH_PAYLOAD:
            number = words[-1]
            if not number.isdigit() or len(number) > DIGITS_MAX:
                wrong, whole = (text.decode(errors="replace")[:60] for text in (number, line))
                return self._lost(f'a size that is no number, "{wrong}", in the line "{whole}"')
            if int(number) > PAYLOAD_MAX:
                return self._lost("a size that no message has")
            start, size = size, size + int(number) + len(CRLF)
            if len(self._buffer) < size:
                return None
            if self._buffer[size - len(CRLF) : size] != CRLF:
                return self._lost("a payload of another size")
            payload = bytes(self._buffer[start : size - len(CRLF)])
        try:
            frame = self._read(verb, line, words, payload)
        except Unreadable as problem:
            frame = Malformed(_shown(verb, self._buffer[:size]), str(problem))
        del self._buffer[:size]
        return frame, size

    def _read(self, verb: bytes, line: bytes, words: list[bytes], payload: bytes) -> Frame:
        if CONTROL.search(line) is not None:
            raise Unreadable("a control character in a line")  # the end of a line is two bytes
        if verb not in WITHOUT_ARGUMENTS and len(line[len(verb) :].lstrip()) > ARGUMENTS_MAX:
            raise Unreadable(f"more than {ARGUMENTS_MAX} bytes after the verb")
        if line[:4].upper() in ALONE and verb not in ALONE:
            raise Unreadable("a word that goes on")
        read = self._verbs.get(verb)
        if read is None or not line.startswith(words[0]):
            raise Unreadable(f"expected a verb for the {self._reader}, came {_text(line[:20])!r}")
        return read(NatsLine(words[1:], line[len(verb) :], payload), self._kinds)

    def _lost(self, problem: str) -> tuple[Frame, int]:
        self._is_lost = True
        return Malformed(bytes(self._buffer[:SHOWN]), problem, GARBAGE), len(self._buffer)


def _shown(verb: bytes, data: bytearray) -> bytes:
    """The first bytes of what cannot be read; nothing of a login."""
    return bytes(data[: len(verb)] if verb == b"CONNECT" else data[:SHOWN])


def _text(word: bytes) -> str:
    return word.decode("utf-8", "surrogateescape")


def _words(line: NatsLine, least: int, most: int) -> list[str]:
    if not least <= len(line.words) <= most:
        raise Unreadable(f"expected {least} to {most} words after the verb, came {len(line.words)}")
    return [_text(word) for word in line.words]


def _object(line: NatsLine) -> dict[str, Any]:
    """The rest of a line, a JSON object."""
    value = json_value(line.rest)
    if not isinstance(value, dict):
        raise Unreadable(f"expected a JSON object, came {value!r:.40}")
    return value


def _connect(line: NatsLine, kinds: nats.Kinds) -> Frame:
    options = _object(line)
    return nats.Connect(
        options={name: value for name, value in options.items() if name not in CREDENTIALS},
        credentials={name: options[name] for name in CREDENTIALS if name in options},
    )


def _info(line: NatsLine, kinds: nats.Kinds) -> Frame:
    return kinds.info(options=_object(line))


def _sub(line: NatsLine, kinds: nats.Kinds) -> Frame:
    subject, *queue, sid = _words(line, 2, 3)
    return nats.Sub(subject=subject, sid=sid, queue="".join(queue))


def _unsub(line: NatsLine, kinds: nats.Kinds) -> Frame:
    """A limit that is no number is one below 0, as the server has it."""
    sid, *limit = _words(line, 1, 2)
    if not limit:
        return nats.Unsub(sid=sid)
    return nats.Unsub(sid=sid, limit=_limit(limit[0]))


def _limit(word: str) -> int:
    is_number = word.isascii() and word.isdigit() and len(word) <= DIGITS_MAX
    return int(word) if is_number else -1


def _pub(line: NatsLine, kinds: nats.Kinds) -> Frame:
    subject, *reply, _ = _words(line, 2, 3)
    return kinds.pub(subject=subject, payload=line.payload, reply="".join(reply))


def _hpub(line: NatsLine, kinds: nats.Kinds) -> Frame:
    subject, *reply, _, _ = _words(line, 3, 4)
    headers, payload = _headers(line)
    return kinds.hpub(subject=subject, headers=headers, payload=payload, reply="".join(reply))


def _msg(line: NatsLine, kinds: nats.Kinds) -> Frame:
    subject, sid, *reply, _ = _words(line, 3, 4)
    return kinds.msg(subject=subject, sid=sid, payload=line.payload, reply="".join(reply))


def _hmsg(line: NatsLine, kinds: nats.Kinds) -> Frame:
    subject, sid, *reply, _, _ = _words(line, 4, 5)
    headers, payload = _headers(line)
    return kinds.hmsg(subject=subject, sid=sid, headers=headers, payload=payload, reply="".join(reply))


def _headers(line: NatsLine) -> tuple[bytes, bytes]:
    """Headers and payload: the last word but one says how many of the bytes are headers."""
    size = line.words[-2]
    if not size.isdigit() or len(size) > DIGITS_MAX or int(size) > len(line.payload):
        raise Unreadable(f"expected headers of at most {len(line.payload)} bytes, came {_text(size)!r:.20}")
    return line.payload[: int(size)], line.payload[int(size) :]


def _err(line: NatsLine, kinds: nats.Kinds) -> Frame:
    if not line.rest:
        raise Unreadable("expected a text after -ERR")
    return nats.Err(text=_text(line.rest.strip().removeprefix(b"'").removesuffix(b"'")))


BOTH: Mapping[bytes, _Reader] = {
    b"PING": lambda line, kinds: kinds.ping(),
    b"PONG": lambda line, kinds: kinds.pong(),
    b"+OK": lambda line, kinds: kinds.ok(),
    b"INFO": _info,
}
#: What is for a client, and what for a server: that one takes an INFO and a +OK too, and does nothing then.
FROM_SERVER: Mapping[bytes, _Reader] = {**BOTH, b"MSG": _msg, b"HMSG": _hmsg, b"-ERR": _err}
FROM_CLIENT: Mapping[bytes, _Reader] = {
    **BOTH,
    b"CONNECT": _connect,
    b"SUB": _sub,
    b"UNSUB": _unsub,
    b"PUB": _pub,
    b"HPUB": _hpub,
}
