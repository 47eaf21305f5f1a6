"""Server-side filtering: which chunks a consumer is sent (docs/protocols/rabbitmq-stream.md, 7 "Filters").

A real broker keeps a bloom filter per chunk; here it is the exact set of values, which is the same
without false positives. `Stream.false_positives` brings those back. The empty value means unfiltered, with a
message and in a subscription.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

#: the filter values in one chunk; None among them: it holds messages without a value
ChunkFilter = frozenset[str | None]


class Filter(msgspec.Struct, frozen=True):
    """What a subscription asks for.

    Attributes:
        values: Filter values; there may be none if messages without one are wanted.
        match_unfiltered: Chunks with messages that have no value are wanted too.
    """

    values: frozenset[str]
    match_unfiltered: bool = False

    def accepts(self, chunk: ChunkFilter | None) -> bool:
        """Whether a chunk may hold what is wanted; None: none of its messages has a value."""
        if chunk is None:
            return self.match_unfiltered
        return not self.values.isdisjoint(chunk) or (self.match_unfiltered and None in chunk)


def parse_filter(properties: Mapping[str, str]) -> Filter | None:
    """The filter in the properties of a subscription: ``filter.<anything>``, ``match-unfiltered``."""
    values = frozenset(value for key, value in properties.items() if key.startswith("filter."))
    unfiltered = "" in values or properties.get("match-unfiltered") == "true"
    return Filter(values - {""}, unfiltered) if values else None


def chunk_filter(values: Iterable[str | None]) -> ChunkFilter | None:
    """The filter of a chunk with these messages; None if no message has a value."""
    found = frozenset([value or None for value in values])
    return None if found <= {None} else found
