"""What WebSocket messages carry: JSON and payloads (docs/protocols/narconi.md, "publish" and "consume")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from math import ceil
from typing import Any

import msgspec

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.narconi import frames as f
from fakebrokers.narconi.encodings import encode_payload
from fakebrokers.narconi.profile import Profile
from fakebrokers.narconi.websocket import BINARY, CLOSE, PING, PONG, TEXT, encode_frame

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_SHOWN = 256  # bytes of a malformed message that are kept
#: Levels of lists and objects in a JSON message. The server has no such limit; Python's stack has,
#: and where it ends depends on who calls.
DEPTH_LIMIT = 100


# in


def read_metadata(
    data: bytes, profile: Profile, limit: int
) -> tuple[dict[str, Any], bytes | None] | Malformed:
    """The metadata of a message to publish, and its payload if ``message`` holds one.

    Args:
        data: A message; UTF-8.
        profile: Which server.
        limit: Bytes of a payload.
    """
    if profile.empty_metadata and not data:
        return {}, None
    try:
        value = _decode(data)
    except (msgspec.DecodeError, RecursionError):
        return Malformed(data[:_SHOWN], "expected JSON or a binary message", "not-json")
    if isinstance(value, dict):
        return _from_object(value, data, profile, limit)
    problem = f"expected a JSON object, got {type(value).__name__}"
    if profile.strict_metadata:
        return Malformed(data[:_SHOWN], problem, "not-json")
    if isinstance(value, list):
        return {}, None
    return Malformed(data[:_SHOWN], problem, "ignored" if value is None else "stuck")


def _from_object(
    value: dict[str, Any], data: bytes, profile: Profile, limit: int
) -> tuple[dict[str, Any], bytes | None] | Malformed:
    brackets = data.count(b"[") + data.count(b"{")  # there are no more levels than these
    if brackets > DEPTH_LIMIT and _depth(value) > DEPTH_LIMIT:
        problem = f"expected at most {DEPTH_LIMIT} levels of lists and objects, got more"
        return Malformed(data[:_SHOWN], problem, "not-json")
    metadata = {key: _as_js(item) for key, item in value.items() if key != "message"}
    if "message" not in value:
        return metadata, None
    message = value["message"]
    if isinstance(message, str) and (message or not profile.crashes):
        return metadata, message.encode()
    problem = f"expected text as message, got {message!r:.40}"
    if profile.strict_metadata:
        return Malformed(data[:_SHOWN], problem, "not-json")
    payload = _as_buffer(message, limit)
    if payload is None:
        return Malformed(data[:_SHOWN], problem, "crash")
    return metadata, payload


def _as_buffer(value: Any, limit: int) -> bytes | None:
    """What node makes of a ``message`` that is no text; None where it dies.

    A number is a size: node hands out memory as it is, the fake hands out zeros.
    """
    if not value and not isinstance(value, list | dict):
        return None
    if isinstance(value, bool) or (isinstance(value, int | float) and not 0 < value <= limit):
        return None
    if isinstance(value, int | float):
        return bytes(ceil(value))
    if isinstance(value, list):
        return bytes([int(item) & 0xFF if isinstance(item, int | float) else 0 for item in value])
    return b""


def _depth(value: Any) -> int:
    """How deep lists and objects stand in each other; 0 for anything else."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        inner = (item.values() if isinstance(item, dict) else item for item in level)
        level = list(chain.from_iterable(inner))
    return depth


def _as_js(value: Any) -> Any:
    """A value with numbers as JavaScript prints them: 5.0 is 5."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    if isinstance(value, dict):
        return {key: _as_js(item) for key, item in value.items()}
    return [_as_js(item) for item in value] if isinstance(value, list) else value


def js_text(value: Any) -> str:
    """A value as JavaScript turns it into text, for a header."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "[object Object]"
    if isinstance(value, list):
        return ",".join(["" if item is None else js_text(item) for item in value])
    return _encode(value).decode()


def read_command(data: bytes) -> f.WsAck | Malformed:
    """A consumer's command. Ids must be text; other keys do not matter."""
    shown = data[:_SHOWN]
    try:
        value = _decode(data)
    except (msgspec.DecodeError, RecursionError):
        return Malformed(shown, "expected a JSON object", "not-json")
    if value is None:
        return Malformed(shown, "expected a JSON object, got null", "crash")
    if not isinstance(value, dict | list):
        return Malformed(shown, f"expected a JSON object, got {type(value).__name__}", "not-json")
    if isinstance(value, dict):
        one, up_to = value.get("ackId"), value.get("ackToId")
        if isinstance(one, str) or isinstance(up_to, str):
            return f.WsAck(one if isinstance(one, str) else None, up_to if isinstance(up_to, str) else None)
    return Malformed(shown, "expected ackId or ackToId with text", "unrecognized")


# out

_CONFIRM = encode_frame(TEXT, b"")


def _json_frame(value: Mapping[str, Any]) -> bytes:
    return encode_frame(TEXT, _encode(value))


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def encode_error(error: str | None, code: int, code_first: bool) -> bytes:
    """The JSON object of an error."""
    values = _given(code=code, error=error) if code_first else _given(error=error, code=code)
    return _json_frame(values)


def _deliver(frame: f.WsDeliver) -> bytes:
    metadata: dict[str, Any] = {}
    if frame.content_type is not None:
        metadata["Content-Type"] = frame.content_type
    if frame.timestamp is not None:
        metadata["timestamp"] = frame.timestamp
    if frame.redelivered is not None:
        metadata["redelivered"] = frame.redelivered
    if frame.ack_id is not None:
        metadata["ackId"] = frame.ack_id
    metadata.update(frame.headers)
    if frame.encoding is not None:
        metadata["message"] = encode_payload(frame.encoding, frame.payload)
        return encode_frame(TEXT, _encode(metadata))
    opcode = TEXT if frame.text else BINARY
    return encode_frame(TEXT, _encode(metadata)) + encode_frame(opcode, frame.payload)


def _publish(frame: f.WsPublish) -> bytes:
    opcode = TEXT if frame.text else BINARY
    if frame.form == "single":
        return _json_frame({**frame.metadata, "message": frame.payload.decode("utf-8", "replace")})
    payload = encode_frame(opcode, frame.payload)
    return payload if frame.form == "binary" else _json_frame(frame.metadata) + payload


def _close(frame: f.WsClose) -> bytes:
    payload = b"" if frame.code is None else frame.code.to_bytes(2, "big") + frame.reason.encode()
    return encode_frame(CLOSE, payload)


def _raw(frame: f.WsFrame) -> bytes:
    return encode_frame(frame.opcode, frame.payload, fin=frame.fin, rsv=frame.rsv, masked=frame.masked)


ENCODERS: dict[type[Frame], Callable[[Any], bytes]] = {
    f.WsPublish: _publish,
    f.WsAck: lambda frame: _json_frame(_given(ackId=frame.ack_id, ackToId=frame.ack_to_id)),
    f.WsStop: lambda frame: encode_frame(TEXT if frame.text else BINARY, b""),
    f.WsConfirm: lambda _: _CONFIRM,
    f.WsDeliver: _deliver,
    f.WsPing: lambda frame: encode_frame(PING, frame.payload),
    f.WsPong: lambda frame: encode_frame(PONG, frame.payload),
    f.WsClose: _close,
    f.WsFrame: _raw,
}
