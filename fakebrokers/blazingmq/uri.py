"""Names of queues: ``bmq://domain[.~tier]/queue[?id=app]`` (docs/protocols/blazingmq.md, 9)."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import NamedTuple

from fakebrokers.blazingmq.codes import Category
from fakebrokers.blazingmq.refusals import Refused

_SCHEME = "bmq://"
_DOMAIN = re.compile(r"(?:(?!\.~)[-\w.])*", re.ASCII)
_TIER = re.compile(r"[-A-Za-z0-9]*")
_NAME = re.compile(r"[-\w.]*", re.ASCII)
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
        Refused: It is none; with the text of a broker.
    """
    if not text.startswith(_SCHEME):
        raise _refused(f'Invalid scheme: uri must start with "{_SCHEME}"')
    domain, rest = _part("Domain", _DOMAIN, text[len(_SCHEME) :], (".~", "/", ""), "Missing domain")
    tier = app = ""
    if rest.startswith(".~"):
        tier, rest = _part("Tier", _TIER, rest[2:], ("/", ""), "Empty tier")
    if not rest:
        raise _refused("Missing queue")
    queue, rest = _part("Path", _NAME, rest[1:], ("?", ""), "Missing queue")
    if rest:
        app = _app(rest[1:])
    if len(queue) > _LONGEST_QUEUE:
        raise _refused(f"Queue name exceeds {_LONGEST_QUEUE} characters")
    return Uri(domain, queue, app, tier)


def _part(
    what: str, pattern: re.Pattern[str], text: str, ends: Sequence[str], missing: str
) -> tuple[str, str]:
    """The part at the front of a text, and the rest, which begins with one of `ends`."""
    found = pattern.match(text)
    part = found[0] if found else ""
    rest = text[len(part) :]
    if rest and not any(end and rest.startswith(end) for end in ends):
        (char,) = struct.unpack("b", rest.encode(errors="surrogateescape")[:1])
        raise _refused(f"{what} parsing failed: unsupported char (int){char}")
    if not part:
        raise _refused(missing)
    return part, rest


def _app(query: str) -> str:
    name, separator, value = query.partition("=")
    if not value:
        raise _refused(
            "Query parsing failed: " + ('missing value after "="' if separator else "no separator found")
        )
    if name != "id":
        raise _refused(f'Query parsing failed: unsupported query "{name}"')
    return _part("Query", _NAME, value, (), "")[0]


def _refused(text: str) -> Refused:
    return Refused(Category.E_REFUSED, text)
