"""The judge's own decoders: what passed on the wire, read by the letter of the documents in docs/protocols.

Fakes and reference clients share the fakes' codecs, so an error in one of these looks right to both. What is
here is written from those documents alone. It fills the frame classes of the fakes by the names of their
fields, and imports nothing that reads or writes bytes for a fake; ``tests/test_fences.py`` sees to that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from fakebrokers.core.frames import Frame

SHOWN = 256  #: bytes of an unreadable frame that are kept


class Decoder(Protocol):
    """Reads one direction of one connection."""

    def feed(self, unit: Any, /) -> Iterable[tuple[Frame, int]]:
        """Take in what was written at once; each frame that is whole now, with its size in bytes.

        Never raises on foreign bytes: what cannot be read comes out as `Malformed`.
        """

    @property
    def partial(self) -> int:
        """Bytes of a frame that has not arrived whole."""


class Unreadable(Exception):
    """What is wrong with the bytes of a frame."""


BLANKS = " \t\r\n"  #: of JSON


def json_value(data: bytes, *, is_lenient: bool = False) -> Any:
    """What a JSON text says; it is UTF-8. Raises `Unreadable`, for NaN too, which Python reads otherwise.

    Args:
        is_lenient: Strings may hold control characters, and anything may follow the text.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # it takes no lone surrogates, and no numbers without limit
    decoder = json.JSONDecoder(parse_constant=_no_number, strict=not is_lenient)
    try:
        text = data.decode()
        return decoder.raw_decode(text.lstrip(BLANKS))[0] if is_lenient else decoder.decode(text)
    except (ValueError, RecursionError) as problem:
        raise Unreadable(f"expected JSON: {problem}") from None


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number")
