from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.rabbitmq_stream.batches import batch_entry
from fakebrokers.rabbitmq_stream.entries import simple_entries, spans, starts

_SIMPLE = st.integers(0, 300).map(lambda size: simple_entries([b"\x01" * size]))
_ENTRY = _SIMPLE | st.lists(st.binary(max_size=9), min_size=1, max_size=3).map(batch_entry)
_ALIKE = st.tuples(_ENTRY, st.integers(1, 20)).map(lambda both: [both[0]] * both[1])


@given(_ALIKE | st.lists(_ENTRY, min_size=1, max_size=12))
def test_starts_are_those_of_the_spans(entries: list[bytes]) -> None:
    joined = b"".join(entries)
    assert list(starts(joined, len(entries))) == [*(span.start for span in spans(joined)), len(joined)]


def test_entries_of_one_size_are_found_without_a_look_at_each() -> None:
    assert starts(simple_entries([b"abc"] * 5), 5) == range(0, 36, 7)


def test_a_length_that_only_looks_alike_is_no_border() -> None:
    """12 bytes in two entries: the second begins at 4, though something like a length stands at 6 too."""
    entries = simple_entries([b"", b"\x00\x02\x00\x02"])
    assert list(starts(entries, 2)) == [0, 4, 12]
