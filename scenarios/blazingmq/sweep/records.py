"""Messages in the words of the adapter protocol (docs/protocols/blazingmq.md, 2)."""

from __future__ import annotations

from typing import Any

from conformance.decoders import Unreadable
from conformance.decoders.blazingmq.contents import MessageContent, content_in
from conformance.run.facts import Record
from fakebrokers.blazingmq.codes import PushFlag
from fakebrokers.blazingmq.frames import PushMessage, PutMessage


def content_of(message: PutMessage | PushMessage) -> MessageContent | None:
    """Payload and properties; None if they cannot be read."""
    if isinstance(message, PushMessage) and message.flags & PushFlag.IMPLICIT_PAYLOAD and not message.data:
        return MessageContent(b"")
    try:
        return content_in(
            message.data,
            has_properties=message.has_properties,
            schema_id=message.schema_id,
            compression=message.compression,
        )
    except Unreadable:
        return None


def record_of(message: PushMessage) -> Record | None:
    """A delivery; None if it cannot be read, and no application may get it."""
    content = content_of(message)
    if content is None:
        return None
    return Record(message.guid.hex().upper(), content.payload, None, properties_of(content))


def properties_of(content: MessageContent) -> dict[str, Any]:
    """The properties in the words of the adapter protocol; bodies as bytes."""
    return {name: found._asdict() for name, found in content.properties.items()}
