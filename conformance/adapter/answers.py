"""What has to be in an answer. Whoever says ``ok`` and means something else breaks the adapter protocol."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from conformance.adapter.messages import Error, Event, Message, Response

_DIGITS = re.compile(r"-?[0-9]{1,20}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class _Bytes(msgspec.Struct):
    b64: str


Key = int | str | _Bytes | None


class _Sent(msgspec.Struct):
    outcome: Literal["sent", "acked"]
    key: Key = None
    meta: dict[str, Any] | None = None


class _Acked(msgspec.Struct):
    outcome: Literal["acked"]
    key: Key = None
    meta: dict[str, Any] | None = None


class _Row(msgspec.Struct):
    outcome: Literal["acked", "nacked", "unknown"]
    key: Key = None
    code: int | str | None = None


class _SentRow(msgspec.Struct):
    outcome: Literal["acked", "nacked", "unknown", "sent"]
    key: Key = None
    code: int | str | None = None


class _Rows(msgspec.Struct):
    outcomes: list[_Row]


class _SentRows(msgspec.Struct):
    outcomes: list[_SentRow]


class _Echo(msgspec.Struct):
    body: Any


class _State(msgspec.Struct):
    open: bool
    pending: int | None = None


class _Messages(msgspec.Struct):
    messages: list[Message]


class _Taken(msgspec.Struct):
    message: Message | None


class _Armed(msgspec.Struct):
    armed: bool


class _Offset(msgspec.Struct):
    offset: int | str


class _Sequence(msgspec.Struct):
    sequence: int | str


class _Stream(msgspec.Struct):
    name: str
    exists: bool | None = None
    code: int | None = None
    leader: str | None = None
    replicas: list[str] | None = None


class _Streams(msgspec.Struct):
    streams: list[_Stream]


class _Values(msgspec.Struct):
    values: dict[str, Any]


class _Outcome(msgspec.Struct):
    id: int | None
    outcome: Literal["acked", "nacked", "unknown"]
    key: Key = None
    code: int | str | None = None


class _Session(msgspec.Struct):
    session: str
    what: str
    text: str | None = None


class _Problem(msgspec.Struct):
    error: Error


#: The shape of the result, by op; an op that is not here answers with any object, or with nothing.
RESULTS: Mapping[str, Any] = {
    "echo": _Echo,
    "state": _State,
    "next": _Messages,
    "raise_next": _Armed,
    "stats": dict[str, float | None],
    "rmqs.query_offset": _Offset,
    "rmqs.query_sequence": _Sequence,
    "rmqs.metadata": _Streams,
    "pzq.monitor": _Values,
    "narc.post": _Acked,
    "narc.take": _Taken,
}
EVENTS: Mapping[str, Any] = {"outcome": _Outcome, "session": _Session, "error": _Problem}


def contradiction(op: str, args: Mapping[str, Any], answer: Response, protocol: str) -> str:
    """What is wrong with an answer, one sentence; empty if nothing is."""
    if not answer.ok:
        return "" if answer.error is not None else f"{op} is not ok, and there is no error"
    if answer.error is not None:
        return f"{op} is ok, and there is an error ({answer.error.kind})"
    wanted = _shape(op, args)
    try:
        found = msgspec.convert({} if answer.result is None else answer.result, wanted)
    except msgspec.ValidationError as error:
        return f"{op} is ok, and its result is not what that means: {error}: {_short(answer.result)}"
    return _wrong_inside(op, args, found, protocol)


def _shape(op: str, args: Mapping[str, Any]) -> Any:
    waits = args.get("wait", True)
    if op == "publish":
        return _Acked if waits else _Sent
    if op == "publish_many":
        return _Rows if waits else _SentRows
    return RESULTS.get(op, dict[str, Any])


def _wrong_inside(op: str, args: Mapping[str, Any], found: Any, protocol: str) -> str:
    """What types alone do not tell."""
    if op == "publish_many" and len(found.outcomes) != len(args.get("messages", ())):
        return f"{op} gave {len(found.outcomes)} outcomes for {len(args.get('messages', ()))} messages"
    if op in ("rmqs.query_offset", "rmqs.query_sequence"):
        value = found.offset if op == "rmqs.query_offset" else found.sequence
        return "" if is_integer(value) else f"{op} gave {_short(value)}, which is no integer"
    if op == "next":
        return next(filter(None, (message_problem(each, protocol) for each in found.messages)), "")
    if op == "narc.take" and found.message is not None:
        return message_problem(found.message, protocol)
    return ""


def event_problem(event: Event, protocol: str) -> str:
    """What is wrong with an event, one sentence; empty if nothing is."""
    try:
        if event.event == "message":
            return message_problem(event.message, protocol)
        if event.event in EVENTS:
            msgspec.convert(event.fields, EVENTS[event.event])
    except msgspec.ValidationError as error:
        return f"the event {event.event!r} is none: {error}: {_short(event.fields)}"
    return ""


def message_problem(message: Message, protocol: str) -> str:
    """What is wrong with a message, one sentence; empty if nothing is."""
    parts = message.body if isinstance(message.body, list) else [message.body]
    for part in parts:
        if not _is_report(part):
            return f"message {message.ref!r} has a body that is none: {_short(part)}"
    if protocol == "rabbitmq-stream" and not (message.position is None or is_integer(message.position)):
        return f"message {message.ref!r} has the offset {_short(message.position)}, which is no integer"
    return ""


def is_integer(value: object) -> bool:
    """Whether it is an integer of 64 bits as the lines carry it: a number, or digits."""
    if isinstance(value, str):
        return bool(_DIGITS.fullmatch(value))
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 64


def _is_report(body: object) -> bool:
    if not isinstance(body, Mapping):
        return False
    checks: Mapping[str, Callable[[Any], object]] = {
        "b64": _is_base64,
        "text": lambda text: isinstance(text, str),
        "sha256": lambda digest: isinstance(digest, str) and _SHA256.fullmatch(digest),
    }
    return any(name in body and bool(fits(body[name])) for name, fits in checks.items())


def _is_base64(text: object) -> bool:
    try:
        return isinstance(text, str) and base64.b64decode(text) is not None
    except (binascii.Error, ValueError):
        return False


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
