"""Requests that nobody should send: hostile JSON, paths, methods and headers, from one seed."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from fakebrokers.control.values import Body
from tests.eventually import PATIENCE_S

DEEP = b"[" * 100_000
DEEP_OBJECT = b'{"a":' * 100_000
METHODS = ("GET", "PUT", "DELETE", "POST", "PATCH", "OPTIONS", "HEAD", "TRACE")
#: Values that are out of range or place nearly everywhere.
WEIRD: tuple[Any, ...] = (
    0,
    -1,
    1,
    1e308,
    -1e308,
    0.5,
    2**31,
    2**63,
    2**64,
    2**70,
    -(2**70),
    None,
    True,
    [],
    {},
    "",
    "x",
    "\0",
    "../../etc/passwd",
    "%2e%2e",
    "<script>",
    [1],
    [[1, 2]],
    {"a": 1},
    {"base64": "AP8="},
    {"base64": "!"},
    "99999999999999999999",
    "-5",
    "1h",
    "é\u20ac\U0001f600",
    "x" * 5000,
    "(",
    "127.0.0.1:0",
    "127.0.0.1:99999",
    "0.0.0.0:-1",
    "[::1]:0",
    ":70000",
    "c1",
    "orders",
    ["orders", "x"],
    {"a": "b"},
    1000,
    12,
    False,
    "fake-1",
    "bmq://bmq.test.mem.priority/orders",
)
NAMES = ("a", "orders", "%2F", "..%2f..%2fetc", "%00", "%ff", "é", "x" * 3000, "a b", "<b>", '"', "")


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    body: bytes = b""


class Told(NamedTuple):
    """An answer, with the request."""

    asked: Asked
    status: int
    body: bytes


def value(random: Random, names: Iterable[str] = ("a", ""), depth: int = 0) -> Any:
    """A value of any kind; tables have some of these names."""
    draw = random.random()
    if depth < 3 and draw < 0.15:
        return {random.choice([*names]): value(random, names, depth + 1) for _ in range(random.randrange(4))}
    if depth < 3 and draw < 0.25:
        return [value(random, names, depth + 1) for _ in range(random.randrange(4))]
    return random.choice(WEIRD)


def fitting(random: Random, kind: Any, names: Iterable[str] = ("a", "")) -> Any:
    """A value that the type allows, so that what lies behind it is reached; any value if none is found."""
    for _ in range(40):
        found = value(random, names)
        try:
            msgspec.convert(found, kind, dec_hook=lambda _, given: Body(str(given).encode()))
        except msgspec.ValidationError:
            continue
        return found
    return found


def fields(random: Random, kind: type[msgspec.Struct], share: float) -> dict[str, Any]:
    """Fields of a struct, most of them of their types; the needed ones, and of the others this share."""
    there = msgspec.structs.fields(kind)
    names = [each.name for each in there]
    return {
        each.name: fitting(random, each.type, names) if random.random() < 0.9 else value(random, names)
        for each in there
        if random.random() < (0.97 if each.required else share)
    }


def name(random: Random) -> str:
    """A part of a path."""
    return quote(random.choice(NAMES), safe="%")


def broken(random: Random) -> bytes:
    """What is no JSON, or too much of it."""
    return random.choice((DEEP, DEEP_OBJECT, b"{", b"\xff", b"", b"null", b'"\\ud800"', b"[1e999]", b"nan"))


def body(given: Any) -> bytes:
    """JSON, whatever stands in it."""
    return json.dumps(given).encode()


def ask(
    port: int, make: Callable[[Random], Asked], seed: int, count: int, headers: dict[str, str] | None = None
) -> list[Told]:
    """Send so many requests on as few connections as the server allows."""
    random = Random(seed)
    told = []
    connection: http.client.HTTPConnection | None = None
    for _ in range(count):
        asked = make(random)
        connection = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        try:
            connection.request(asked.method, asked.path, asked.body, headers or {})
            answer = connection.getresponse()
            told.append(Told(asked, answer.status, answer.read()))
            close = answer.will_close
        except http.client.HTTPException as problem:
            raise AssertionError(f"no HTTP in answer to {asked.method} {asked.path[:100]}") from problem
        except ValueError:  # http.client itself refuses the path
            close = True
        if close:
            connection.close()
            connection = None
    if connection is not None:
        connection.close()
    return told


def defects(told: Iterable[Told]) -> list[str]:
    """The answers that speak of a defect, once for each path and method."""
    found = {
        (
            each.asked.method,
            each.asked.path[:60],
        ): f"{each.status} {each.asked.method} {each.asked.path[:120]} "
        f"{each.asked.body[:200]!r}: {each.body[:300]!r}"
        for each in told
        if each.status >= 500
    }
    return list(found.values())
