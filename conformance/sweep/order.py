"""In which order specs are drawn: every kind of disturbance soon, not every place of the first one.

A random order hides what is rare. So specs are grouped by what is done (act, kind of frame, class of the
parameter) and drawn round robin, from each group the spec of the base that was drawn least so far.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

import msgspec

from conformance.sweep.specs import Spec
from conformance.sweep.universe import Item


class Ledger(msgspec.Struct):
    """How far earlier sweeps have come, so that the next one goes on there.

    Attributes:
        drawn: How many specs of each group were run, by the group's words.
        size: Of the universe that was drawn from; with another one everything begins anew.
    """

    drawn: dict[str, int] = {}
    size: int = 0

    @classmethod
    def load(cls, path: Path, size: int) -> Ledger:
        """What is written down, if it is about a universe of this size."""
        try:
            found = msgspec.json.decode(path.read_bytes(), type=Ledger)
        except (OSError, msgspec.DecodeError):
            return Ledger({}, size)
        return found if found.size == size else Ledger({}, size)

    def save(self, path: Path) -> None:
        """Write it down."""
        path.write_bytes(msgspec.json.encode(self))


#: Groups of this act come first in every round, and more often: behind a loss is where clients are weakest.
FIRST = "second"
FIRST_TIMES = 3


class Order:
    """Draws the specs of a universe.

    Args:
        seed: For the order of the groups, and of the specs in them.
        ledger: Notes what is drawn; what it knows already is skipped.
        by_name: The groups come in the order of their names, not in one that the seed has drawn.
    """

    def __init__(
        self,
        items: Iterable[Item],
        seed: int = 0,
        ledger: Ledger | None = None,
        *,
        by_name: bool = False,
    ) -> None:
        self.ledger = ledger if ledger is not None else Ledger()
        self._random = Random(seed)
        self._by_name = by_name
        self._bases: Counter[str] = Counter()
        self._groups: dict[tuple[str, ...], dict[str, deque[Spec]]] = {}
        for group, spec in items:
            self._groups.setdefault(group, {}).setdefault(spec.base, deque()).append(spec)
        for by_base in self._groups.values():
            for specs in by_base.values():
                mixed = list(specs)
                self._random.shuffle(mixed)
                specs.clear()
                specs.extend(mixed)

    def __iter__(self) -> Iterator[Spec]:
        """All specs, each once; those that the ledger has are left out."""
        names = sorted(self._groups)
        if not self._by_name:
            self._random.shuffle(names)
        skip = {name: self.ledger.drawn.get(_words(name), 0) for name in names}
        while self._groups:
            plain = [name for name in names if name in self._groups and name[0] == "plain"]
            second = [name for name in names if name in self._groups and name[0] == FIRST]
            rest = [name for name in names if name in self._groups and name[0] not in ("plain", FIRST)]
            for name in [*plain, *_mixed(rest, second)]:
                spec = self._take(name)
                if spec is None:
                    continue
                if skip[name] > 0:
                    skip[name] -= 1
                    continue
                self.ledger.drawn[_words(name)] = self.ledger.drawn.get(_words(name), 0) + 1
                yield spec

    def _take(self, name: tuple[str, ...]) -> Spec | None:
        """The next spec of a group: that of the base that was drawn least."""
        by_base = self._groups.get(name)
        if by_base is None:
            return None
        base = min(by_base, key=lambda each: (self._bases[each], each))
        self._bases[base] += 1
        spec = by_base[base].popleft()
        if not by_base[base]:
            del by_base[base]
        if not by_base:
            del self._groups[name]
        return spec


def _mixed(rest: list[tuple[str, ...]], often: list[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Two of the first list, then one of the second, and so on; the second one several times."""
    again = deque(often * FIRST_TIMES)
    for number, name in enumerate(rest):
        yield name
        if number % 2 and again:
            yield again.popleft()
    yield from again


def _words(group: tuple[str, ...]) -> str:
    return " ".join(group)
