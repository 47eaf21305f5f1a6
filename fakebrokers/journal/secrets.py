"""Credentials are kept out of journals: whole fields, and named values whose name or form gives them away."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from fakebrokers.core.frames import Frame, FrameSpec

REDACTED = "***"

#: Names of headers, properties and query parameters that hold credentials, as parts of a name.
_NAME = re.compile(
    r"(^|[-_.])pass$|password|passwd|passphrase|pwd|secret|token|credential|cookie|auth(orization|entication)?$|auth[-_]"
    r"|(api|access|private|shared|account|signing)[-_]?key|signature$|^(sig|key|jwt|sid|session[-_]?id)$",
    re.IGNORECASE,
)
#: Values that say of themselves what they are, under whatever name.
_VALUE = re.compile(r"((?:^|[,;])\s*(?:bearer|basic|negotiate|digest)[ .:=]+)[^\s,;&]+", re.IGNORECASE)
_QUERY = re.compile(r"([?&;])([^=&;#]+)=([^&;#]*)")
_USER = re.compile(r"(://[^/:@\s]+):[^/@\s]+@")


def redacted(frame: Frame, spec: FrameSpec) -> Frame:
    """The frame without credentials; the frame itself if it has none."""
    changes: dict[str, Any] = {name: masked(getattr(frame, name)) for name in spec.secret}
    for name in spec.named:
        value = getattr(frame, name)
        shown = without_secrets(value)
        if shown is not value:
            changes[name] = shown
    return msgspec.structs.replace(frame, **changes) if changes else frame


def masked(value: Any) -> Any:
    """What stands for a credential; what was null or empty still shows as such."""
    if not value:
        return value
    if isinstance(value, Mapping):
        return dict.fromkeys(value, REDACTED)
    return REDACTED.encode() if isinstance(value, bytes) else REDACTED


def without_secrets(value: Any) -> Any:
    """Named values without those that are credentials: a mapping, pairs, or a URL with its query.

    The value itself if there are none.
    """
    if isinstance(value, str):
        return _url(value)
    if isinstance(value, Mapping):
        changed = {name: shown for name, each in value.items() if (shown := _shown(name, each)) is not each}
        return {**value, **changed} if changed else value
    pairs = tuple((name, _shown(name, each)) for name, each in value)
    return value if all(new[1] is old[1] for new, old in zip(pairs, value, strict=True)) else pairs


def _shown(name: Any, value: Any) -> Any:
    if not value:
        return value
    if _is_secret(str(name)):
        return masked(value)
    if isinstance(value, str) and _VALUE.search(value):
        return _VALUE.sub(rf"\1{REDACTED}", value)
    return value


def _url(url: str) -> str:
    if "?" not in url and "@" not in url:
        return url
    shown = _QUERY.sub(_parameter, _USER.sub(rf"\1:{REDACTED}@", url))
    return url if shown == url else shown


def _parameter(found: re.Match[str]) -> str:
    before, name, value = found.groups()
    return f"{before}{name}={REDACTED if value and _is_secret(name) else value}"


@lru_cache(maxsize=1024)
def _is_secret(name: str) -> bool:
    return _NAME.search(name) is not None
