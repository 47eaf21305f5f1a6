"""What the fake of BlazingMQ finds in a message, in the words of the judge's decoder."""

from __future__ import annotations

from conformance.decoders.blazingmq.contents import MessageContent, MessageProperty
from fakebrokers.blazingmq.frames import PushMessage, PutMessage
from fakebrokers.blazingmq.properties import Content, Property, PropertyType, read_content


def in_our_words(content: Content) -> MessageContent:
    """The same content, as the decoder has it."""
    return MessageContent(content.payload, {name: _property(one) for name, one in content.properties.items()})


def _property(one: Property) -> MessageProperty:
    is_char = one.type is PropertyType.CHAR
    return MessageProperty(one.type.name.lower(), bytes([int(one.value)]) if is_char else one.value)


def as_read_by_the_fake(message: PutMessage | PushMessage) -> MessageContent:
    """Raises WireError."""
    return in_our_words(
        read_content(
            message.data,
            has_properties=message.has_properties,
            schema_id=message.schema_id,
            compression=message.compression,
        )
    )
