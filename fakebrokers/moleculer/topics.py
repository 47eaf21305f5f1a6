"""The topics of Moleculer: what kind of packet goes there, and to whom (docs/protocols/moleculer.md, 2)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

#: The words of topics, longest first where one begins with another.
COMMANDS = (
    "EVENTB",
    "EVENT",
    "REQB",
    "REQ",
    "RES",
    "DISCOVER",
    "INFO",
    "DISCONNECT",
    "HEARTBEAT",
    "PING",
    "PONG",
)

_TOPIC = re.compile(rf"(MOL(?:-(.+?))?)([./])({'|'.join(COMMANDS)})(?:\3(.*))?", re.DOTALL)


class Topic(NamedTuple):
    """A topic, taken apart.

    Attributes:
        prefix: ``MOL``, or ``MOL-`` and the namespace.
        separator: A dot, unless an MQTT client has another one.
        command: One of `COMMANDS`.
        rest: A node's id; what is asked for where the balancer is disabled; "" for everybody.
    """

    prefix: str
    separator: str
    command: str
    rest: str

    @property
    def namespace(self) -> str:
        """The network of nodes that it belongs to; "" for the one without a name."""
        return self.prefix[4:]


@lru_cache(maxsize=4096)
def topic_of(text: str) -> Topic | None:
    """The parts of a topic; None if it is none of Moleculer's."""
    found = _TOPIC.fullmatch(text)
    if found is None:
        return None
    prefix, _, separator, command, rest = found.groups()
    return Topic(prefix, separator, command, rest or "")


def prefix_of(namespace: str) -> str:
    """What the topics of a namespace begin with."""
    return f"MOL-{namespace}" if namespace else "MOL"


def listener_of(text: str) -> str:
    """The node that listens to this topic alone; "" if anybody may.

    Only a node itself subscribes to the answers to its requests.
    """
    topic = topic_of(text) if text.startswith("MOL") else None
    return topic.rest if topic is not None and topic.command == "RES" else ""


def node_topics(prefix: str, node: str, separator: str = ".") -> list[str]:
    """The twelve topics of a node, in the order in which nodes subscribe."""
    own = ("EVENT", "REQ", "RES", "DISCOVER!", "DISCOVER", "INFO!", "INFO", "DISCONNECT!", "HEARTBEAT!")
    return [
        separator.join([prefix, word[:-1]] if word.endswith("!") else [prefix, word, node])
        for word in (*own, "PING!", "PING", "PONG")
    ]
