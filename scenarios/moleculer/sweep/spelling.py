"""What a server and other nodes may also write (docs/protocols/moleculer.md, 4 and 6.1)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

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
    if isinstance(packet, dict):
        for name, write in JSON.items():
            payload = write(packet).encode()
            found[name] = b" ".join([*words[:-1], b"%d" % len(payload)]) + CRLF + payload + CRLF
    return found


def _spaced(line: bytes, space: bytes) -> bytes:
    """The words of a line with other spaces; what is text or JSON behind the first word stays."""
    if line[:4] == b"MSG ":
        return space.join(line.split())
    return line.replace(b" ", space, 1)


JSON: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "wide": lambda packet: json.dumps(packet, indent=2),
    "escaped": lambda packet: json.dumps(packet).replace("o", "\\u006f"),  # no word of JSON has an o
    "reversed": lambda packet: json.dumps(dict(reversed(packet.items())), ensure_ascii=False),
    "more members": lambda packet: json.dumps({"$new": [1, None], **packet, "later": {"a": True}}),
}
