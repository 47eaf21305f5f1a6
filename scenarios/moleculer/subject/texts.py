"""Bodies as texts, which is what packets in JSON carry."""

from __future__ import annotations

import json

import msgspec

from conformance.clients.adapter.messages import Message, body_bytes, request_body
from conformance.suite.client import Body, as_body


def text_of(body: Body) -> str:
    """A body as a text of as many characters; bytes that are drawn become hexadecimal digits."""
    given = as_body(body)
    assert isinstance(given, dict), "a text has one part"
    match given.get("gen"):
        case "zero":
            return "0" * int(given["len"])
        case "rand":
            length = int(given["len"])
            return body_bytes({**given, "len": (length + 1) // 2}).hex()[:length]
    return body_bytes(given).decode()


def unwrapped(message: Message) -> Message:
    """A message whose body is a text in JSON, with just that text; anything else stays as it is."""
    if "sha256" in message.body:
        return message
    try:
        text = json.loads(body_bytes(message.body))
    except ValueError:
        return message
    if not isinstance(text, str):
        return message
    return msgspec.structs.replace(message, body=request_body(text.encode()))
