"""Domains: how their queues deliver, and what they can hold (docs/protocols/blazingmq.md, 9).

    Domains({"orders": Domain(mode="fanout", app_ids=("billing", "stock"))})
    load_domains("domains.toml")

A file has one table per domain, with the fields of `Domain`::

    [domains."orders"]
    mode = "fanout"
    app_ids = ["billing", "stock"]

A domain that nobody configured is there too if its name ends with a mode, as those of the broker's own
examples do: ``bmq.test.mem.priority``, ``bmq.test.persistent.fanout.sc``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from fakebrokers.blazingmq.codes import Category, RoutingFlag
from fakebrokers.blazingmq.refusals import Refused
from fakebrokers.errors import UsageError

Mode = Literal["priority", "fanout", "broadcast"]

#: Apps of a fanout domain that nobody configured; those of the broker's own examples.
EXAMPLE_APPS = ("foo", "bar", "baz")
#: What may stand after the mode in the name of a domain: strong consistency.
_SUFFIX = ".sc"

_ROUTING = {
    "priority": RoutingFlag.DELIVER_CONSUMER_PRIORITY,
    "fanout": RoutingFlag.DELIVER_CONSUMER_PRIORITY | RoutingFlag.HAS_MULTIPLE_SUB_STREAMS,
    "broadcast": RoutingFlag.AT_MOST_ONCE | RoutingFlag.DELIVER_CONSUMER_PRIORITY | RoutingFlag.DELIVER_ALL,
}


class Domain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What holds for all queues of a domain. A limit of 0 is none.

    Attributes:
        mode: ``priority``: each message to one consumer; ``fanout``: to one consumer of each app;
            ``broadcast``: to all that are there, and to nobody later.
        app_ids: The apps of a fanout domain.
        max_delivery_attempts: How often a message may go to a client that is lost with it.
        deduplication_time_ms: How long a GUID is remembered.
        message_ttl_s: Age beyond which messages are dropped, in whole seconds of the clock: when the queue is
            used next, or within 5 s.
        max_consumers, max_producers: Of one queue.
        max_queues: Of the domain.
        queue_messages, queue_bytes: What one queue holds; a message comes in as long as no limit is exceeded,
            so a limit of 3 messages lets 4 in.
        domain_messages, domain_bytes: What all its queues hold, likewise.
    """

    mode: Mode = "priority"
    app_ids: tuple[str, ...] = ()
    max_delivery_attempts: int = 0
    deduplication_time_ms: int = 300_000
    message_ttl_s: float = 0.0
    max_consumers: int = 0
    max_producers: int = 0
    max_queues: int = 0
    queue_messages: int = 0
    queue_bytes: int = 0
    domain_messages: int = 0
    domain_bytes: int = 0

    @property
    def has_limits(self) -> bool:
        """Whether its queues can be full."""
        return bool(self.queue_messages or self.queue_bytes or self.domain_messages or self.domain_bytes)

    @property
    def routing_flags(self) -> int:
        """What the answer to openQueue says of it."""
        return int(_ROUTING[self.mode])


class Domains:
    """All domains by name."""

    def __init__(self, configured: Mapping[str, Domain | Mapping[str, Any]] | None = None) -> None:
        self._configured: dict[str, Domain] = {}
        for name, domain in (configured or {}).items():
            self.configure(name, domain)

    def configure(self, name: str, domain: Domain | Mapping[str, Any]) -> Domain:
        """Add a domain, or change one from here on.

        Raises:
            UsageError: The values are none of a domain; the message says where.
        """
        if not isinstance(domain, Domain):
            try:
                domain = msgspec.convert(domain, Domain)
            except msgspec.ValidationError as error:
                raise UsageError(f"domain {name!r}: {error}") from None
        self._configured[name] = domain
        return domain

    def has(self, name: str) -> bool:
        """Whether there is a domain of that name."""
        return name in self._configured or _mode(name) in get_args(Mode)

    def find(self, name: str) -> Domain:
        """The domain of that name.

        Raises:
            Refused: There is none.
        """
        if name in self._configured:
            return self._configured[name]
        mode = _mode(name)
        if mode not in get_args(Mode):
            raise Refused(Category.E_UNKNOWN, f"Domain file 'etc/domains/{name}.json' doesn't exist", -1)
        return self.configure(name, {"mode": mode, "app_ids": EXAMPLE_APPS if mode == "fanout" else ()})


def _mode(name: str) -> str:
    """What the name of a domain that nobody configured says of its mode."""
    return name.removesuffix(_SUFFIX).rpartition(".")[2]


def load_domains(path: str | Path) -> Domains:
    """The domains of a TOML file.

    Raises:
        UsageError: It cannot be read, or holds something else; the message says where.
    """
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: expected a TOML file with domains: {error}") from None
    domains = table.pop("domains", {})
    if table or not isinstance(domains, dict):
        raise UsageError(f"{path}: expected tables [domains.NAME] and nothing else, got {', '.join(table)}")
    return Domains(domains)
