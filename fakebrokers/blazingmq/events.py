"""The bodies of events that carry messages (docs/protocols/blazingmq.md, 1.1 to 4)."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import TypeVar

from fakebrokers.blazingmq.codes import PushFlag
from fakebrokers.blazingmq.frames_events import (
    Ack,
    AckMessage,
    Confirm,
    ConfirmMessage,
    Push,
    PushMessage,
    Put,
    PutMessage,
    Reject,
)
from fakebrokers.errors import WireError

M = TypeVar("M")

_WORD = 4
_PADS = (b"", b"\1", b"\2\2", b"\3\3\3", b"\4\4\4\4")
#: flags and message words; options words, compression and header words; queue; GUID; CRC; schema id
_PUT = Struct(">IIi16sIHxx")
_WORDS = Struct(">II")
#: the same without CRC
_PUSH = Struct(">IIi16sHxx")
#: status and correlation id; GUID; queue
_ACK = Struct(">I16si")
_ACK_WORDS = _ACK.size // _WORD
#: queue; GUID; sub-queue
_CONFIRM = Struct(">i16si")
#: header words and words per message, four bits each; flags and reserved
_ITEMS_HEADER = Struct(">BB2x")
_IMPLICIT_PAYLOAD = int(PushFlag.IMPLICIT_PAYLOAD)


def padded(data: bytes) -> bytes:
    """The data with 1 to 4 bytes after them, each of which says how many there are."""
    return data + _PADS[_WORD - len(data) % _WORD]


def unpadded(data: bytes, at: int = 0) -> bytes:
    """The data without padding.

    Raises:
        WireError: The last byte is no number of pad bytes.
    """
    size = data[-1] if data else 0
    if not 1 <= size <= _WORD or size > len(data):
        raise WireError("a last byte of 1 to 4", str(size) if data else "nothing", at + len(data) - 1)
    return data[:-size]


def read_put(body: bytes) -> Put:
    """The messages of a PUT event.

    Raises:
        WireError: Not even the first can be read.
    """
    messages, rest = _read_messages(body, _read_put_message)
    return Put(messages, rest)


def read_push(body: bytes) -> Push:
    """The messages of a PUSH event; raises as `read_put`."""
    messages, rest = _read_messages(body, _read_push_message)
    return Push(messages, rest)


def _read_messages(body: bytes, read: Callable[[bytes, int], tuple[M, int]]) -> tuple[tuple[M, ...], bytes]:
    messages: list[M] = []
    at = 0
    while at < len(body) or not messages:
        try:
            message, at = read(body, at)
        except WireError:
            if not messages:
                raise
            return tuple(messages), body[at:]
        messages.append(message)
    return tuple(messages), b""


def _sizes(body: bytes, at: int, least: int, empty_flag: int = 0) -> tuple[int, int, int, int]:
    """Header words, and where options, data and the next message begin.

    Args:
        least: Fewest words of a header.
        empty_flag: The flag with which a message needs no data, not even padding.
    """
    if len(body) - at < 2 * _WORD:
        raise WireError("a message header", f"{len(body) - at} bytes", at)
    first, second = _WORDS.unpack_from(body, at)
    words = first & 0x0FFFFFFF
    header_words = second & 0x1F
    if header_words < least:
        raise WireError(f"a header of at least {least} words", f"{header_words}", at + 7)
    options = at + header_words * _WORD
    data = options + (second >> 8) * _WORD
    end = at + words * _WORD
    least_bytes = 0 if first >> 28 & empty_flag else 1
    if not data + least_bytes <= end <= len(body):
        raise WireError(
            f"a message of more than {data - at} and at most {len(body) - at} bytes", f"{words * _WORD}", at
        )
    return header_words, options, data, end


def _filled(header: bytes, whole: Struct) -> bytes:
    """An older header: the fields that it lacks are zero."""
    return header.ljust(whole.size, b"\0")


def _read_put_message(body: bytes, at: int) -> tuple[PutMessage, int]:
    header_words, options, data, end = _sizes(body, at, 8)
    whole = options - at >= _PUT.size
    first, second, queue_id, guid, crc, schema_id = (
        _PUT.unpack_from(body, at) if whole else _PUT.unpack(_filled(body[at:options], _PUT))
    )
    message = PutMessage(
        queue_id,
        guid,
        unpadded(body[data:end], data),
        first >> 28,
        crc,
        schema_id,
        second >> 5 & 7,
        body[options:data],
        header_words,
    )
    return message, end


def _read_push_message(body: bytes, at: int) -> tuple[PushMessage, int]:
    header_words, options, data, end = _sizes(body, at, 7, _IMPLICIT_PAYLOAD)
    whole = options - at >= _PUSH.size
    first, second, queue_id, guid, schema_id = (
        _PUSH.unpack_from(body, at) if whole else _PUSH.unpack(_filled(body[at:options], _PUSH))
    )
    message = PushMessage(
        queue_id,
        guid,
        unpadded(body[data:end], data) if data < end else b"",
        first >> 28,
        schema_id,
        second >> 5 & 7,
        body[options:data],
        header_words,
    )
    return message, end


def write_put(event: Put) -> list[bytes]:
    """The parts of a PUT event's body."""
    parts: list[bytes] = []
    for message in event.messages:
        data = padded(message.data)
        first, second = _words(message, data)
        header = _PUT.pack(first, second, message.queue_id, message.guid, message.crc, message.schema_id)
        parts += (_sized(header, message.header_words), message.options, data)
    parts.append(event.rest)
    return parts


def write_push(event: Push) -> list[bytes]:
    """The parts of a PUSH event's body."""
    parts: list[bytes] = []
    for message in event.messages:
        data = padded(message.data)
        first, second = _words(message, data)
        header = _PUSH.pack(first, second, message.queue_id, message.guid, message.schema_id)
        parts += (_sized(header, message.header_words), message.options, data)
    parts.append(event.rest)
    return parts


def _words(message: PutMessage | PushMessage, data: bytes) -> tuple[int, int]:
    """The first two words of a message header."""
    options_words = len(message.options) // _WORD
    words = message.header_words + options_words + len(data) // _WORD
    first = message.flags << 28 | words
    return first, options_words << 8 | message.compression << 5 | message.header_words


def _sized(header: bytes, words: int) -> bytes:
    """The header, cut or filled with zeros where a peer knows fewer fields, or more."""
    size = words * _WORD
    return header if len(header) == size else header[:size].ljust(size, b"\0")


def read_acks(body: bytes) -> Ack:
    """The answers of an ACK event.

    Raises:
        WireError: The header says nothing that could be.
    """
    messages = []
    at, words, end = _items(body, _ACK.size)
    for start in range(at, end, words * _WORD):
        first, guid, queue_id = _ACK.unpack_from(body, start)
        messages.append(AckMessage(queue_id, guid, first >> 24 & 0xF, first & 0xFFFFFF))
    return Ack(tuple(messages), body[end:], words)


def read_confirms(kind: type[Confirm] | type[Reject], body: bytes) -> Confirm | Reject:
    """The messages of a CONFIRM or REJECT event; raises as `read_acks`."""
    messages = []
    at, words, end = _items(body, _CONFIRM.size)
    for start in range(at, end, words * _WORD):
        messages.append(ConfirmMessage(*_CONFIRM.unpack_from(body, start)))
    return kind(tuple(messages), body[end:], words)


def _items(body: bytes, size: int) -> tuple[int, int, int]:
    """Where the first item begins, words per item, and where the last whole one ends."""
    if len(body) < _ITEMS_HEADER.size:
        raise WireError(f"a header of {_ITEMS_HEADER.size} bytes", f"{len(body)} bytes", 0)
    header_words, words = body[0] >> 4, body[0] & 0xF
    if not 1 <= header_words <= len(body) // _WORD or words * _WORD < size:
        raise WireError(f"a header of 1 word and items of {size // _WORD}", f"0x{body[0]:02x}", 0)
    at = header_words * _WORD
    count = (len(body) - at) // (words * _WORD)
    return at, words, at + count * words * _WORD


def write_acks(event: Ack) -> list[bytes]:
    """The parts of an ACK event's body."""
    words = event.item_words
    parts = [_items_header(words)]
    for message in event.messages:
        first = (message.status & 0xF) << 24 | message.correlation_id & 0xFFFFFF
        item = _ACK.pack(first, message.guid, message.queue_id)
        parts.append(item if words == _ACK_WORDS else _sized(item, words))
    parts.append(event.rest)
    return parts


def write_confirms(event: Confirm | Reject) -> list[bytes]:
    """The parts of the body of a CONFIRM or REJECT event."""
    parts = [_items_header(event.item_words)]
    for message in event.messages:
        item = _CONFIRM.pack(message.queue_id, message.guid, message.sub_id)
        parts.append(_sized(item, event.item_words))
    parts.append(event.rest)
    return parts


def _items_header(words: int) -> bytes:
    return _ITEMS_HEADER.pack(1 << 4 | words, 0)
