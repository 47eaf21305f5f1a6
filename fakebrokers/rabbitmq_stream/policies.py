"""Policies: limits that hold for all streams whose names fit (docs/protocols/rabbitmq-stream.md, 9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from fakebrokers.core.patterns import Pattern, problem_of
from fakebrokers.errors import UsageError
from fakebrokers.rabbitmq_stream.arguments import seconds_of

#: Settings of a policy that the fake carries out; the others that servers know are refused.
SETTINGS = ("max-age", "max-length-bytes")

#: What a policy may apply to, of what a server has.
TARGETS = ("all", "exchanges", "queues", "classic_queues", "quorum_queues", "streams")

#: Policies that a broker takes: a stream that comes is compared with each of them.
MOST = 1000
#: Streams of which it is remembered what counts.
REMEMBERED = 10_000

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
        if wrong := problem_of(self.pattern):
            return "pattern", wrong
        if self.apply_to not in TARGETS:
            return "apply-to", f"expected one of {', '.join(TARGETS)}, got {self.apply_to[:100]!r}"
        if not self.definition:
            return "definition", f"expected at least one of {', '.join(SETTINGS)}, got none"
        problems = (_problem_of(name, value) for name, value in self.definition.items())
        return next((problem for problem in problems if problem is not None), None)

    def is_for(self, virtual_host: str) -> bool:
        """Whether it may be for a stream there, if the name fits."""
        return self.virtual_host == virtual_host and self.apply_to in _STREAMS


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
    """All policies of a broker.

    Which of them counts for a stream is remembered until a change concerns it: many patterns are searched in
    many names once, and not again for each policy that comes.
    """

    def __init__(self) -> None:
        self._by_name: dict[tuple[str, str], tuple[Policy, Pattern]] = {}
        self._counts: dict[tuple[str, str], Policy | None] = {}

    def __iter__(self) -> Iterator[Policy]:
        return iter([policy for policy, _ in self._by_name.values()])

    def put(self, policy: Policy) -> bool:
        """Add or replace one; whether it is new. `UsageError` if there are too many."""
        key = policy.virtual_host, policy.name
        old, pattern = self.find(*key), Pattern(policy.pattern)
        if old is None and len(self._by_name) >= MOST:
            raise UsageError(f"expected at most {MOST} policies, got {MOST + 1}")
        self._by_name[key] = policy, pattern
        for stream, counts in tuple(self._counts.items()):
            if counts is not None and counts is old:
                del self._counts[stream]
            elif policy.is_for(stream[0]) and pattern.found_in(stream[1]):
                if old is not None:  # its place among equals is what it was
                    del self._counts[stream]
                elif counts is None or counts.priority < policy.priority:
                    self._counts[stream] = policy
        return old is None

    def find(self, virtual_host: str, name: str) -> Policy | None:
        """The policy of that name."""
        found = self._by_name.get((virtual_host, name))
        return None if found is None else found[0]

    def remove(self, virtual_host: str, name: str) -> bool:
        """Delete a policy; whether there was one."""
        found = self._by_name.pop((virtual_host, name), None)
        if found is None:
            return False
        for key in [key for key, counts in self._counts.items() if counts is found[0]]:
            del self._counts[key]
        return True

    def forget(self, virtual_host: str) -> None:
        """Delete all policies of a virtual host."""
        for key in [key for key in self._by_name if key[0] == virtual_host]:
            del self._by_name[key]
        self._counts.clear()

    def of(self, virtual_host: str, stream: str) -> Policy | None:
        """The policy that counts for a stream."""
        key = virtual_host, stream
        if key not in self._counts:
            if len(self._counts) >= REMEMBERED:
                self._counts.clear()
            fitting = [
                policy
                for policy, pattern in self._by_name.values()
                if policy.is_for(virtual_host) and pattern.found_in(stream)
            ]
            self._counts[key] = max(fitting, key=lambda policy: policy.priority, default=None)
        return self._counts[key]
