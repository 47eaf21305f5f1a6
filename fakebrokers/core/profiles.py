"""Looking up a profile: which version of its system a fake resembles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from fakebrokers.errors import UsageError, instead_of

P = TypeVar("P")


def find_profile(profiles: Mapping[str, P], name: str, protocol: str) -> P:
    """The profile of that name.

    Args:
        profiles: Those of the protocol, by name.
        name: What the user asked for.
        protocol: Its name, for the error.

    Raises:
        UsageError: There is none; the message says what is valid, and the closest.
    """
    try:
        return profiles[name]
    except KeyError:
        raise UsageError(f"{protocol} has no profile {name!r}{instead_of(name, profiles)}") from None
