"""Options of PUSH messages: which subscriptions a message is for (docs/protocols/blazingmq.md, 2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from struct import Struct, iter_unpack, pack
from typing import NamedTuple

from fakebrokers.errors import WireError

_HEADER = Struct(">I")
_OLD_IDS, _INFOS = 1, 3
_PACKED = 1 << 25
_INFO_WORDS = 2
UNLIMITED = 0x80  #: remaining delivery attempts that are not counted


class PushOption(StrEnum):
    """How a broker says which subscriptions a PUSH is for. A real one uses only the first towards SDKs."""

    IDS = "ids"  #: type 1: numbers only
    INFOS = "infos"  #: type 3: numbers and remaining delivery attempts
    PACKED = "packed"  #: type 3 in one word, where the number is 0; else as INFOS


class SubscriptionInfo(NamedTuple):
    """A subscription of the receiving client, and the delivery attempts that remain.

    Attributes:
        number: The `s_id` of configureStream, or the `sub_id` of a stream that was configured the older way.
        attempts: 0 to 63, with 0x40 where the message may be poisonous; 0x80: not counted.
    """

    number: int
    attempts: int = UNLIMITED


def write_options(infos: Sequence[SubscriptionInfo], form: PushOption = PushOption.IDS) -> bytes:
    """The options area for these subscriptions."""
    return _written(tuple(infos), form)


@lru_cache(maxsize=256)  # a consumer has few subscriptions and gets many messages
def _written(infos: tuple[SubscriptionInfo, ...], form: PushOption) -> bytes:
    if form is PushOption.IDS:
        return pack(f">I{len(infos)}I", _OLD_IDS << 26 | len(infos) + 1, *[info.number for info in infos])
    if form is PushOption.PACKED and len(infos) == 1 and infos[0].number == 0:
        return _HEADER.pack(_INFOS << 26 | _PACKED | infos[0].attempts)
    words = 1 + _INFO_WORDS * len(infos)
    rows = [pack(">IB3x", info.number, info.attempts) for info in infos]
    return _HEADER.pack(_INFOS << 26 | _INFO_WORDS << 21 | words) + b"".join(rows)


def read_options(area: bytes) -> tuple[SubscriptionInfo, ...]:
    """The subscriptions in an options area; a message without any is for the default one, 0.

    Raises:
        WireError: An option is longer than the area.
    """
    found: list[SubscriptionInfo] = []
    at = 0
    while at < len(area):
        if len(area) - at < _HEADER.size:
            raise WireError("an option header", f"{len(area) - at} bytes", at)
        (head,) = _HEADER.unpack_from(area, at)
        kind, words = head >> 26, head & 0x1FFFFF
        if head & _PACKED:
            if kind == _INFOS:
                found.append(SubscriptionInfo(0, words & 0xFF))
            at += _HEADER.size
            continue
        end = at + 4 * words
        if words < 1 or end > len(area):
            raise WireError(f"an option of 1 to {(len(area) - at) // 4} words", str(words), at)
        found += _infos(kind, head >> 21 & 0xF, area[at + _HEADER.size : end])
        at = end
    return tuple(found) or (SubscriptionInfo(0),)


def _infos(kind: int, item_words: int, content: bytes) -> list[SubscriptionInfo]:
    if kind == _OLD_IDS:
        return [SubscriptionInfo(number) for (number,) in iter_unpack(">I", content)]
    if kind == _INFOS and item_words == _INFO_WORDS:
        whole = content[: len(content) // 8 * 8]
        return [SubscriptionInfo(*row) for row in iter_unpack(">IB3x", whole)]
    return []
