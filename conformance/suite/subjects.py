"""Where the subject of a protocol is: what a scenario for several protocols knows of the one that it runs on.

Subjects are loaded by name, from ``scenarios.subjects`` or from another project; what one is stands there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, Protocol

from fakebrokers.errors import UsageError

#: Module and ids of the protocols of other projects.
_REGISTERED: dict[str, tuple[str, tuple[str, ...]]] = {}


class Subject(Protocol):
    """What the rows of a protocol are made of; see `scenarios.subjects.facts.Facts`."""

    roles: ClassVar[Mapping[str, str]]
    rows: ClassVar[Mapping[str, Mapping[str, Any]]]
    variants: ClassVar[Mapping[str, Mapping[str, Any]]]

    @staticmethod
    def liveness(limit_s: float) -> dict[str, Any]:
        """Settings of a fake whose clients give it up when it says nothing for so long."""


def register(protocol: str, module: str, holds: Sequence[str]) -> None:
    """Run the scenarios with these ids for a protocol whose subject is ``SUBJECT`` in `module`.

    Raises:
        UsageError: Another subject has that name.
    """
    entry = (module, tuple(holds))
    if _REGISTERED.setdefault(protocol, entry) != entry or find_spec(_shipped(protocol)) is not None:
        raise UsageError(f"there is a subject for {protocol} already")


def elsewhere() -> dict[str, tuple[str, ...]]:
    """The protocols of other projects, and the ids that hold for each."""
    return {protocol: holds for protocol, (_, holds) in _REGISTERED.items()}


def find(protocol: str) -> type[Subject]:
    """The subject of a protocol.

    Raises:
        UsageError: There is none.
    """
    module, _ = _REGISTERED.get(protocol, (_shipped(protocol), ()))
    if protocol not in _REGISTERED and find_spec(module) is None:
        raise UsageError(f"there is no subject for {protocol}")
    subject: type[Subject] = import_module(module).SUBJECT
    return subject


def _shipped(protocol: str) -> str:
    return f"scenarios.subjects.{protocol.replace('-', '_')}"
