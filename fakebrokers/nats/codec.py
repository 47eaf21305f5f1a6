"""NATS on the wire: a line of words, and after PUB, HPUB, MSG and HMSG as many bytes as the line says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from fakebrokers.core.frames import Frame, Malformed, kind_of
from fakebrokers.core.session import Codec
from fakebrokers.errors import WireError
from fakebrokers.journal.secrets import verb_in
from fakebrokers.nats import frames as f

Side = Literal["server", "client"]

#: Bytes of what stands behind the verb and the space after it, the end of the line not counted.
MAX_CONTROL_LINE = 4096
#: Bytes of a payload that the real server takes unless it is configured otherwise.
MAX_PAYLOAD = 1024 * 1024
#: Keys of CONNECT that say who somebody is.
SECRETS = ("user", "pass", "auth_token", "jwt", "nkey", "sig")
#: Digits of a size or a limit; the real server takes no longer ones.
_MAX_DIGITS = 9

#: PING, PONG and +OK end where the line does, whatever else it says; after the others is a space.
_VERB = re.compile(
    rb"PING|PONG|\+OK|(?:CONNECT|(?:UN)?SUB|H?PUB|H?MSG|INFO)(?=[ \t\r]|\Z)|-ERR(?=[ \t]|\Z)", re.IGNORECASE
)
_LONGEST_VERB = 7
_BEGINNING = re.compile(rb"[^ \t]*[ \t]*")
#: Of what follows these nothing is looked at.
_WITHOUT_ARGUMENTS = (b"PING", b"PONG", b"+OK")

_EXCERPT = 256
_CRLF = b"\r\n"


class _Bad(Exception):
    """A line that no frame can be made of. `code` is that of `Malformed`."""

    def __init__(self, problem: str, code: str = "parse") -> None:
        super().__init__(problem)
        self.code = code


class Head(NamedTuple):
    """A line that a payload follows: what makes a frame of it, how many bytes follow, and what it says."""

    make: Callable[[bytes], Frame]
    size: int
    subject: str
    has_headers: bool = False


def _text(word: bytes) -> str:
    return word.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _number(word: bytes) -> int:
    if not word.isdigit() or len(word) > _MAX_DIGITS:
        raise _Bad(f"expected a number of bytes, got {word[:20]!r}")
    return int(word)


class NatsCodec(Codec):
    """One connection's codec.

    Args:
        side: Whose incoming frames are decoded. Both sides encode every frame.
        max_payload: Largest payload in bytes that is accepted; 0 for no limit.
        kinds: What is made of what comes in.

    Attributes:
        begun: The line of a message whose payload has not arrived whole, or does not end as it has to.
    """

    def __init__(
        self, side: Side = "server", max_payload: int = MAX_PAYLOAD, *, kinds: f.Kinds = f.KINDS
    ) -> None:
        self._side: Side = side
        self.max_payload = max_payload
        self.kinds = kinds
        self.begun: Head | None = None
        self._rest = bytearray()
        self._needed = 0  # bytes of the rest before it is worth another look
        self._lost = False
        self._readers = _READERS[side]

    def fresh(self) -> NatsCodec:
        """A codec of the same settings with nothing in its buffer."""
        return type(self)(self._side, self.max_payload, kinds=self.kinds)

    @property
    def partial(self) -> int:
        """Bytes of a frame that has not arrived whole."""
        return len(self._rest)

    def feed(self, unit: bytes) -> Iterator[tuple[Frame, int]]:
        """Frames and their sizes; see `Codec.feed`."""
        if self._lost:
            return
        if self._rest:
            self._rest += unit
            if len(self._rest) < self._needed:
                return
            unit = bytes(self._rest)
            self._rest.clear()
        self.begun = None
        pub, takes_pub, at, end = self.kinds.pub, self._side == "server", 0, len(unit)
        try:
            while at < end:
                stop = unit.find(b"\n", at)
                if stop < 0:
                    self._check_line(unit, at, end)
                    self._keep(unit, at, end - at + 1)
                    return
                words = unit[at:stop].split()
                if (
                    len(words) == 3
                    and unit.startswith(b"PUB ", at)
                    and words[2].isdigit()
                    and len(words[2]) < 7
                    and stop - at < MAX_CONTROL_LINE
                    and takes_pub
                ):
                    # nearly everything that clients say; the long way comes to the same
                    last = stop + 1 + int(words[2])
                    if unit[last : last + 2] == _CRLF and not 0 < self.max_payload < last - stop - 1:
                        size = last + 2 - at
                        at += size
                        yield pub(_text(words[1]), unit[stop + 1 : last]), size
                        continue
                self._check_line(unit, at, stop)
                found, size = self._read_line(words, unit[at:stop]), stop + 1 - at
                if isinstance(found, Head):
                    last = stop + 1 + found.size
                    if unit[last : last + 2] != _CRLF:
                        self.begun = found
                        self._cut_short(unit, at, last)
                        return
                    size += found.size + 2
                    found = found.make(unit[stop + 1 : last])
                at += size
                yield found, size
        except _Bad as bad:
            self._lost = True
            self._rest.clear()
            yield Malformed(_without_secrets(unit[at : at + _EXCERPT]), str(bad), bad.code), end - at

    def _cut_short(self, unit: bytes, at: int, last: int) -> None:
        """The payload that ends at `last` has no end of line after it, or none yet."""
        if unit[last:] not in (b"", b"\r"):
            raise _Bad("expected CR LF after a payload", "unknown")
        self._keep(unit, at, last + 1 - at)  # the byte after it already says whether the end is right

    def _keep(self, unit: bytes, at: int, needed: int) -> None:
        self._rest += unit[at:]
        self._needed = needed

    def _check_line(self, unit: bytes, at: int, stop: int) -> None:
        """Raise `_Bad` for a line, or the beginning of one, that no command begins with or that is too long.

        The real server looks at one byte after another, so it does not wait for the end of a line.
        """
        head = unit[at : min(stop, at + _LONGEST_VERB)].upper()
        if _VERB.match(unit, at, stop) is None and not any(verb.startswith(head) for verb in self._readers):
            raise _Bad(f"expected one of {_verbs(self._readers)}; got {verb_in(unit[at:stop])}", "unknown")
        if stop - at > MAX_CONTROL_LINE and not head.startswith(_WITHOUT_ARGUMENTS):
            self._check_size(unit, at, stop)

    def _check_size(self, unit: bytes, at: int, stop: int) -> None:
        """Raise `_Bad` for a line with too much behind its verb."""
        begin = _BEGINNING.match(unit, at, stop)
        size = stop - (begin.end() if begin else at) - unit.endswith(b"\r", at, stop)
        if size > MAX_CONTROL_LINE:
            raise _Bad(f"expected at most {MAX_CONTROL_LINE} bytes after the verb", "control-line")

    def _read_line(self, words: list[bytes], line: bytes) -> Frame | Head:
        verb = _VERB.match(line)
        reader = self._readers.get(verb[0].upper()) if verb is not None else None
        if reader is None:
            raise _Bad(f"expected one of {_verbs(self._readers)}; got {verb_in(line)}", "unknown")
        found = reader(words, line, self.kinds)
        if type(found) is Head and 0 < self.max_payload < found.size:
            raise _Bad(f"expected a payload of at most {self.max_payload} bytes, got {found.size}", "payload")
        return found

    def encode(self, frame: Frame) -> bytes:
        """The bytes of one frame, as it is.

        Raises:
            WireError: This is no frame of NATS.
        """
        writer = _WRITERS.get(type(frame)) or _WRITERS.get(type(frame).__base__)  # type: ignore[arg-type]
        return self.encode_other(frame) if writer is None else writer(frame)

    def encode_other(self, frame: Frame) -> bytes:
        """The bytes of what is no frame of NATS."""
        if isinstance(frame, Malformed):
            return frame.data
        raise WireError("a frame of NATS", kind_of(frame))

    def mend(self, unit: bytes) -> bytes:
        """The bytes of a message with the size in its line made right."""
        line, mark, rest = unit.partition(_CRLF)
        words = line.split(b" ")
        if not mark or words[0] not in (b"MSG", b"PUB"):
            return unit
        size = len(rest) - 2 if rest.endswith(_CRLF) else len(rest)
        return b" ".join([*words[:-1], b"%d" % size]) + _CRLF + rest


# reading

Reader = Callable[[list[bytes], bytes, f.Kinds], Frame | Head]


def _arguments(words: list[bytes], least: int, most: int) -> list[bytes]:
    """The words after the verb. None at all is another error than a wrong number, as on the real server."""
    if len(words) == 1:
        raise _Bad(f"expected arguments after {words[0]!r}", "unknown")
    if not least <= len(words) - 1 <= most:
        raise _Bad(f"expected {least} to {most} words after {words[0]!r}, got {len(words) - 1}")
    return words[1:]


def _read_object(words: list[bytes], line: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(line.strip()[len(words[0]) :])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _Bad(f"expected a JSON object after {words[0]!r}: {error}") from None
    if not isinstance(found, dict):
        raise _Bad(f"expected a JSON object after {words[0]!r}, got {found!r:.40}")
    return found


def _read_connect(words: list[bytes], line: bytes, kinds: f.Kinds) -> Frame:
    found = _read_object(words, line)
    secrets = {name: found.pop(name) for name in SECRETS if name in found}
    return f.Connect(found, secrets)


def _read_info(words: list[bytes], line: bytes, kinds: f.Kinds) -> Frame:
    return kinds.info(_read_object(words, line))


def _read_pub(words: list[bytes], line: bytes, kinds: f.Kinds) -> Head:
    if len(words) == 3:
        subject, size = _text(words[1]), _number(words[2])
        return Head(lambda payload: kinds.pub(subject, payload), size, subject)
    name, reply, count = _arguments(words, 3, 3) if len(words) == 4 else _arguments(words, 2, 3)
    subject, answer = _text(name), _text(reply)
    return Head(lambda payload: kinds.pub(subject, payload, answer), _number(count), subject)


def _read_hpub(words: list[bytes], line: bytes, kinds: f.Kinds) -> Head:
    name, *reply, head, total = _arguments(words, 3, 4)
    subject, answer = _text(name), _text(reply[0]) if reply else ""
    size, whole = _sizes(head, total)
    return Head(lambda data: kinds.hpub(subject, data[:size], data[size:], answer), whole, subject, True)


def _sizes(head: bytes, total: bytes) -> tuple[int, int]:
    size, whole = _number(head), _number(total)
    if size > whole:
        raise _Bad(f"expected headers of at most {whole} bytes, got {size}")
    return size, whole


def _read_msg(words: list[bytes], line: bytes, kinds: f.Kinds) -> Head:
    name, key, *reply, count = _arguments(words, 3, 4)
    subject, sid, answer = _text(name), _text(key), _text(reply[0]) if reply else ""
    return Head(lambda payload: kinds.msg(subject, sid, payload, answer), _number(count), subject)


def _read_hmsg(words: list[bytes], line: bytes, kinds: f.Kinds) -> Head:
    name, key, *reply, head, total = _arguments(words, 4, 5)
    subject, sid, answer = _text(name), _text(key), _text(reply[0]) if reply else ""
    size, whole = _sizes(head, total)
    return Head(lambda data: kinds.hmsg(subject, sid, data[:size], data[size:], answer), whole, subject, True)


def _read_sub(words: list[bytes], line: bytes, kinds: f.Kinds) -> Frame:
    subject, *queue, sid = map(_text, _arguments(words, 2, 3))
    return f.Sub(subject, sid, queue[0] if queue else "")


def _read_unsub(words: list[bytes], line: bytes, kinds: f.Kinds) -> Frame:
    sid, *limit = _arguments(words, 1, 2)
    if not limit:
        return f.Unsub(_text(sid))
    digits = limit[0].isdigit() and len(limit[0]) <= _MAX_DIGITS
    return f.Unsub(_text(sid), int(limit[0]) if digits else -1)  # what is no number ends it at once


def _read_err(words: list[bytes], line: bytes, kinds: f.Kinds) -> Frame:
    text = line.strip()[len(words[0]) :].strip()
    return f.Err(_text(text.removeprefix(b"'").removesuffix(b"'")))  # it may have more of them


def _client_error(words: list[bytes], line: bytes, kinds: f.Kinds) -> Frame:
    raise _Bad("a client says -ERR", "parse")


_SHARED: Mapping[bytes, Reader] = {
    b"PING": lambda words, line, kinds: kinds.ping(),
    b"PONG": lambda words, line, kinds: kinds.pong(),
    b"+OK": lambda words, line, kinds: kinds.ok(),
    b"INFO": _read_info,
}
_READERS: Mapping[Side, Mapping[bytes, Reader]] = {
    "server": {
        **_SHARED,
        b"CONNECT": _read_connect,
        b"SUB": _read_sub,
        b"UNSUB": _read_unsub,
        b"PUB": _read_pub,
        b"HPUB": _read_hpub,
        b"-ERR": _client_error,
    },
    "client": {**_SHARED, b"MSG": _read_msg, b"HMSG": _read_hmsg, b"-ERR": _read_err},
}


def _verbs(readers: Mapping[bytes, Reader]) -> str:
    return ", ".join(verb.decode() for verb in readers)


def _without_secrets(data: bytes) -> bytes:
    return data[:8] if data[:8].upper().startswith(b"CONNECT") else data


# writing


def _write_msg(frame: Any) -> bytes:
    payload = frame.payload
    words = f"{frame.subject} {frame.sid} {frame.reply} " if frame.reply else f"{frame.subject} {frame.sid} "
    return b"MSG %b%d\r\n%b\r\n" % (_bytes(words), len(payload), payload)


def _write_hmsg(frame: Any) -> bytes:
    words = [frame.subject, frame.sid, *([frame.reply] if frame.reply else [])]
    head, body = frame.headers, frame.payload
    sizes = (len(head), len(head) + len(body))
    return b"HMSG %b %d %d\r\n%b%b\r\n" % (_bytes(" ".join(words)), *sizes, head, body)


def _write_pub(frame: Any) -> bytes:
    payload = frame.payload
    words = f"{frame.subject} {frame.reply}" if frame.reply else frame.subject
    return b"PUB %b %d\r\n%b\r\n" % (_bytes(words), len(payload), payload)


def _write_hpub(frame: Any) -> bytes:
    words = f"{frame.subject} {frame.reply}" if frame.reply else frame.subject
    head, body = frame.headers, frame.payload
    sizes = (len(head), len(head) + len(body))
    return b"HPUB %b %d %d\r\n%b%b\r\n" % (_bytes(words), *sizes, head, body)


def _write_sub(frame: Any) -> bytes:
    words = ["SUB", frame.subject, *([frame.queue] if frame.queue else []), frame.sid]
    return _bytes(" ".join(words)) + _CRLF


def _write_unsub(frame: Any) -> bytes:
    limit = "" if frame.limit is None else f" {frame.limit}"
    return _bytes(f"UNSUB {frame.sid}{limit}") + _CRLF


_WRITERS: dict[type[Frame], Callable[[Any], bytes]] = {
    f.Msg: _write_msg,
    f.Hmsg: _write_hmsg,
    f.Pub: _write_pub,
    f.Hpub: _write_hpub,
    f.Sub: _write_sub,
    f.Unsub: _write_unsub,
    f.Info: lambda frame: b"INFO %b \r\n" % msgspec.json.encode(frame.options),
    f.Connect: lambda frame: b"CONNECT %b\r\n" % msgspec.json.encode({**frame.options, **frame.credentials}),
    f.Ping: lambda frame: b"PING\r\n",
    f.Pong: lambda frame: b"PONG\r\n",
    f.Ok: lambda frame: b"+OK\r\n",
    f.Err: lambda frame: b"-ERR '%b'\r\n" % _bytes(frame.text),
}
