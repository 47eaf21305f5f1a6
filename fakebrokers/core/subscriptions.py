"""Who listens to which topic, with wildcards; the same for NATS and MQTT but for the words.

A topic is tokens between separators. One wildcard stands for one token, the other, as the last token, for
all that follow. What a topic matches is remembered until the next change: nodes use few topics, often.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

#: Topics of which it is remembered who listens.
REMEMBERED = 4096


class Subscription:
    """One listener.

    Attributes:
        pattern: The topic, perhaps with wildcards.
        owner: Whose it is: something with ``deliver(subscription, topic, ...)``.
        key: What the owner knows it by.
        queue: Of all members of a queue group one gets each message; "" for no group.
        limit: Deliveries after which it ends; 0 for no end.
        delivered: Deliveries so far.
    """

    __slots__ = ("delivered", "key", "limit", "owner", "pattern", "queue")

    def __init__(self, pattern: str, owner: Any, key: Any = None, queue: str = "") -> None:
        self.pattern = pattern
        self.owner = owner
        self.key = key
        self.queue = queue
        self.limit = 0
        self.delivered = 0


class Matches(NamedTuple):
    """Who listens to one topic; the members of queue groups by the groups' names."""

    plain: tuple[Subscription, ...]
    groups: tuple[tuple[str, tuple[Subscription, ...]], ...]


class _Node:
    __slots__ = ("children", "here")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.here: dict[Subscription, None] = {}  # in the order in which they came


class Subscriptions:
    """All listeners of one bus.

    Args:
        separator: Between tokens.
        one: The wildcard for one token.
        tail: The wildcard for all that follow.
        tail_may_be_empty: Whether ``a/#`` matches ``a`` too, as in MQTT.
        hidden: Topics that begin with this are not matched by a wildcard in front (MQTT's ``$``).
    """

    def __init__(
        self,
        separator: str = ".",
        one: str = "*",
        tail: str = ">",
        *,
        tail_may_be_empty: bool = False,
        hidden: str = "",
    ) -> None:
        self.separator = separator
        self._one = one
        self._tail = tail
        self._tail_may_be_empty = tail_may_be_empty
        self._hidden = hidden
        self._root = _Node()
        self._known: dict[str, Matches] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def remembered(self) -> int:
        """Topics of which it is known who listens."""
        return len(self._known)

    def __iter__(self) -> Iterator[Subscription]:
        nodes = [self._root]
        for node in nodes:
            yield from node.here
            nodes.extend(node.children.values())

    def add(self, subscription: Subscription) -> None:
        """Somebody listens from now on."""
        node = self._root
        for token in subscription.pattern.split(self.separator):
            node = node.children.setdefault(token, _Node())
        node.here[subscription] = None
        self._count += 1
        self._known.clear()

    def remove(self, subscription: Subscription) -> None:
        """Nothing listens there any more. Safe to call twice."""
        path = [self._root]
        tokens = subscription.pattern.split(self.separator)
        for token in tokens:
            node = path[-1].children.get(token)
            if node is None:
                return
            path.append(node)
        if subscription not in path[-1].here:
            return
        del path[-1].here[subscription]
        self._count -= 1
        self._known.clear()
        for parent, token in zip(reversed(path[:-1]), reversed(tokens), strict=True):
            child = parent.children[token]
            if child.here or child.children:
                break
            del parent.children[token]

    def clear(self) -> None:
        """Forget everybody."""
        self._root = _Node()
        self._known.clear()
        self._count = 0

    def match(self, topic: str) -> Matches:
        """Who listens to a topic."""
        known = self._known.get(topic)
        if known is None:
            known = self._look_up(topic)
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[topic] = known
        return known

    def _look_up(self, topic: str) -> Matches:
        plain: list[Subscription] = []
        groups: dict[str, list[Subscription]] = {}
        for node in self._nodes(topic):
            for subscription in node.here:
                if subscription.queue:
                    groups.setdefault(subscription.queue, []).append(subscription)
                else:
                    plain.append(subscription)
        return Matches(tuple(plain), tuple([(name, tuple(each)) for name, each in groups.items()]))

    def _nodes(self, topic: str) -> Iterator[_Node]:
        """Where listeners to a topic stand; level by level, so that depth is no matter of recursion."""
        tokens = topic.split(self.separator)
        level = [self._root]
        hidden = bool(self._hidden) and topic.startswith(self._hidden)
        for depth, token in enumerate(tokens):
            below: list[_Node] = []
            for node in level:
                wild = not (hidden and depth == 0)
                tail = node.children.get(self._tail) if wild else None
                if tail is not None:
                    yield tail
                one = node.children.get(self._one) if wild else None
                if one is not None:
                    below.append(one)
                exact = node.children.get(token) if token not in (self._one, self._tail) else None
                if exact is not None:
                    below.append(exact)
            level = below
        yield from level
        if self._tail_may_be_empty:
            yield from [node.children[self._tail] for node in level if self._tail in node.children]
