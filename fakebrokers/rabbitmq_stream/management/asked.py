"""One request to the management API, and the answers that all of its parts give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec

from fakebrokers.control.values import read
from fakebrokers.core.patterns import Pattern, problem_of
from fakebrokers.core.tls import Tls
from fakebrokers.rabbitmq_stream.access import User
from fakebrokers.rabbitmq_stream.broker import StreamBroker
from fakebrokers.rabbitmq_stream.rows import Listed, Row
from fakebrokers.rabbitmq_stream.stream import Stream
from fakebrokers.rabbitmq_stream.superstreams import SuperStream

#: Status and what goes into the body (None: nothing); perhaps where the thing is that was made.
Answer = tuple[int, Any] | tuple[int, Any, str]
S = TypeVar("S", bound=msgspec.Struct)

CREATED: Answer = (201, None)
DONE: Answer = (204, None)


class Managed(Listed, Protocol):
    """A fake that is managed over HTTP, see `server.RabbitMQStream`."""

    @property
    def tls(self) -> Tls | None:
        """The certificates, if it listens for TLS."""

    def call(self, act: Handler, asked: Asked, /) -> Answer:
        """Answer on the fake's own thread, then write what it made the fake say."""


class Failure(Exception):
    """Ends a request with an error in RabbitMQ's shape."""

    def __init__(self, status: int, error: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.error = error
        self.reason = reason


def not_found() -> Failure:
    """There is nothing of that name."""
    return Failure(404, "Object Not Found", "Not Found")


def bad(path: str, problem: str) -> Failure:
    """The request makes no sense: where, and what was expected there."""
    return Failure(400, "bad_request", f"{path}: {problem}")


@dataclass(frozen=True)
class Asked:
    """A request of somebody who may make it.

    Attributes:
        server: The fake.
        at: Names in the path, decoded.
        query: After the path.
        user: Who asks.
        body: The JSON value that came.
        port: Of the API.
    """

    server: Managed
    at: Mapping[str, str]
    query: Mapping[str, str]
    user: User
    body: Any
    port: int

    @property
    def broker(self) -> StreamBroker:
        """The model behind the fake."""
        return self.server.broker

    @property
    def now(self) -> float:
        """Monotonic seconds."""
        return self.server.engine.now

    def read(self, kind: type[S]) -> S:
        """The body; what the API has no use for is passed over, as tools send a lot."""
        return read_object(self.body, kind, "body")

    def virtual_host(self) -> str:
        """The one in the path; `Failure` 404 if there is none."""
        name = self.at["vhost"]
        if name not in self.broker.access.virtual_hosts:
            raise not_found()
        return name

    def owned_virtual_host(self) -> str:
        """The one in the path that something is made in; `Failure` in the words that makers get."""
        name = self.at["vhost"]
        if name not in self.broker.access.virtual_hosts:
            raise Failure(404, "not_found", "vhost_not_found")
        if name not in self.user.permissions:
            raise Failure(401, "not_authorised", "User not authorised to access virtual host")
        return name

    def stream(self) -> Stream:
        """The stream in the path."""
        found = self.broker.streams.get((self.virtual_host(), self.at["name"]))
        if found is None:
            raise not_found()
        return found

    def exchange(self) -> SuperStream:
        """The super stream in the path."""
        found = self.broker.super_streams.get((self.virtual_host(), self.at["name"]))
        if found is None:
            raise not_found()
        return found


def read_object(value: Any, kind: type[S], where: str) -> S:
    """A struct from a JSON value; unknown fields are passed over, text stands for numbers and booleans.

    Raises:
        Failure, Refusal: 400 with the path, what was expected and what came.
    """
    if not isinstance(value, dict):
        raise bad(where, f"expected an object, got {type(value).__name__}")
    known = [field.encode_name for field in msgspec.structs.fields(kind)]
    return read({name: value[name] for name in known if name in value}, kind, where, strict=False)


def regular_expression(text: str, where: str) -> str:
    """The text, if it is a regular expression."""
    if wrong := problem_of(text):
        raise bad(where, wrong)
    return text


def one(rows: Iterable[Row]) -> Answer:
    """The only row; `Failure` 404 if there is none."""
    for row in rows:
        return 200, row
    raise not_found()


def listing(asked: Asked, rows: Iterable[Row]) -> Answer:
    """A list, or the page of it that the query asks for; with the columns that it asks for."""
    found = list(rows)
    if "vhost" in asked.at:
        asked.virtual_host()
        found = [row for row in found if virtual_host_of(row) == asked.at["vhost"]]
    if "page" not in asked.query:
        return 200, _columns(asked, found)
    page, size = _number(asked, "page", 1), _number(asked, "page_size", 100)
    total = len(found)
    name = asked.query.get("name", "")
    if asked.query.get("use_regex") == "true":  # either way the server takes no notice of case
        fits = Pattern("(?i)" + regular_expression(name, "query.name")).found_in
        found = [row for row in found if fits(row.get("name", ""))]
    else:
        found = [row for row in found if name.lower() in row.get("name", "").lower()]
    pages = max(1, -(-len(found) // size))
    if page > pages:
        reason = f"Page out of range, page: {page} page size: {size}, len: {len(found)}"
        raise Failure(400, "page_out_of_range", reason)
    items = _columns(asked, found[(page - 1) * size : page * size])
    return 200, {
        "filtered_count": len(found),
        "item_count": len(items),
        "items": items,
        "page": page,
        "page_count": pages,
        "page_size": size,
        "total_count": total,
    }


def _number(asked: Asked, name: str, default: int) -> int:
    text = asked.query.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:9]) <= 100_000_000):
        raise bad(f"query.{name}", f"expected a number from 1, got {text[:100]!r}")
    return int(text[:9])


def _columns(asked: Asked, rows: list[Row]) -> list[Row]:
    wanted = [column for column in asked.query.get("columns", "").split(",") if column]
    if not wanted:
        return rows
    return [{name: row[name] for name in wanted if name in row} for row in rows]


def virtual_host_of(row: Row) -> Any:
    """The virtual host that a row belongs to."""
    return row["vhost"] if "vhost" in row else row.get("queue", {}).get("vhost")


Handler = Callable[[Asked], Answer]


@dataclass(frozen=True)
class Route:
    """A path with a method.

    Attributes:
        path: Below ``/api``; names of places in braces.
        administrator: Only users with that tag may.
    """

    method: str
    path: str
    act: Handler
    administrator: bool = False
