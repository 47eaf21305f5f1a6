"""What every request of a client has to have (RFC 9110, 7.2 and 8.6; RFC 6455, 4.1), and every answer."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error

from conformance.run.facts import Should
from conformance.run.showing import shown
from fakebrokers.narconi import frames as f

KEY_BYTES = 16
SUB_PROTOCOLS = ("publish", "consume")
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
TORN = re.compile(r"[\x00\r\n]")  #: what no value of a header may have (RFC 9110, 5.5)
CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def is_by_the_letter(answer: f.HttpResponse) -> bool:
    """Whether every client has to make the same of an answer's head, and of where its body ends.

    RFC 9110, 5.1, 5.5 and 15, and RFC 9112, 6.3. Anything else may be read, or be an error.
    """
    named: dict[str, set[str]] = {}
    for name, value in answer.headers:
        if not TOKEN.fullmatch(name) or CONTROL.search(value):
            return False
        named.setdefault(name.lower(), set()).add(value)
    lengths, codings = named.get("content-length", set()), named.get("transfer-encoding", set())
    if len(lengths) + len(codings) > 1 or any(coding.lower() != "chunked" for coding in codings):
        return False
    return 100 <= answer.status <= 999 and not CONTROL.search(answer.reason)


def problem(request: f.HttpRequest, keys: set[str]) -> str:
    """What is wrong with a request; "" if nothing is.

    Args:
        keys: Those of all upgrades so far; that of this one is added.
    """
    named: dict[str, list[str]] = {}
    for name, value in request.headers:
        named.setdefault(name.lower(), []).append(value)
        if TORN.search(value):
            return f"a request whose header {shown(name)} is {shown(value)}"
    if request.minor and len(named.get("host", ())) != 1:
        return f"a request with {len(named.get('host', ()))} Host headers"
    if len(named.get("content-length", ())) > 1 or (
        "content-length" in named and "transfer-encoding" in named
    ):
        return "a request with two lengths (Content-Length, Transfer-Encoding)"
    if not isinstance(request, f.WsUpgrade):
        sized = (
            request.method not in ("POST", "PUT") or {"content-length", "transfer-encoding"} & named.keys()
        )
        return "" if sized else Should(f"a {request.method} that does not say how long its body is")
    if named.get("sec-websocket-version") != ["13"]:
        return f"an upgrade with the version {shown(named.get('sec-websocket-version'))}"
    offered = named.get("sec-websocket-protocol", [])
    # one, and no list of them: docs/protocols/narconi.md, "WebSocket"
    if len(offered) != 1 or offered[0] not in SUB_PROTOCOLS:
        return f"an upgrade with the sub-protocols {shown(offered)}"
    key = named.get("sec-websocket-key", [""])[0]
    try:
        size = len(b64decode(key, validate=True))
    except (Error, ValueError):
        size = 0
    if size != KEY_BYTES:
        return f"an upgrade with the key {shown(key)}"
    if key in keys:
        return "an upgrade with the key of an earlier one"
    keys.add(key)
    return ""
