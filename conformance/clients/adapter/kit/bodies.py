"""Bodies and integers as the lines carry them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from .failure import Failure

INLINE_BYTES_MAX = 4096  #: reports above this size are a digest
KEPT_BYTES_MAX = 2**20  #: larger bodies are made anew each time
EXACT_INTEGER_MAX = 2**53  #: above it a JSON number loses digits in some languages


def body_bytes(body: Mapping[str, Any]) -> bytes:
    """The bytes of a body. Raises `Failure` (invalid) for anything else."""
    if "text" in body:
        return str(body["text"]).encode()
    if "b64" in body:
        return base64.b64decode(body["b64"])
    if body.get("gen") == "zero":
        return bytes(int(body["len"]))
    if body.get("gen") == "rand":
        return random_bytes(int(body["seed"]), int(body["len"]))
    raise Failure("invalid", f"a body has text, b64 or gen zero|rand, not {sorted(body)}")


def random_bytes(seed: int, size: int) -> bytes:
    """SHA-256 in counter mode over the seed and a counter, 8 bytes big-endian each, cut to `size` bytes."""
    return _kept_bytes(seed, size) if size <= KEPT_BYTES_MAX else _made_bytes(seed, size)


def _made_bytes(seed: int, size: int) -> bytes:
    head = hashlib.sha256(seed.to_bytes(8, "big"))
    blocks = []
    for counter in range(-(-size // head.digest_size)):
        block = head.copy()
        block.update(counter.to_bytes(8, "big"))
        blocks.append(block.digest())
    return b"".join(blocks)[:size]


# A body is made more than once: to be sent, to be compared, and in each run of a script.
_kept_bytes = lru_cache(maxsize=64)(_made_bytes)


def report_body(data: bytes) -> dict[str, Any]:
    """How bytes are reported: base64 up to 4096 bytes, above that digest and length."""
    if len(data) <= INLINE_BYTES_MAX:
        return {"b64": base64.b64encode(data).decode()}
    return {"sha256": hashlib.sha256(data).hexdigest(), "len": len(data)}


def body_parts(body: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> tuple[bytes, ...]:
    """The parts of a body, or of a list of bodies."""
    return (body_bytes(body),) if isinstance(body, Mapping) else tuple(map(body_bytes, body))


def key_bytes(key: str | Mapping[str, Any] | None) -> bytes | None:
    """A key or position of the runner as bytes."""
    return body_bytes({"text": key} if isinstance(key, str) else key) if key is not None else None


def report_key(key: bytes) -> str | dict[str, str]:
    """A key or position for the runner: text, or ``{"b64"}`` where it is none."""
    try:
        return key.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(key).decode()}


def integer(value: int | str | None) -> int | None:
    """An integer from JSON, which may be a string of digits."""
    return None if value is None else int(value)


def number(value: int) -> int | str:
    """An integer for JSON: a string of digits where a number would not be exact everywhere."""
    return value if abs(value) <= EXACT_INTEGER_MAX else str(value)


def filter_value(body: bytes) -> str | None:
    """The filter value of a body, RabbitMQ Stream: its text up to the first colon; None without a colon."""
    value, colon, _ = body.partition(b":")
    return value.decode() if colon else None


def is_wanted(body: bytes, wanted: Mapping[str, Any]) -> bool:
    """Whether the ``filter`` of a subscription wants a body, which the library has to ask itself."""
    value = filter_value(body)
    return bool(wanted.get("unfiltered")) if value is None else value in wanted["values"]
