"""What frames contain, over any transporter."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from fakebrokers.core.frames import Frame
from fakebrokers.moleculer.mqtt import frames as mqtt
from fakebrokers.moleculer.nats.frames import Msg, Pub
from fakebrokers.moleculer.packets import Info, Response
from fakebrokers.moleculer.redis import frames as redis

OLD = ("3", "4")  #: versions without headers: what they hold is in meta
OBJECTS = "$streamObjectMode"  #: says that the pieces of a stream are objects
STREAM_ERROR = "$streamError"  #: says why a stream breaks off


def gives_stream(args: Mapping[str, Any]) -> bool:
    """Whether the application gives a stream with a call."""
    return "stream" in args or "objects" in args


def has_params(args: Mapping[str, Any], frame: Any) -> bool:
    """Whether a request has the parameters of a call: without any they are left out, null or an empty object
    (docs/protocols/moleculer.md, 4.5).
    """
    given = args.get("params")
    return bool(frame.params in (UNSET, None, {}) if given is None else frame.params == given)


def is_first(packet: Any) -> bool:
    """Whether a packet is whole, or opens a stream: nodes read a `seq` that is null like one that is missing
    (docs/protocols/moleculer.md, 4.9).
    """
    return getattr(packet, "seq", None) in (UNSET, None, 0)


def topic_in(frame: Frame) -> str:
    """Where a message of any transporter goes, or comes from; "" for what is none."""
    if isinstance(frame, Pub | Msg):
        return frame.subject
    if isinstance(frame, redis.Publish | redis.Message):
        return frame.channel
    return frame.topic if isinstance(frame, mqtt.Publish) else ""


def announced_by(info: Info) -> Any:
    """What an INFO offers: the names of its actions, and the patterns of its events.

    ``$node`` and the like are the library's own.
    """
    listed = info.services if isinstance(info.services, list) else []
    services = [one for one in listed if not str(one.get("name")).startswith("$")]
    actions = {name for one in services for name in one.get("actions") or ()}
    return frozenset(actions), frozenset(pattern for one in services for pattern in one.get("events") or ())


def bytes_of(payload: Any) -> bytes:
    """A piece of a stream: a Buffer, raw where a schema has bytes, or an object."""
    if isinstance(payload, bytes):
        return payload
    if (
        isinstance(payload, Mapping)
        and payload.get("type") == "Buffer"
        and isinstance(payload.get("data"), list)
    ):
        try:
            return bytes(payload["data"])
        except (TypeError, ValueError):
            return b""
    return json.dumps(None if payload is UNSET else payload, default=repr).encode()


def broken_by(frame: Any) -> Any:
    """The error with which the last packet of a stream says that it breaks off; None for a proper end."""
    error = getattr(frame, "error", UNSET)
    marks = frame.meta if frame.ver in OLD else frame.headers
    reported = marks.get(STREAM_ERROR) if isinstance(marks, Mapping) else None
    return reported or (error if error is not UNSET else None)


def code_of(answer: Response) -> Any:
    """The code of a refusal; None where it has none."""
    return code_in(answer.error)


def code_in(error: Any) -> Any:
    """The code of an error object."""
    code = error.get("code") if isinstance(error, Mapping) else None
    return code if isinstance(code, int | str) and not isinstance(code, bool) else None


def words_in(error: Any) -> str:
    """The message of an error object; "" where it has none."""
    words = error.get("message") if isinstance(error, Mapping) else None
    return words if isinstance(words, str) else ""
