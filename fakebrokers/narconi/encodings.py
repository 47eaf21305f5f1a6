"""Payloads as text, the way node's Buffer prints them (docs/protocols/narconi.md, "consume")."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable


def _ascii(data: bytes) -> str:
    return bytes([byte & 0x7F for byte in data]).decode("ascii")


def _ucs2(data: bytes) -> str:
    return data[: len(data) & ~1].decode("utf-16-le", "replace")


def _utf8(data: bytes) -> str:
    return data.decode("utf-8", "replace")


_ENCODERS: dict[str, Callable[[bytes], str]] = {
    "": _utf8,
    "utf8": _utf8,
    "utf-8": _utf8,
    "base64": lambda data: b64encode(data).decode("ascii"),
    "hex": bytes.hex,
    "ascii": _ascii,
    "binary": lambda data: data.decode("latin-1"),
    "ucs2": _ucs2,
    "ucs-2": _ucs2,
    "utf16le": _ucs2,
    "utf-16le": _ucs2,
}


def known_encoding(name: str) -> bool:
    """Whether node knows the encoding; upper and lower case are the same."""
    return name.lower() in _ENCODERS


def encode_payload(name: str, data: bytes) -> str:
    """The payload as text. Unknown names count as UTF-8."""
    return _ENCODERS.get(name.lower(), _utf8)(data)
