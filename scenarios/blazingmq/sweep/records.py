"""Messages read by the letter of docs/protocols/blazingmq.md, 2, and in the words of the adapter protocol."""

from __future__ import annotations

from typing import Any

from conformance.run.facts import Record
from fakebrokers.blazingmq.codes import PushFlag
from fakebrokers.blazingmq.frames import PushMessage, PutMessage
from fakebrokers.blazingmq.properties import Content, Property, PropertyType, read_content
from fakebrokers.errors import WireError


def content_of(message: PutMessage | PushMessage) -> Content | None:
    """Payload and properties; None if they cannot be read."""
    if isinstance(message, PushMessage) and message.flags & PushFlag.IMPLICIT_PAYLOAD and not message.data:
        return Content(b"")
    try:
        return read_content(
            message.data,
            has_properties=message.has_properties,
            schema_id=message.schema_id,
            compression=message.compression,
        )
    except WireError:
        return None


def record_of(message: PushMessage) -> Record | None:
    """A delivery; None if it cannot be read, and no application may get it."""
    content = content_of(message)
    if content is None:
        return None
    return Record(message.guid.hex().upper(), content.payload, None, properties_of(content))


def properties_of(content: Content) -> dict[str, Any]:
    """The properties in the words of the adapter protocol; bodies as bytes."""
    return {name: _shown(one) for name, one in content.properties.items()}


def _shown(found: Property) -> dict[str, Any]:
    kind, value = found
    if kind is PropertyType.CHAR:
        return {"type": "char", "value": bytes([int(value)])}
    if isinstance(value, bytes):
        return {"type": kind.name.lower(), "value": value}
    return {"type": kind.name.lower(), "value": value}
