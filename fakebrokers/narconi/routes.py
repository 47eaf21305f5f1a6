"""Paths, queries and the checks that every request passes (docs/protocols/narconi.md, "Order of checks")."""

from __future__ import annotations

import math
import re
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from fakebrokers.narconi.config import Config
from fakebrokers.narconi.profile import Profile

#: Methods of a path, in the order of the header ``Allow``.
QUEUE_METHODS = ("PUT", "DELETE")
MESSAGES_METHODS = ("POST", "DELETE", "GET")

#: Repeats that give nothing back (``++``): else a path of n slashes would take n * n steps to refuse. An
#: empty project is one that two slashes stand for.
_PATH = re.compile(r"/++v2(?:/++([^/]++)/++|//++())queues/++([^/]*+)(/++messages)?+\Z")
_PROJECT = re.compile(r"[a-zA-Z0-9]+\Z")
_QUEUE = re.compile(r"[a-zA-Z0-9.:_-]+\Z")


class Refusal(NamedTuple):
    """Why a request is refused: status, the word in ``code``, and ``message``."""

    status: int
    code: str
    message: str


class Route(NamedTuple):
    """A path that is known.

    Attributes:
        project: Decoded.
        queue: Decoded.
        messages: Whether it is the path of the queue's messages.
        query: Decoded parameters; the last of a name that comes more than once.
    """

    project: str
    queue: str
    messages: bool
    query: dict[str, str]

    @property
    def name(self) -> str:
        """The queue's name in the broker."""
        return f"{self.project}_{self.queue}"

    @property
    def methods(self) -> tuple[str, ...]:
        """What the path allows."""
        return MESSAGES_METHODS if self.messages else QUEUE_METHODS


def find_route(target: str) -> Route | None:
    """The route of a request's target, or None for an unknown path. A trailing slash is unknown."""
    path, _, query = target.partition("?")
    found = _PATH.match(path)
    if found is None:
        return None
    project, _, queue, messages = found.groups()
    return Route(
        unquote(project or ""),
        unquote(queue),
        messages is not None,
        dict(parse_qsl(query, keep_blank_values=True)),
    )


def js_number(text: str) -> float:
    """Text as JavaScript's ``Number(text)``: empty is 0, what is no number is NaN."""
    if text.isascii() and text.isdigit():
        return float(text)
    text = text.strip()
    if not text:
        return 0.0
    try:
        if re.match(r"0[xX][0-9a-fA-F]+\Z", text):
            return float(int(text, 16))
        return math.nan if "_" in text or re.search("[nN]", text.lstrip("+-")) else float(text)
    except (OverflowError, ValueError):
        return math.nan


def check(route: Route, config: Config) -> Refusal | None:
    """The first of the checks that fails, in the server's order: project, queue, ttl, limit."""
    if not _PROJECT.match(route.project):
        return Refusal(409, "InvalidArgument", "Invalid project ID.")
    if not _QUEUE.match(route.queue):
        return Refusal(409, "InvalidArgument", "Invalid queue name.")
    ttl = route.query.get("ttl")
    if ttl is not None and not 0 <= js_number(ttl) <= config.max_message_ttl:
        text = f"TTL must be in seconds and between 0 and {config.max_message_ttl}"
        return Refusal(409, "InvalidArgument", text)
    limit = route.query.get("limit")
    if limit is not None and not js_number(limit) >= 1:
        return Refusal(409, "InvalidArgument", "Limit must be greater than 0.")
    return None


def prefetch(route: Route, config: Config, profile: Profile) -> int | None:
    """How many unacknowledged messages a consumer with ``ack`` may have.

    None: the real server hands RabbitMQ a value that it refuses, and nothing ever arrives (fractions,
    more than 65535).
    """
    limit = js_number(route.query["limit"]) if "limit" in route.query else float(config.default_limit)
    if profile.any_limit:
        return int(min(limit, 2**31))
    return int(limit) if limit.is_integer() and limit <= 0xFFFF else None


def missing_queue(name: str) -> Refusal:
    """The queue is not there; `name` in the broker."""
    return Refusal(404, "ResourceNotFound", f"Queue does not exist: {name}")


NO_UPGRADE = Refusal(400, "InvalidHeader", "Upgrade: WebSocket header expected.")
TOO_LARGE = Refusal(429, "RequestThrottled", "Message too large.")
BACKEND_DOWN = Refusal(500, "InternalError", "Cannot connect to the AMQP backend.")
