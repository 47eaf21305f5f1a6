"""What a server and other nodes may also write (docs/protocols/moleculer.md, 4 and 6.1)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from fakebrokers.moleculer.packets import BY_COMMAND, PACKETS
from fakebrokers.moleculer.topics import topic_of

CRLF = b"\r\n"


def spellings(data: bytes) -> Mapping[str, bytes]:
    """Other ways to write a unit of the server, by name."""
    line, _, rest = data.partition(CRLF)
    found = {
        "lower case": line.split(b" ")[0].lower() + line[len(line.split(b" ")[0]) :] + CRLF + rest,
        "tabs": _spaced(line, b"\t") + CRLF + rest,
        "spaces": _spaced(line, b"   ") + CRLF + rest,
    }
    words = line.split()
    if words[:1] != [b"MSG"]:
        return found
    try:
        packet = json.loads(rest[: int(words[-1])])
    except ValueError:
        return found
    for name, unit in SILENT.items():
        found[f"behind {name}"], found[f"before {name}"] = unit + data, data + unit
    if isinstance(packet, dict):
        packet_of_others = {**_members_of_others(words[1].decode()), **packet}
        found["members of others"] = _message(words, json.dumps(packet_of_others))
        for name, write in JSON.items():
            found[name] = _message(words, write(packet))
    return found


def _silent(topic: str, payload: bytes) -> bytes:
    return b"MSG %s 1 %d\r\n%s\r\n" % (topic.encode(), len(payload), payload)


#: What says nothing to a node, which lives on.
SILENT: Mapping[str, bytes] = {
    "an empty message": _silent("MOL.INFO.client", b""),
    "no JSON": _silent("MOL.RES.client", b"{oops"),
    "no object": _silent("MOL.REQ.client", b"[1,2]"),
    "a foreign topic": _silent("weather.today", b"{}"),
    "an unknown command": _silent("MOL.NOPE.client", b'{"ver":"5","sender":"peer"}'),
    "a word of the server": b"+OK\r\n",
}


def _message(words: list[bytes], text: str) -> bytes:
    payload = text.encode()
    return b" ".join([*words[:-1], b"%d" % len(payload)]) + CRLF + payload + CRLF


def _members_of_others(topic: str) -> dict[str, Any]:
    """Members that packets of other kinds have, and this one has not."""
    parts = topic_of(topic)
    if parts is None:
        return {}
    own = BY_COMMAND[parts.command].__struct_fields__
    return {
        name: "s.echo" for kind in PACKETS for name in kind.__struct_fields__ if name not in (*own, "more")
    }


def _spaced(line: bytes, space: bytes) -> bytes:
    """The words of a line with other spaces; what is text or JSON after the first word stays."""
    if line[:4] == b"MSG ":
        return space.join(line.split())
    return line.replace(b" ", space, 1)


#: Unknown members.
ODD: Mapping[str, Any] = {
    "": 0,
    " ": None,
    "a.b": {"c": [1]},
    "__proto__": {"x": 1},
    "constructor": 1,
    "é": "é",
}

JSON: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "wide": lambda packet: json.dumps(packet, indent=2),
    "escaped": lambda packet: json.dumps(packet).replace("o", "\\u006f"),  # no word of JSON has an o
    "reversed": lambda packet: json.dumps(dict(reversed(packet.items())), ensure_ascii=False),
    "more members": lambda packet: json.dumps({"$new": [1, None], **packet, **ODD}),
}
