from __future__ import annotations

import gzip
import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.rabbitmq_stream import entries
from fakebrokers.rabbitmq_stream.batches import batch_entry
from fakebrokers.rabbitmq_stream.entries import messages, simple_entries, spans, starts

_SIMPLE = st.integers(0, 300).map(lambda size: simple_entries([b"\x01" * size]))
_ENTRY = _SIMPLE | st.lists(st.binary(max_size=9), min_size=1, max_size=3).map(batch_entry)
_ALIKE = st.tuples(_ENTRY, st.integers(1, 20)).map(lambda both: [both[0]] * both[1])


@given(_ALIKE | st.lists(_ENTRY, min_size=1, max_size=12))
def test_starts_are_those_of_the_spans(there: list[bytes]) -> None:
    joined = b"".join(there)
    assert list(starts(joined, len(there))) == [*(span.start for span in spans(joined)), len(joined)]


def test_entries_of_one_size_are_found_without_a_look_at_each() -> None:
    assert starts(simple_entries([b"abc"] * 5), 5) == range(0, 36, 7)


def test_a_length_that_only_looks_alike_is_no_border() -> None:
    """12 bytes in two entries: the second begins at 4, though something like a length stands at 6 too."""
    entries = simple_entries([b"", b"\x00\x02\x00\x02"])
    assert list(starts(entries, 2)) == [0, 4, 12]


def batch(data: bytes, size: int, records: int = 1) -> bytes:
    """A sub-entry batch of gzip that says how large it is."""
    return struct.pack(">BHII", 0x90, records, size, len(data)) + data


def test_a_bomb_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no larger than it says, nor than servers allow."""
    bomb = gzip.compress(bytes(16 << 20))
    monkeypatch.setattr(entries, "MAX_INFLATED", 100_000)
    tracemalloc.start()
    try:
        assert list(messages(batch(bomb, 1000))) == [(0, bomb)]
        assert list(messages(batch(bomb[:5000] * 2, 1000))) == [(0, bomb[:5000] * 2)]
        assert list(messages(batch(bomb, 0xFFFF_FFFF))) == [(0, bomb)]
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_batch_of_several_pieces_of_gzip_is_opened() -> None:
    plain = simple_entries([b"tea", b"milk"])
    packed = gzip.compress(plain[:5]) + gzip.compress(plain[5:])
    assert list(messages(batch(packed, len(plain), 2))) == [(0, b"tea"), (1, b"milk")]
    assert list(messages(batch(packed, len(plain) - 1, 2))) == [(0, packed)]
    assert list(messages(batch(packed[:-9], len(plain), 2))) == [(0, packed[:-9])]
