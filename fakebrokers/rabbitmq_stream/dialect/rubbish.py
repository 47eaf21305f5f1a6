"""Frames that no well-made client sends."""

from __future__ import annotations

from random import Random
from struct import pack

from fakebrokers.core.dialect import MARK
from fakebrokers.rabbitmq_stream.frames import Publish

#: Bytes that are no frame, or the beginning of a very long one.
_NO_FRAMES = (
    bytes(4),
    b"\0\0\0\1\0",
    b"\0\0\0\2\0\1",
    b"\0\0\0\3\0\1\0",
    b"\0\0\0\4\0\1\0\1",
    b"\0\0\0\6\0\x17\0\1\xab\xcd",
    b"\x7f\xff\xff\xff\0\1\0\1",
    b"GET / HTTP/1.1\r\n\r\n",
)
#: Of requests that only later versions know, of frames that only servers send, of none.
_KEYS = (0, 3, 4, 8, 16, 26, 27, 28, 29, 30, 31, 32, 33, 100, 0x7FFF)
_BODIES = (b"", b"\0", b"\0\3abc", bytes(8))
_ANSWERS = (1, 7, 9, 13, 15, 19, 20, 22, 26, 27, 31)
_ANSWER_BODIES = (b"\0\1", b"\0\1\0\0", b"\0\1\0\1\0")

_BATCH = b"\0\0\0\3b00\0\0\0\3b01"
#: Sub-entry batches: compression, records, uncompressed size, data. Only the first two keep the rules. None
#: is of no records: a real writer never gets done with it, so nobody could use the stream any more.
_BATCHES = (
    (0, 2, len(_BATCH), _BATCH),
    (0, 3, 21, _BATCH + _BATCH[:7]),
    (1, 2, len(_BATCH), b"\x1f\x8b\x08\0\xaa\xbb"),
    (7, 2, len(_BATCH), _BATCH),
    (0, 2, 1, _BATCH),
    (1, 2, len(_BATCH), b""),
    (0, 2, 100 << 20, _BATCH),
)


def rubbish(random: Random, correlation_id: int) -> tuple[bytes, str]:
    """Bytes, and a text for tables."""
    kind = random.randrange(4)
    if kind == 0:
        data = random.choice(_NO_FRAMES)
        return data, f"bytes {data!r}"
    if kind == 1:
        key, body = random.choice(_KEYS), random.choice(_BODIES)
        return framed(pack(">HHI", key, 1, correlation_id) + body), f"key {key} {body!r}"
    if kind == 2:
        key, body = 0x8000 | random.choice(_ANSWERS), random.choice(_ANSWER_BODIES)
        return framed(pack(">HHI", key, 1, correlation_id) + body), f"answer {key & 0x7FFF} {body!r}"
    key, version = random.randrange(1, 26), random.choice([0, 1, 2, 3])
    body = bytes(random.choice([0, 0, random.randrange(256)]) for _ in range(random.choice([0, 1, 2, 4, 8])))
    return framed(pack(">HH", key, version) + body), f"key {key} version {version} {body!r}"


def framed(body: bytes) -> bytes:
    """The size in front."""
    return len(body).to_bytes(4, "big") + body


def mutated(random: Random, data: bytes) -> tuple[bytes, str]:
    """A frame with one thing wrong, and what."""
    body = bytearray(data[4:])
    kind = random.randrange(5)
    if kind == 0:
        size = random.choice([1, 2, 3, 4, 8])
        return framed(bytes(body[: max(4, len(body) - size)])), f"{size} bytes cut off"
    if kind == 1:
        extra = random.choice([b"\0", b"\0\0", bytes(4), b"\xff"])
        return framed(bytes(body) + extra), f"{extra!r} behind it"
    if kind == 2:
        body[2:4] = pack(">H", random.choice([0, 2, 3, 65535]))
        return framed(bytes(body)), f"version {body[2]}{body[3]}"
    if kind == 3:
        body[0] ^= 0x80
        return framed(bytes(body)), "with the response bit"
    at, bits = random.randrange(4, 40), random.choice([1, 0x80, 0xFF])
    name = body.find(MARK.encode())
    if at < len(body) and not 0 <= name <= at:  # names stay those of the sequence
        body[at] ^= bits
        return framed(bytes(body)), f"byte {at} ^ {bits:#x}"
    return data, "as it is"


def batch(random: Random, publisher_id: int, publishing_id: int) -> Publish:
    """A Publish of one sub-entry batch; a server up to 4.0 stores it unread."""
    compression, records, plain, data = random.choices(_BATCHES, [10, 4, 1, 1, 1, 1, 1])[0]
    entry = pack(">BHII", 0x80 | compression << 4, records, plain, len(data)) + data
    return Publish(publisher_id, 1, publishing_id.to_bytes(8, "big"), entry, records, batches=1)
