"""The lines between runner and adapter as values: requests, responses, events and what is inside them.

``schema.json`` beside this file says the same for other languages; ``ADAPTER.md`` says it in words.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal, cast

import msgspec

from conformance.clients.adapter.kit.bodies import INLINE_BYTES_MAX, body_bytes, report_body

PROTOCOL_VERSION = 1
LINE_BYTES_MAX = 8 << 20
DEPTH_MAX = 100  #: objects and lists in one another; no message of a client needs a tenth of it

#: Capabilities that a client has unless it says `false`.
TAKEN_FOR_GRANTED = frozenset({"concurrent", "late_services"})
#: What a library may connect again by itself: what asks and declares, what publishes, what consumes.
Part = Literal["locator", "producer", "consumer"]
Outcome = Literal["acked", "nacked", "unknown"]

#: An escaped half of a surrogate pair without its other half.
_LONE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


class Kind(StrEnum):
    """Why an op did not work out."""

    INVALID = "invalid"  #: rejected locally, nothing was sent
    UNSUPPORTED = "unsupported"  #: adapter or library has no such feature
    REFUSED = "refused"  #: the peer said no; code and text are those of the wire
    AUTH = "auth"  #: authentication or authorisation failed
    CLOSED = "closed"  #: session, queue or subscription is closed
    CONNECTION = "connection"  #: not connected, or lost
    TIMEOUT = "timeout"  #: the library's own deadline passed
    PROTOCOL = "protocol"  #: the library saw a malformed or unexpected answer
    CANCELLED = "cancelled"  #: by the runner
    INTERNAL = "internal"  #: anything else


#: The error codes of Maelstrom, for histories: (definite, indefinite).
MAELSTROM: Mapping[Kind, tuple[int, int]] = {
    Kind.TIMEOUT: (0, 0),
    Kind.UNSUPPORTED: (10, 10),
    Kind.CONNECTION: (11, 1002),
    Kind.INVALID: (12, 12),
    Kind.INTERNAL: (13, 13),
    Kind.REFUSED: (14, 14),
    Kind.AUTH: (1000, 1000),
    Kind.CLOSED: (1001, 1001),
    Kind.PROTOCOL: (1003, 1003),
    Kind.CANCELLED: (1004, 1004),
}


class Error(msgspec.Struct, frozen=True):
    """The ``error`` of a response.

    Attributes:
        definite: The op did not and will not take effect.
        code: The number or word on the wire, if there was one.
        type: Name of a remote error, where the protocol has such names.
    """

    kind: Kind
    definite: bool
    code: int | str | None = None
    text: str = ""
    type: str | None = None

    @property
    def maelstrom_code(self) -> int:
        """The code that Maelstrom's histories use for it."""
        definite, indefinite = MAELSTROM[self.kind]
        return definite if self.definite else indefinite


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """One op; `timeout_ms` goes to the library's own time-out where it has one."""

    id: int
    op: str
    args: dict[str, Any] = {}
    timeout_ms: float | None = None


class Response(msgspec.Struct, frozen=True):
    """The answer to one request. `n` counts the adapter's lines, `t` is its clock in milliseconds."""

    n: int
    t: float
    id: int
    ok: bool
    result: Any = None
    error: Error | None = None


class Message(msgspec.Struct, frozen=True):
    """A message that the application got.

    Attributes:
        ref: The adapter's name for it, valid for the session generation in which it came.
        body: A reported body; a list of them where the protocol has multi-part bodies.
        redelivered: None if the protocol has no such flag.
        ts: Milliseconds since the epoch as the wire gives them, or None.
        position: Offset, GUID, ack id or message id.
        key: Id that the publisher gave, where the wire carries one.
    """

    ref: str
    sub: str
    target: str
    body: Annotated[Any, msgspec.Meta(extra_json_schema={"$ref": "#/$defs/reports"})]
    headers: dict[str, Any] = {}
    redelivered: bool | None = None
    ts: int | float | str | None = None
    position: Annotated[Any, msgspec.Meta(extra_json_schema={"$ref": "#/$defs/key"})] = None
    key: Annotated[Any, msgspec.Meta(extra_json_schema={"$ref": "#/$defs/key"})] = None
    meta: dict[str, Any] = {}


class Event(msgspec.Struct, frozen=True):
    """Something that nobody asked for; `fields` are the other members of the line."""

    n: int
    t: float
    event: str
    fields: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.fields.get(name)

    @property
    def message(self) -> Message:
        """The message of a ``message`` event. Raises `msgspec.ValidationError` if it is none."""
        return msgspec.convert(self.fields, Message)

    @property
    def error(self) -> Error:
        """The error of an ``error`` event. Raises `msgspec.ValidationError` if it has none."""
        return msgspec.convert(self.fields.get("error"), Error)


class BadLine(msgspec.Struct, frozen=True):
    """A line that breaks the protocol: its first bytes and what is wrong with it."""

    text: str
    problem: str


class Hello(msgspec.Struct, frozen=True):
    """What an adapter says about itself; see ADAPTER.md, Start-up and capabilities."""

    adapter: str
    library: str
    library_version: str
    language: str
    protocols: list[str]
    roles: list[str]
    ops: list[str]
    version: int = 1
    adapter_version: str = ""
    runtime: str = ""
    caps: dict[str, bool | list[Part]] = {}
    limits: dict[str, float] = {}
    settles: Literal["auto", "manual", "none"] = "none"
    restart: Literal["never", "per_scenario"] = "never"
    formats: list[str] = []
    transporters: list[str] = []
    serializers: list[str] = []
    contract: dict[str, bool] = {}

    def __post_init__(self) -> None:
        for name, value in self.caps.items():
            if isinstance(value, list) and name != "auto_reconnect":
                raise ValueError(f"caps.{name}: expected true or false, got {value}")
        for name, limit in self.limits.items():
            least = 1 if name == "timeout_factor" else 0
            if limit < least:
                raise ValueError(f"limits.{name}: expected at least {least}, got {limit}")

    def can(self, need: str) -> bool:
        """Whether a capability is declared, and not only for a part of the library.

        ``auto_reconnect.consumer`` asks for the part alone. Some are taken for granted unless denied.
        """
        name, _, part = need.partition(".")
        if name == "auto_reconnect" and part:
            return self.reconnects(cast(Part, part))
        return self.caps.get(need, need in TAKEN_FOR_GRANTED) is True

    def takes(self, op: str, argument: str) -> bool:
        """Whether the library has an optional argument of an op, or an option of ``connect``."""
        return self.caps.get(f"{op}.{argument}") is not False

    def reconnects(self, part: Part) -> bool:
        """Whether the library connects this part of itself again: all of them, or those it names."""
        declared = self.caps.get("auto_reconnect", False)
        return part in declared if isinstance(declared, list) else declared


def decode(line: bytes | Mapping[str, Any]) -> Response | Event | BadLine:
    """One line of the adapter; never raises."""
    try:
        data = msgspec.json.decode(line, type=dict[str, Any]) if isinstance(line, bytes) else dict(line)
        if isinstance(line, bytes) and _is_deep(line, data):
            return BadLine(_shown(line), f"nested deeper than {DEPTH_MAX} levels")
        if "event" not in data:
            return msgspec.convert(data, Response)
        head = {name: data.pop(name, None) for name in ("n", "t", "event")}
        return msgspec.convert({**head, "fields": data}, Event)
    except UnicodeDecodeError as error:
        return BadLine(_shown(line), f"no UTF-8 at byte {error.start} of a string")
    except RecursionError:
        return BadLine(_shown(line), f"nested deeper than {DEPTH_MAX} levels")
    except msgspec.MsgspecError as error:
        lone = isinstance(line, bytes) and _LONE.search(line)
        return BadLine(_shown(line), f"half of a surrogate pair: {lone[0].decode()}" if lone else str(error))


def _shown(line: object) -> str:
    return line[:256].decode(errors="replace") if isinstance(line, bytes) else repr(line)[:256]


def _is_deep(line: bytes, data: Any) -> bool:
    """Whether anything lies deeper than it ever has to."""
    if line.count(b"[") + line.count(b"{") <= DEPTH_MAX:
        return False
    level: list[Any] = [data]
    for _ in range(DEPTH_MAX):
        inner = [value.values() if isinstance(value, dict) else value for value in level]
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
        if not level:
            return False
    return True


def encode(request: Request) -> bytes:
    """One line for the adapter, with its line feed."""
    return msgspec.json.encode(request) + b"\n"


def request_body(data: bytes) -> dict[str, Any]:
    """A body for a request: text where that is possible, else base64."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(data).decode()}


def same_body(reported: Mapping[str, Any] | Sequence[Mapping[str, Any]], expected: bytes) -> bool:
    """Whether a reported body, or the only part of one, is exactly these bytes."""
    if not isinstance(reported, Mapping):
        return len(reported) == 1 and same_body(reported[0], expected)
    if "sha256" in reported:
        digest = hashlib.sha256(expected).hexdigest()
        return reported.get("len") == len(expected) and reported["sha256"] == digest
    return body_bytes(reported) == expected


__all__ = [
    "INLINE_BYTES_MAX",
    "LINE_BYTES_MAX",
    "PROTOCOL_VERSION",
    "BadLine",
    "Error",
    "Event",
    "Hello",
    "Kind",
    "Message",
    "Outcome",
    "Request",
    "Response",
    "body_bytes",
    "decode",
    "encode",
    "report_body",
    "request_body",
    "same_body",
]
