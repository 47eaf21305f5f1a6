"""In which order specs are drawn: every kind of disturbance soon, not every place of the first one.

A random order hides what is rare. So specs are grouped by what is done (act, kind of frame, class of the
parameter). Acts take turns, and so do the groups of an act; from a group the spec of that base is taken which
was drawn least so far. Base scripts without faults come first, as they cost least and show most; of these
walks come last, as what a script with a purpose shows as well is understood from that.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from random import Random

import msgspec

from conformance.run.specs import PLAIN, Spec
from conformance.search.systematic.universe import WALK, DrawableSpec


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


SHARE = 5  #: an act has as many turns in each cycle as the root of the number of its groups, divided by this


class DrawOrder:
    """Draws the specs of a universe.

    Args:
        seed: For the order of the groups, and of the specs in them.
        ledger: Notes what was run; what it knows already is skipped.
        by_name: The groups come in the order of their names, not in one that the seed has drawn.
    """

    def __init__(
        self,
        items: Iterable[DrawableSpec],
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
        self._drawn: deque[str] = deque()  # the groups of specs that were not run yet
        self.left = 0  #: specs that were not run
        for group, spec in items:
            self.left += 1
            self._groups.setdefault(group, {}).setdefault(spec.base, deque()).append(spec)
        for by_base in self._groups.values():
            for specs in by_base.values():
                mixed = list(specs)
                self._random.shuffle(mixed)
                specs.clear()
                specs.extend(mixed)
        self.left = max(0, self.left - sum(self.ledger.drawn.values()))

    def ran(self) -> None:
        """The next one of the specs that were drawn has been run."""
        group = self._drawn.popleft()
        self.ledger.drawn[group] = self.ledger.drawn.get(group, 0) + 1
        self.left -= 1

    def __iter__(self) -> Iterator[Spec]:
        """All specs, each once; those that the ledger has are left out."""
        names = sorted(self._groups)
        if not self._by_name:
            self._random.shuffle(names)
        skip = {name: self.ledger.drawn.get(_words(name), 0) for name in names}
        for name in self._names(names):
            spec = self._take(name)
            if skip[name] > 0:
                skip[name] -= 1
                continue
            self._drawn.append(_words(name))
            yield spec

    def _names(self, names: list[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
        """The groups to take a spec of: base scripts without faults first, then one act after the other."""
        plain = [name for name in names if name[0] == PLAIN]
        yield from sorted(plain, key=lambda name: name[1] == WALK)
        acts: dict[str, deque[tuple[str, ...]]] = {}
        for name in names:
            acts.setdefault(name[0], deque()).append(name)
        turns = {act: max(1, round(len(queue) ** 0.5 / SHARE)) for act, queue in acts.items()}
        while self._groups:
            for act, queue in acts.items():
                for _ in range(turns[act]):
                    found = _next(queue, self._groups)
                    if found is not None:
                        yield found

    def _take(self, name: tuple[str, ...]) -> Spec:
        """The next spec of a group: that of the base that was drawn least."""
        by_base = self._groups[name]
        base = min(by_base, key=lambda each: (self._bases[each], each))
        self._bases[base] += 1
        spec = by_base[base].popleft()
        if not by_base[base]:
            del by_base[base]
        if not by_base:
            del self._groups[name]
        return spec


def _next(queue: deque[tuple[str, ...]], left: Container[tuple[str, ...]]) -> tuple[str, ...] | None:
    """The next group of an act that has specs left; it goes to the end of the line."""
    for _ in range(len(queue)):
        name = queue.popleft()
        if name in left:
            queue.append(name)
            return name
    return None


def _words(group: tuple[str, ...]) -> str:
    return " ".join(group)
