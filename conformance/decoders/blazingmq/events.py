"""Events that carry messages (docs/protocols/blazingmq.md, 2 to 4)."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import TypeVar

from conformance.decoders import Unreadable
from conformance.decoders.blazingmq.padding import unpadded
from fakebrokers.blazingmq import frames as f

M = TypeVar("M")

WORD = 4
PUT_WORDS, PUSH_WORDS = 9, 8  #: of a whole header; older ones end before the schema id, one word earlier
ITEM_WORDS = 6  #: of an answer or a confirm
IMPLICIT_PAYLOAD = 1  #: flag of a PUSH: no data follows

_HEAD = Struct(">IIi16s")  #: flags and words; words, compression and header words; queue; GUID
_CRC_SCHEMA = Struct(">IH")
_SCHEMA = Struct(">H")
_ACK = Struct(">I16si")
_CONFIRM = Struct(">i16si")


def _message(body: bytes, at: int, words: int) -> tuple[dict[str, object], bytes, int]:
    """What PUT and PUSH have in common, the header without missing fields, and where the next one begins.

    Args:
        words: Of a whole header.
    """
    if len(body) - at < _HEAD.size:
        raise Unreadable(f"expected the header of a message at byte {at}, {len(body) - at} bytes are left")
    first, second, queue_id, guid = _HEAD.unpack_from(body, at)
    flags, size = first >> 28, WORD * (first & 0x0FFFFFFF)
    options_size, header_words = WORD * (second >> 8), second & 0x1F
    header_size = WORD * header_words
    data_at = header_size + options_size
    if header_words < words - 1 or not data_at <= size <= len(body) - at:
        raise Unreadable(
            f"expected a message of {data_at} to {len(body) - at} bytes at byte {at}, came {size} bytes,"
            f" {header_words} words of them in the header"
        )
    area = body[at + data_at : at + size]
    is_without = words == PUSH_WORDS and flags & IMPLICIT_PAYLOAD and not area
    fields: dict[str, object] = {
        "queue_id": queue_id,
        "guid": guid,
        "data": b"" if is_without else unpadded(area),
        "flags": flags,
        "compression": second >> 5 & 7,
        "options": body[at + header_size : at + data_at],
        "header_words": header_words,
    }
    header = body[at : at + header_size].ljust(WORD * words, b"\0")
    return fields, header, at + size


def _put_message(body: bytes, at: int) -> tuple[f.PutMessage, int]:
    fields, header, end = _message(body, at, PUT_WORDS)
    crc, schema_id = _CRC_SCHEMA.unpack_from(header, _HEAD.size)
    return f.PutMessage(**fields, crc=crc, schema_id=schema_id), end  # type: ignore[arg-type]


def _push_message(body: bytes, at: int) -> tuple[f.PushMessage, int]:
    fields, header, end = _message(body, at, PUSH_WORDS)
    (schema_id,) = _SCHEMA.unpack_from(header, _HEAD.size)
    return f.PushMessage(**fields, schema_id=schema_id), end  # type: ignore[arg-type]


def _messages(body: bytes, read: Callable[[bytes, int], tuple[M, int]]) -> tuple[tuple[M, ...], bytes]:
    """The messages that can be read, and what comes after them. Raises if the first one cannot."""
    found: list[M] = []
    at = 0
    while at < len(body) or not found:
        try:
            message, at = read(body, at)
        except Unreadable:
            if not found:
                raise
            break
        found.append(message)
    return tuple(found), body[at:]


def read_put(body: bytes) -> f.Put:
    """The messages of a PUT."""
    messages, rest = _messages(body, _put_message)
    return f.Put(messages=messages, rest=rest)


def read_push(body: bytes) -> f.Push:
    """The messages of a PUSH."""
    messages, rest = _messages(body, _push_message)
    return f.Push(messages=messages, rest=rest)


def _items(body: bytes) -> tuple[list[bytes], int, bytes]:
    """The items of an event of such, each without what a newer peer adds; words per item; what is left."""
    header_size, words = (WORD * (body[0] >> 4), body[0] & 15) if body else (0, 0)
    if not WORD <= header_size <= len(body) or words < ITEM_WORDS:
        raise Unreadable(f"expected a header with {ITEM_WORDS} words per item, came {body[:WORD].hex()}")
    step = WORD * words
    count = (len(body) - header_size) // step
    starts = range(header_size, header_size + count * step, step)
    return [body[at : at + WORD * ITEM_WORDS] for at in starts], words, body[header_size + count * step :]


def read_ack(body: bytes) -> f.Ack:
    """What became of messages."""
    items, words, rest = _items(body)
    messages = []
    for item in items:
        first, guid, queue_id = _ACK.unpack(item)
        status, correlation_id = first >> 24 & 15, first & 0xFFFFFF
        messages.append(
            f.AckMessage(queue_id=queue_id, guid=guid, status=status, correlation_id=correlation_id)
        )
    return f.Ack(messages=tuple(messages), rest=rest, item_words=words)


def _confirms(items: list[bytes]) -> tuple[f.ConfirmMessage, ...]:
    read = (_CONFIRM.unpack(item) for item in items)
    return tuple(f.ConfirmMessage(queue_id=queue, guid=guid, sub_id=sub_id) for queue, guid, sub_id in read)


def read_confirm(body: bytes) -> f.Confirm:
    """Messages that consumers are done with."""
    items, words, rest = _items(body)
    return f.Confirm(messages=_confirms(items), rest=rest, item_words=words)


def read_reject(body: bytes) -> f.Reject:
    """Messages that consumers could not deal with."""
    items, words, rest = _items(body)
    return f.Reject(messages=_confirms(items), rest=rest, item_words=words)
