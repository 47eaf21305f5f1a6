"""Packets of Moleculer in JSON, read by the letter of docs/protocols/moleculer.md, 2 and 4.

The topic says which packet it is, never the payload. A field that is not there is `UNSET`, one that is null
is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from conformance.decoders import Unreadable, json_value
from fakebrokers.moleculer.packets import (
    Disconnect,
    Discover,
    Event,
    Heartbeat,
    Info,
    Packet,
    Ping,
    Pong,
    Request,
    Response,
)

PREFIX = "MOL"
SEPARATORS = (".", "/")  #: of the parts of a topic; the second one where a user has set it so

_CONTEXT = ("level", "tracing", "parentID", "requestID", "caller")

#: The fields of each packet, by the word in its topic; `ver` and `sender` are in all of them.
FIELDS: Mapping[str, tuple[type[Packet], tuple[str, ...]]] = {
    "DISCOVER": (Discover, ()),
    "INFO": (
        Info,
        ("services", "ipList", "hostname", "client", "config", "instanceID", "metadata", "seq"),
    ),
    "DISCONNECT": (Disconnect, ()),
    "HEARTBEAT": (Heartbeat, ("cpu",)),
    "PING": (Ping, ("time", "id")),
    "PONG": (Pong, ("time", "id", "arrived")),
    "REQ": (
        Request,
        ("id", "action", "params", "meta", "headers", "timeout", *_CONTEXT, "stream", "seq"),
    ),
    "RES": (Response, ("id", "meta", "headers", "success", "data", "error", "stream", "seq")),
    "EVENT": (
        Event,
        ("id", "event", "data", "groups", "broadcast", "meta", "headers", *_CONTEXT, "needAck"),
    ),
}
#: Words of the topics that a bus without a balancer of its own is given, and whose packets go there.
BALANCED = {"REQB": "REQ", "EVENTB": "EVENT"}


class TopicParts(NamedTuple):
    """A topic, taken apart.

    Attributes:
        prefix: ``MOL``, or ``MOL-`` and the namespace.
        separator: What lies between its parts.
        command: A key of `FIELDS` or of `BALANCED`.
        rest: A node's id; what is asked for where the bus balances; "" for everybody.
    """

    prefix: str
    separator: str
    command: str
    rest: str


@lru_cache(maxsize=4096)
def topic_parts(topic: str) -> TopicParts | None:
    """The parts of a topic; None if it is none of Moleculer's."""
    for separator in SEPARATORS:
        first, *words = topic.split(separator)
        if first == PREFIX:
            namespaces = range(1)
        elif first.startswith(f"{PREFIX}-") and first != f"{PREFIX}-":
            namespaces = range(len(words))  # a namespace may hold the separator
        else:
            continue
        for at in namespaces:
            if at < len(words) and (words[at] in FIELDS or words[at] in BALANCED):
                prefix = separator.join([first, *words[:at]])
                return TopicParts(prefix, separator, words[at], separator.join(words[at + 1 :]))
    return None


def is_json(payload: bytes) -> bool:
    """Whether a payload is of the serializer that this module reads."""
    return payload[:1] in (b"{", b"n")


@lru_cache(maxsize=256)  # a message comes to several receivers
def read_packet(topic: str, payload: bytes) -> Packet | None:
    """The packet in a message; None if there is none that can be read."""
    parts = topic_parts(topic)
    if parts is None:
        return None
    try:
        values = json_value(payload)
    except Unreadable:
        return None
    if values is None:
        values = {}  # and so of another version
    if not isinstance(values, dict):
        return None
    kind, names = FIELDS[BALANCED.get(parts.command, parts.command)]
    known: dict[str, Any] = {name: values.pop(name) for name in (*names, "ver", "sender") if name in values}
    return kind(more=values, **known)
