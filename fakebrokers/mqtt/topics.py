"""Names of topics and filters (4.7), and who listens to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fakebrokers.core.subscriptions import Subscription, Subscriptions

#: First level of a filter whose listeners share the messages: ``$share/GROUP/FILTER``.
SHARE = "$share"
#: Topics of the server's own, on which clients may not publish.
SYSTEM = "$SYS"


def is_topic(name: str) -> bool:
    """Whether one may publish there."""
    return bool(name) and "+" not in name and "#" not in name


def is_filter(name: str) -> bool:
    """Whether one may listen there: wildcards are whole levels, ``#`` is the last one (4.7)."""
    levels = name.split("/")
    alone = all(level in ("+", "#") or not set(level) & set("+#") for level in levels)
    return bool(name) and alone and "#" not in levels[:-1]


def new_subscriptions() -> Subscriptions:
    """With MQTT's wildcards."""
    return Subscriptions("/", "+", "#", tail_may_be_empty=True, hidden="$")


def subscription(name: str, owner: Any, qos: int) -> Subscription:
    """A listener to a filter, perhaps as one of a group; Mosquitto has those in 3.1.1, too."""
    levels = name.split("/", 2)
    if levels[0] == SHARE and len(levels) == 3 and levels[1]:
        return Subscription(levels[2], owner, qos, name)
    return Subscription(name, owner, qos)


def that_fit(pattern: str, topics: Iterable[str]) -> Iterator[str]:
    """Those topics that a filter fits."""
    fits: Callable[[str], Any]
    if "+" in pattern or "#" in pattern:
        trie = new_subscriptions()
        trie.add(Subscription(pattern, None))
        fits = lambda topic: trie.match(topic).plain  # noqa: E731 - one of two
    else:
        fits = pattern.__eq__
    return (topic for topic in topics if fits(topic))
