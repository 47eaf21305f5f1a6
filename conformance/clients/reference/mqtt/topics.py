"""Which topics and filters there are, and which fit (4.7)."""

from __future__ import annotations

LONGEST = 0xFFFF


def is_name(topic: str) -> bool:
    """Whether a message can go there."""
    return is_text(topic) and "+" not in topic and "#" not in topic


def is_filter(name: str) -> bool:
    """Whether one can subscribe to that: a wildcard is a whole level, ``#`` the last one."""
    *front, last = name.split("/")
    alone = all(level == "+" or not {"+", "#"} & set(level) for level in front)
    return is_text(name) and alone and (last in ("+", "#") or not {"+", "#"} & set(last))


def is_text(name: str) -> bool:
    """Whether it can be written as a string of MQTT."""
    try:
        return 0 < len(name.encode()) <= LONGEST and "\0" not in name
    except UnicodeEncodeError:
        return False


def fits(name: str, topic: str) -> bool:
    """Whether a message to a topic is for a filter."""
    wanted, levels = name.split("/"), topic.split("/")
    if wanted[0] == "$share":
        wanted = wanted[2:]
    if topic.startswith("$") and wanted[0] in ("+", "#"):
        return False
    for place, level in enumerate(wanted):
        if level == "#":
            return True
        if place >= len(levels) or level not in ("+", levels[place]):
            return False
    return len(wanted) == len(levels)
