"""Properties, payload and compression of messages."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import NamedTuple

from conformance.clients.reference.kit import ClientError
from fakebrokers.blazingmq.codes import Compression, PushFlag
from fakebrokers.blazingmq.frames import PushMessage
from fakebrokers.blazingmq.properties import (
    MAX_NAME,
    NO_SCHEMA,
    Content,
    Property,
    Style,
    read_content,
    write_properties,
)
from fakebrokers.errors import WireError

COMPRESSED_FROM = 1024  #: bytes; less is not worth it
PROPERTIES_MAX = 255


class Packed(NamedTuple):
    """A message as it goes into a PUT."""

    data: bytes
    has_properties: bool
    schema_id: int
    compression: int


class Contents:
    """Writes and reads what messages carry."""

    def pack(
        self, payload: bytes, properties: Mapping[str, Property], *, zlib_wanted: bool, new_style: bool
    ) -> Packed:
        """The data of a PUT. Raises `ClientError` (invalid)."""
        self.check(payload, properties)
        area = self.area(properties, Style.NEW if new_style else Style.OLD) if properties else b""
        plain, rest = (area, payload) if new_style else (b"", area + payload)
        rest, compression = self.squeeze(rest) if zlib_wanted else (rest, Compression.NONE)
        schema_id = NO_SCHEMA if properties and new_style else 0
        return Packed(plain + rest, bool(properties), schema_id, compression)

    def check(self, payload: bytes, properties: Mapping[str, Property]) -> None:
        """What a PUT cannot carry is refused before anything is sent."""
        if not payload:
            raise ClientError("invalid", "a message of 0 bytes")
        if len(properties) > PROPERTIES_MAX:
            raise ClientError("invalid", f"{len(properties)} properties, {PROPERTIES_MAX} are the most")
        for name in properties:
            if not 0 < len(name.encode()) <= MAX_NAME:
                raise ClientError("invalid", f"the name of a property has 1 to {MAX_NAME} bytes")

    def area(self, properties: Mapping[str, Property], style: Style) -> bytes:
        """The properties as bytes."""
        try:
            return write_properties(properties, style)
        except WireError as error:
            raise ClientError("invalid", str(error)) from None

    def squeeze(self, data: bytes) -> tuple[bytes, Compression]:
        """Compressed, if that makes it smaller."""
        if len(data) >= COMPRESSED_FROM:
            smaller = zlib.compress(data)
            if len(smaller) < len(data):
                return smaller, Compression.ZLIB
        return data, Compression.NONE

    def unpack(self, message: PushMessage) -> Content:
        """Payload and properties of a delivery. Raises `WireError`."""
        if message.flags & PushFlag.IMPLICIT_PAYLOAD and not message.data:
            return Content(b"")
        return read_content(
            message.data,
            has_properties=message.has_properties,
            schema_id=message.schema_id,
            compression=message.compression,
        )
