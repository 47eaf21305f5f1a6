"""What a client gave, for scripts to read: what it lacks is the client's failure, not the script's."""

from __future__ import annotations

from typing import Any

from fakebrokers.errors import FakeBrokerError


class NotGiven(FakeBrokerError, LookupError):
    """A script asked an answer for something that is not in it."""


class GivenObject(dict[str, Any]):
    """An object of an answer."""

    def __missing__(self, name: str) -> Any:
        there = ", ".join(map(str, self)) or "nothing"
        raise NotGiven(f"expected {name!r} in what the client gave, got {there}")


class GivenList(list[Any]):
    """A list of an answer."""

    def __getitem__(self, place: Any) -> Any:
        try:
            return super().__getitem__(place)
        except IndexError:
            raise NotGiven(f"expected item {place} of what the client gave, got {len(self)} items") from None


def given(value: Any) -> Any:
    """The same value, whose objects and lists say by `NotGiven` what they lack."""
    if isinstance(value, dict):
        return GivenObject((name, given(inner)) for name, inner in value.items())
    return GivenList(map(given, value)) if isinstance(value, list) else value
