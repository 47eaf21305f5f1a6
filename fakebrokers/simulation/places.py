"""Where modules have a function or a class under a name, and other ones in its place for a while."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


class Places:
    """All names under which modules have certain objects, `from x import y` among them.

    Args:
        real: The objects, by any key.
        spared: Packages in which nothing is exchanged.
    """

    def __init__(self, real: Mapping[str, Any], spared: Collection[str]) -> None:
        self._real = real
        self._spared = spared
        self._found: list[tuple[dict[str, Any], str, str]] = []
        self._modules = 0

    @contextmanager
    def exchanged(self, others: Mapping[str, Any]) -> Iterator[None]:
        """Let modules have these others, by the same keys, and give them the real ones back."""
        places = self._look()
        for names, name, key in places:
            names[name] = others[key]
        try:
            yield
        finally:
            for names, name, key in places:
                names[name] = self._real[key]

    def _look(self) -> list[tuple[dict[str, Any], str, str]]:
        """The names of a module, the name there, and the key; looked up again where modules have come."""
        if self._modules != len(sys.modules):
            self._modules = len(sys.modules)
            keys = {id(real): key for key, real in self._real.items()}
            self._found = [
                (names, name, keys[id(each)])
                for module, there in tuple(sys.modules.items())
                if module.partition(".")[0] not in self._spared
                for names in [getattr(there, "__dict__", {})]
                for name, each in tuple(names.items())
                if id(each) in keys
            ]
        return self._found
