"""A message of many parts is read in one go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakebrokers.pzq.codec import PzqCodec, ReceiveCodec
from tests.pzq.test_codec import CODECS

#: Parts looked at or copied per part that came, at most, for any number.
PER_PART = 6


class CountedParts(tuple[bytes, ...]):
    """A unit that counts the parts that were looked at."""

    work = 0

    def __iter__(self) -> Iterator[bytes]:
        self.work += len(self)
        return super().__iter__()

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        self.work += len(found) if isinstance(key, slice) else 1
        return found

    def index(self, *args: Any) -> int:
        self.work += len(self)
        return super().index(*args)


@pytest.mark.parametrize("count", [1_000, 4_000])
@pytest.mark.parametrize("empty_at", [None, 1, -2])
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: type(codec).__name__)
def test_parts(codec: PzqCodec, empty_at: int | None, count: int) -> None:
    parts = [b"a"] * count
    if empty_at is not None:
        parts[empty_at] = b""
    unit = CountedParts(parts)
    ((_, size),) = codec.feed(unit)
    assert size == sum(map(len, parts))
    assert unit.work <= PER_PART * count


def test_nothing_but_empty_parts() -> None:
    unit = CountedParts([b""] * 4_000)
    ((frame, _),) = ReceiveCodec().feed(unit)
    assert frame.body == (b"",) * 3_998  # type: ignore[attr-defined]
    assert unit.work <= PER_PART * 4_000
