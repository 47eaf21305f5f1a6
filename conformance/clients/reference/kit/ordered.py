"""A set that is gone through in the order in which its items came, whatever their addresses: runs repeat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet
from typing import TypeVar

T = TypeVar("T")


class OrderedSet(MutableSet[T]):
    """See the module's text."""

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = dict.fromkeys(items)

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._items))

    def __len__(self) -> int:
        return len(self._items)

    def add(self, value: T) -> None:
        """Take in an item; one that is there keeps its place."""
        self._items[value] = None

    def discard(self, value: T) -> None:
        """Take an item out, if it is there."""
        self._items.pop(value, None)

    def difference_update(self, items: Iterable[T]) -> None:
        """Take several out."""
        for item in items:
            self.discard(item)
