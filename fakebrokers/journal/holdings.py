"""What a broker holds (queues, offsets, credits), taken down where it changes: only where somebody looks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

#: Gives all that the broker holds at this moment: a short text by name; None where it cannot say.
Ask = Callable[[], Mapping[str, str] | None]


class Holding(NamedTuple):
    """What has changed.

    Attributes:
        seq: Number of the newest record at that time.
        at: Monotonic seconds: that record's time where it was this record that has changed it.
        changes: By name; "" where it is gone.
    """

    seq: int
    at: float
    changes: Mapping[str, str]


class Holdings:
    """All changes, in order.

    Args:
        ask: Asked often; what has not changed costs no memory.
        limit: Changes that are kept one by one; those before are kept as one.
    """

    def __init__(self, ask: Ask, limit: int) -> None:
        self.kept: deque[Holding] = deque()
        self._ask = ask
        self._limit = max(1, limit)
        self._known: Mapping[str, str] = {}

    def forget(self) -> None:
        """Keep none of them; what is held now is reported anew."""
        self.kept.clear()
        self._known = {}

    def look(self, seq: int, at: float) -> Holding | None:
        """Take down what has changed; None if nothing has."""
        now = self._ask()
        if now is None:
            return None
        known, self._known = self._known, now
        changes = {name: text for name, text in self._known.items() if known.get(name) != text}
        changes |= {name: "" for name in known if name not in self._known}
        if not changes:
            return None
        found = Holding(seq, at, changes)
        self.kept.append(found)
        if len(self.kept) > self._limit:
            first, second = self.kept.popleft(), self.kept[0]
            self.kept[0] = second._replace(changes={**first.changes, **second.changes})
        return found
