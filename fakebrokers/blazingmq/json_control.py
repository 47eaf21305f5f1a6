"""Control messages in JSON, in the style of BDE's baljsn (docs/protocols/blazingmq.md, 6.2).

Keys are the schema's names, enumerations are their names, elements that are absent are left out, and what a
reader does not know it skips.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from typing import Any

from fakebrokers.blazingmq.schema import Element, Form, Shape
from fakebrokers.errors import WireError

#: Strings may hold control characters.
_DECODER = json.JSONDecoder(strict=False)
_SPACE = " \t\r\n"
_BOOLEANS = {"true": True, "false": False}
_DIGITS = re.compile(r"-?[0-9]{1,20}")


def parse(data: bytes) -> Mapping[str, Any]:
    """The outermost object; bytes after it are not looked at.

    Raises:
        WireError: The bytes are no JSON, or no object.
    """
    try:
        value, _ = _DECODER.raw_decode(data.decode(errors="surrogateescape").lstrip(_SPACE))
    except (ValueError, RecursionError) as error:
        raise WireError("a JSON document", str(error)) from None
    return table(value, "the message")


def write(value: Mapping[str, Any]) -> bytes:
    """The bytes of an object. Slashes are written as the SDKs write them, with a backslash."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.replace("/", "\\/").encode(errors="surrogateescape")


def pack_elements(elements: Iterable[Element], value: Any) -> dict[str, Any]:
    """A sequence as an object."""
    parts = ((element, getattr(value, element.field)) for element in elements)
    return {element.name: _pack(element.shape, part) for element, part in parts if part is not None}


def _pack(shape: Shape, value: Any) -> Any:
    if shape.form is Form.SEQUENCE:
        return pack_elements(shape.elements, value)
    if shape.form is Form.ARRAY:
        assert shape.inner is not None
        return [_pack(shape.inner, each) for each in value]
    if shape.form is Form.BYTES:
        return b64encode(value).decode()
    if shape.form is Form.ENUMERATION:
        assert shape.simple is not None
        return shape.simple.names.get(value, int(value))
    return value


def read_elements(elements: Iterable[Element], value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a sequence: absent ones have their default, unknown ones are skipped.

    Raises:
        WireError: An element is not what its shape says.
    """
    return {
        element.field: _read(element.shape, value[element.name], element.name)
        if element.name in value
        else element.default
        for element in elements
    }


def _read(shape: Shape, value: Any, name: str) -> Any:
    if shape.form is Form.SEQUENCE:
        assert shape.kind is not None
        return shape.kind(**read_elements(shape.elements, table(value, name)))
    if shape.form is Form.ARRAY:
        assert shape.inner is not None
        if not isinstance(value, list):
            raise _wrong(name, "an array", value)
        inner = shape.inner
        return tuple([_read(inner, each, name) for each in value])
    if shape.form in (Form.TEXT, Form.BYTES):
        if not isinstance(value, str):
            raise _wrong(name, "a string", value)
        return _text(value) if shape.form is Form.TEXT else _bytes(value, name)
    if shape.form is Form.BOOLEAN:
        found = _BOOLEANS.get(value) if isinstance(value, str) else value
        if not isinstance(found, bool):
            raise _wrong(name, "true or false", value)
        return found
    return read_number(shape, value, name)


def read_number(shape: Shape, value: Any, name: str) -> int:
    """The number of a value: in quotes, too, and with a fraction of zero; of an enumeration, or its name.

    Raises:
        WireError: It is none that the shape allows.
    """
    simple = shape.simple
    assert simple is not None
    if shape.form is Form.ENUMERATION:
        for number, label in simple.names.items():
            if value == label or (value == number and type(value) is int):
                return number
        raise _wrong(name, f"one of {', '.join(simple.names.values())}", value)
    if (isinstance(value, str) and _DIGITS.fullmatch(value)) or (isinstance(value, float) and value % 1 == 0):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not simple.low <= value <= simple.high:
        raise _wrong(name, f"a number from {simple.low} to {simple.high}", value)
    return value


def _text(value: str) -> str:
    """The text in a form that can be written again: JSON can hold halves of surrogate pairs."""
    try:
        value.encode(errors="surrogateescape")
        return value
    except UnicodeEncodeError:
        return value.encode(errors="surrogatepass").decode(errors="surrogateescape")


def _bytes(value: str, name: str) -> bytes:
    try:
        return b64decode(value, validate=True)
    except ValueError:
        raise _wrong(name, "base64", value) from None


def table(value: Any, name: str) -> Mapping[str, Any]:
    """The value, if it is an object. `WireError` if not."""
    if not isinstance(value, dict):
        raise _wrong(name, "an object", value)
    return value


def _wrong(name: str, expected: str, value: Any) -> WireError:
    return WireError(f"{expected} for {name}", repr(value)[:80])
