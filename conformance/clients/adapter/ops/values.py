"""What is inside arguments and results of many ops: bodies, keys, numbers, messages."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType

from conformance.clients.adapter.ops.define import Incoming, Outgoing

Json = dict[str, Any]

Milliseconds = Annotated[float, Meta(ge=0)]
Ordinal = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
#: The number or word on the wire, null if there is none.
Code = int | str | None
#: A number, as digits above 2^53.
Integer64 = int | Annotated[str, Meta(pattern=r"^-?[0-9]+$")]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]

_STRING = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_BASE64 = {"type": "string", "contentEncoding": "base64"}


class Bytes(Incoming, frozen=True):
    """An id that is not text."""

    b64: str


#: An id that the caller or the broker gives, or null.
Key = int | str | Bytes | None


def _any_of(forms: tuple[Mapping[str, Json], ...]) -> Json:
    return {"anyOf": [{"type": "object", "properties": dict(form), "required": list(form)} for form in forms]}


_BODY_FORMS: tuple[Mapping[str, Json], ...] = (
    {"text": _STRING},
    {"b64": _BASE64},
    {"gen": {"const": "zero"}, "len": _COUNT},
    {"gen": {"const": "rand"}, "seed": _COUNT, "len": _COUNT},
)
_REPORT_FORMS: tuple[Mapping[str, Json], ...] = (
    {"b64": _BASE64},
    {"text": _STRING},
    {"sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"}, "len": {"type": "integer", "minimum": 4097}},
)


class Body(Outgoing, frozen=True):
    """Bytes in a request: text (UTF-8), base64, or generated. rand: SHA-256 over seed and counter (8 bytes
    big-endian each), counter from 0, cut to len.
    """

    schema: ClassVar[Json] = _any_of(_BODY_FORMS)

    text: str | UnsetType = UNSET
    b64: str | UnsetType = UNSET
    gen: Literal["zero", "rand"] | UnsetType = UNSET
    seed: Natural | UnsetType = UNSET
    len: Natural | UnsetType = UNSET

    def __post_init__(self) -> None:
        needed = (self.len, self.seed) if self.gen == "rand" else (self.gen, self.len)
        if self.text is UNSET and self.b64 is UNSET and UNSET in needed:
            raise ValueError("Expected a body: text, b64, or gen with len (and a seed for rand)")


class Report(Incoming, frozen=True):
    """Bytes as the adapter reports them: base64 up to 4096 bytes, above that their digest."""

    schema: ClassVar[Json] = _any_of(_REPORT_FORMS)

    b64: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    sha256: Digest | UnsetType = UNSET
    len: Annotated[int, Meta(ge=4097)] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.b64 is UNSET and self.text is UNSET and UNSET in (self.sha256, self.len):
            raise ValueError("Expected a body: b64, text, or sha256 with len")
        if isinstance(self.b64, str):
            try:
                base64.b64decode(self.b64)
            except (binascii.Error, ValueError):
                raise ValueError(f"Expected base64, got {self.b64[:60]!r}") from None


#: A list where the protocol has messages of several parts.
Bodies = Body | list[Body]
Reports = Report | list[Report]


def is_integer64(value: object) -> bool:
    """Whether it is an integer of 64 bits as the lines carry it: a number, or digits."""
    if isinstance(value, str):
        digits = value.removeprefix("-")
        return digits.isascii() and digits.isdigit() and len(digits) <= 20
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 64
