"""Seeds that have failed, kept in the folder of a campaign, to be run first the next time."""

from __future__ import annotations

from pathlib import Path

import msgspec

from conformance.search.random.draw import Setting
from conformance.search.random.schedule import DRAWING_VERSION

FILE = "corpus.json"
MOST = 50  #: seeds of one setting


class _Content(msgspec.Struct):
    """What the file holds. Seeds of another version of the drawing mean other schedules: they are dropped."""

    version: int = DRAWING_VERSION
    seeds: dict[str, list[str]] = {}


class Corpus:
    """The seeds, by setting."""

    def __init__(self, path: Path, content: _Content) -> None:
        self._path = path
        self._content = content

    @classmethod
    def load(cls, folder: Path) -> Corpus:
        """Of a folder; an empty one where there is none that can be used."""
        path = folder / FILE
        try:
            content = msgspec.json.decode(path.read_bytes(), type=_Content)
        except (OSError, msgspec.DecodeError):
            content = _Content()
        return cls(path, content if content.version == DRAWING_VERSION else _Content())

    def seeds_of(self, setting: Setting) -> list[str]:
        """The seeds that have failed last time with this setting."""
        return list(self._content.seeds.get(_key(setting), ()))

    def add(self, setting: Setting, seed: str) -> None:
        """It has failed."""
        seeds = self._content.seeds.setdefault(_key(setting), [])
        if seed not in seeds and len(seeds) < MOST:
            seeds.append(seed)

    def drop(self, setting: Setting, seed: str) -> None:
        """It does not fail any more."""
        seeds = self._content.seeds.get(_key(setting), [])
        if seed in seeds:
            seeds.remove(seed)

    def save(self) -> None:
        """Write the file; none where nothing has failed yet."""
        if self._path.exists() or any(self._content.seeds.values()):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_bytes(msgspec.json.format(msgspec.json.encode(self._content), indent=1))


def _key(setting: Setting) -> str:
    """What a seed's schedule depends on."""
    parts = (setting.protocol, str(setting.realism), ",".join(setting.workloads), ",".join(setting.nemeses))
    where = (
        "toxics"
        if setting.is_toxic
        else "server"
        if setting.is_remote
        else "process"
        if setting.is_process
        else ""
    )
    return "/".join((*parts, where))
