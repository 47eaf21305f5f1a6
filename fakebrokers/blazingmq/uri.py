"""Names of queues: ``bmq://domain[.~tier]/queue[?id=app]`` (docs/protocols/blazingmq.md, 9)."""

from __future__ import annotations

import re
from typing import NamedTuple

from fakebrokers.blazingmq.codes import Category
from fakebrokers.blazingmq.refusals import Refused

_URI = re.compile(
    r"bmq://(?P<domain>[-\w.]+?)(?:\.~(?P<tier>[-A-Za-z0-9]+))?/(?P<queue>[-\w.]+)(?:\?id=(?P<app>[-\w.]+))?",
    re.ASCII,
)
_LONGEST_QUEUE = 64


class Uri(NamedTuple):
    """A name in its parts; `app` is empty where none is given."""

    domain: str
    queue: str
    app: str = ""
    tier: str = ""

    @property
    def qualified_domain(self) -> str:
        """The domain with its tier."""
        return f"{self.domain}.~{self.tier}" if self.tier else self.domain

    @property
    def canonical(self) -> str:
        """The queue's name, the same for all its apps."""
        return f"bmq://{self.qualified_domain}/{self.queue}"


def parse_uri(text: str) -> Uri:
    """The parts of a name.

    Raises:
        Refused: It is none.
    """
    found = _URI.fullmatch(text)
    if found is None:
        raise Refused(Category.E_REFUSED, f"invalid URI '{text}': expected bmq://domain/queue", -1)
    if len(found["queue"]) > _LONGEST_QUEUE:
        raise Refused(Category.E_REFUSED, f"queue name longer than {_LONGEST_QUEUE} characters", -1)
    return Uri(found["domain"], found["queue"], found["app"] or "", found["tier"] or "")
