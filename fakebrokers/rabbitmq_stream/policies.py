"""Policies: limits that hold for all streams whose names fit (docs/protocols/rabbitmq-stream.md, 9)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from fakebrokers.rabbitmq_stream.arguments import seconds_of

#: Settings of a policy that the fake carries out; the others that servers know are refused.
SETTINGS = ("max-age", "max-length-bytes")

#: What a policy may apply to, of what a server has.
TARGETS = ("all", "exchanges", "queues", "classic_queues", "quorum_queues", "streams")

_STREAMS = frozenset({"all", "queues", "streams"})


class Policy(msgspec.Struct, frozen=True):
    """One policy.

    Attributes:
        pattern: A regular expression, searched in the name of the stream.
        definition: The settings, of `SETTINGS`.
        priority: The highest of those that fit counts, alone.
        apply_to: One of `TARGETS`.
    """

    virtual_host: str
    name: str
    pattern: str
    definition: Mapping[str, int | str]
    priority: int = 0
    apply_to: str = "all"

    def problem(self) -> tuple[str, str] | None:
        """Where it makes no sense, and what was expected there; None: nowhere."""
        try:
            re.compile(self.pattern)
        except (re.error, OverflowError, RecursionError) as error:
            return "pattern", f"expected a regular expression, got {self.pattern[:100]!r}: {error}"
        if self.apply_to not in TARGETS:
            return "apply-to", f"expected one of {', '.join(TARGETS)}, got {self.apply_to[:100]!r}"
        if not self.definition:
            return "definition", f"expected at least one of {', '.join(SETTINGS)}, got none"
        problems = (_problem_of(name, value) for name, value in self.definition.items())
        return next((problem for problem in problems if problem is not None), None)

    def fits(self, virtual_host: str, stream: str) -> bool:
        """Whether it is for this stream."""
        return (
            self.virtual_host == virtual_host
            and self.apply_to in _STREAMS
            and re.search(self.pattern, stream) is not None
        )


def _problem_of(name: str, value: object) -> tuple[str, str] | None:
    """What is wrong with one setting."""
    where = f"definition.{name[:100]}"
    if name not in SETTINGS:
        return where, f"expected one of {', '.join(SETTINGS)}, as the fake carries out no other"
    if name == "max-age" and (not isinstance(value, str) or seconds_of(value) is None):
        return where, f"expected an age such as '7D', got {str(value)[:100]!r}"
    if name == "max-length-bytes" and (type(value) is not int or value < 0):
        return where, f"expected a number of bytes, got {str(value)[:100]!r}"
    return None


class Policies:
    """All policies of a broker."""

    def __init__(self) -> None:
        self._by_name: dict[tuple[str, str], Policy] = {}

    def __iter__(self) -> Iterator[Policy]:
        return iter(list(self._by_name.values()))

    def put(self, policy: Policy) -> bool:
        """Add or replace one; whether it is new."""
        key = policy.virtual_host, policy.name
        new = key not in self._by_name
        self._by_name[key] = policy
        return new

    def find(self, virtual_host: str, name: str) -> Policy | None:
        """The policy of that name."""
        return self._by_name.get((virtual_host, name))

    def remove(self, virtual_host: str, name: str) -> bool:
        """Delete a policy; whether there was one."""
        return self._by_name.pop((virtual_host, name), None) is not None

    def forget(self, virtual_host: str) -> None:
        """Delete all policies of a virtual host."""
        for key in [key for key in self._by_name if key[0] == virtual_host]:
            del self._by_name[key]

    def of(self, virtual_host: str, stream: str) -> Policy | None:
        """The policy that counts for a stream."""
        fitting = [policy for policy in self if policy.fits(virtual_host, stream)]
        return max(fitting, key=lambda policy: policy.priority, default=None)
