"""The subject of a protocol: what a scenario for several protocols knows of the one that it runs on.

It is ``SUBJECT`` in the module ``subject`` of what the protocol brings along (`conformance.run.room`); see
`scenarios.subjects`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, Protocol

from conformance.run.material import package_of
from fakebrokers.errors import UsageError
from fakebrokers.protocol import find_protocol, protocol_names


class Subject(Protocol):
    """What the rows of a protocol are made of; see `scenarios.subjects.facts.Facts`."""

    roles: ClassVar[Mapping[str, str]]
    rows: ClassVar[Mapping[str, Mapping[str, Any]]]
    variants: ClassVar[Mapping[str, Mapping[str, Any]]]
    judged_by: ClassVar[tuple[str, ...]]

    @staticmethod
    def liveness(limit_s: float) -> dict[str, Any]:
        """Settings of a fake whose clients give a silent server up after a time."""


def find(protocol: str) -> type[Subject]:
    """The subject of a protocol.

    Raises:
        UsageError: There is none.
    """
    subject: type[Subject] = import_module(package_of(protocol, "subject")).SUBJECT
    return subject


def elsewhere() -> dict[str, tuple[str, ...]]:
    """The protocols of other projects that have a subject, and the ids that hold for each."""
    found = {}
    for name in protocol_names():
        if find_protocol(name).judge:
            try:
                found[name] = find(name).judged_by
            except UsageError:
                continue  # it joins the search alone
    return found
