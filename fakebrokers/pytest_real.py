"""Real brokers in the place of fakes: ``--fakebrokers-url``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn
from urllib.parse import urlsplit

import pytest

from fakebrokers.protocol import Protocol
from fakebrokers.pytest_marks import INCIDENTAL


class RealBroker:
    """A broker that is not ours, as a test sees it: where it is, and nothing else.

    A test that asks for more needs a fake, and is skipped.

    Attributes:
        url: Where it is.
        where: ``host:port``.
    """

    def __init__(self, protocol: Protocol, url: str) -> None:
        self.protocol = protocol
        self.url = url
        parts = urlsplit(url)
        self.scheme = parts.scheme
        self.host = parts.hostname or ""
        self.port = parts.port or protocol.port
        self.where = f"{self.host}:{self.port}"
        self.urls: dict[str, str] = {}

    def __getattr__(self, name: str) -> NoReturn:
        __tracebackhide__ = True
        if not hasattr(self.protocol.load(), name) and name not in ("faults", "journal", "broker", "engine"):
            raise AttributeError(f"neither a real broker nor a fake has {name!r}")
        skip(f"{name!r}", self.url)


def skip(what: str, url: str) -> NoReturn:
    """Skip the test because it needs something that only a fake has."""
    __tracebackhide__ = True  # the place of the skip is the test's line
    pytest.skip(f"needs {what} of a fake, and {url} is a real broker")


def real_instead(protocol: Protocol, url: str, options: Mapping[str, Any]) -> RealBroker:
    """The real broker for a test, unless that wants what only a fake can be told."""
    for name, value in options.items():
        if name not in INCIDENTAL and value:
            skip("the faults" if name == "faults" else f"{name}={value!r}", url)
    return RealBroker(protocol, url)
