"""Credentials are kept out of journals: whole fields, and named values whose name or form gives them away."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import msgspec

from fakebrokers.core.frames import Frame, FrameSpec

REDACTED = "***"

#: Names of headers, properties and query parameters that hold credentials, as parts of a name.
_NAME = re.compile(
    r"(^|[-_.]|require)pass$|password|passwd|passphrase|passcode|pwd|secret|token|credential|cookie"
    r"|auth(orization|entication|2)?$|auth[-_]|signature$|^(sig|key|jwt|sid|session[-_]?id)$"
    r"|(api|access|private|shared|account|signing|subscription)[-_]?key",
    re.IGNORECASE,
)
#: Words of a command after which credentials come without a name.
_SCHEME = re.compile(r"(bearer|basic|negotiate|digest)[:=,]?$", re.IGNORECASE)
#: Words that are a password by their first letter, in the ACLs of Redis.
_MARKED = (">", "<", "#", "!")
#: Values that say of themselves what they are, under whatever name.
_VALUE = re.compile(
    r"((?:^|[.,;])\s*(?:bearer|basic|negotiate|digest)(?:[ .:=]|,\s)+)[^\s,;&]+", re.IGNORECASE
)
_QUOTED = re.compile(r"'([^']*)'")
_VERB = re.compile(rb"\s*[A-Za-z+-]{1,10}(?=\s|\Z)")
_QUERY = re.compile(r"([?&;#])([^=&;#]+)=([^&;#]*)")
_MARK = re.compile("[?@#]")  #: without which a text is no URL that names anything or anybody
_USER = re.compile(r"(://[^/:@\s]*):[^/\s]+@")


def redacted(frame: Frame, spec: FrameSpec) -> Frame:
    """The frame without credentials; the frame itself if it has none."""
    changes: dict[str, Any] = {name: masked(value) for name in spec.secret if (value := getattr(frame, name))}
    for name in spec.named:
        value = getattr(frame, name)
        shown = without_secrets(value)
        if shown is not value:
            changes[name] = shown
    for name, known in spec.words.items():
        word = getattr(frame, name)
        if word and word.upper() not in known:
            changes[name] = REDACTED
    return msgspec.structs.replace(frame, **changes) if changes else frame


def masked(value: Any) -> Any:
    """What stands for a credential; what was null or empty still shows as such."""
    if not value:
        return value
    if isinstance(value, Mapping):
        return dict.fromkeys(value, REDACTED)
    if isinstance(value, msgspec.Struct):  # an outcome says in its text what it refuses
        texts = {name: REDACTED for name in value.__struct_fields__ if isinstance(getattr(value, name), str)}
        return msgspec.structs.replace(value, **texts)
    return REDACTED.encode() if isinstance(value, bytes) else REDACTED


def without_secrets(value: Any) -> Any:
    """Named values without those that are credentials: a mapping, pairs, words, or text with URLs or words.

    The value itself if there are none, or if it can have no names (a number).
    """
    if isinstance(value, str):
        return _quoted(_url(value))
    if isinstance(value, bytes):
        text = value.decode("latin-1")
        shown = without_secrets(text)
        return value if shown is text else shown.encode("latin-1")
    if isinstance(value, Mapping):
        changed = {name: shown for name, each in value.items() if (shown := _shown(name, each)) is not each}
        return {**value, **changed} if changed else value
    if not isinstance(value, tuple | list):
        return value
    if any(not isinstance(each, tuple) or len(each) != 2 for each in value):
        return _words(value)
    pairs = tuple((name, _shown(name, each)) for name, each in value)
    return value if all(new[1] is old[1] for new, old in zip(pairs, value, strict=True)) else pairs


def _shown(name: Any, value: Any) -> Any:
    if not value:
        return value
    if _is_secret(name.decode("latin-1") if isinstance(name, bytes) else str(name)):
        return masked(value)
    if isinstance(value, str):
        return _url(_VALUE.sub(rf"\1{REDACTED}", value)) if _VALUE.search(value) else _url(value)
    return value


def _quoted(text: str) -> str:
    """Text that repeats a command: ``unknown command 'X', with args beginning with: 'a' 'b'``."""
    if "' '" not in text:
        return text
    words = _QUOTED.findall(text)
    shown = iter(_words(words))
    changed = _QUOTED.sub(lambda _: f"'{next(shown)}'", text)
    return text if changed == text else changed


def _words(words: Sequence[Any]) -> Any:
    """The words of a command (text or bytes) up to the first one that says that a credential comes."""
    found: list[Any] = []
    hidden = False
    for word in words:
        text = word.decode("latin-1") if isinstance(word, bytes) else str(word)
        is_password = hidden or (len(text) > 1 and text.startswith(_MARKED))
        found.append(masked(word) if is_password else without_secrets(word))
        hidden = hidden or _is_secret(text) or _SCHEME.match(text) is not None
    return words if all(new is old for new, old in zip(found, words, strict=True)) else tuple(found)


def verb_in(data: bytes) -> str:
    """What a line that is no command begins with, for people to see; what is no plain word is not shown."""
    found = _VERB.match(data)
    return repr(found[0].decode()) if found is not None else f"{len(data)} bytes"


def _url(url: str) -> str:
    if _MARK.search(url) is None:
        return url
    shown = _QUERY.sub(_parameter, _USER.sub(rf"\1:{REDACTED}@", url))
    return url if shown == url else shown


def _parameter(found: re.Match[str]) -> str:
    before, name, value = found.groups()
    return f"{before}{name}={REDACTED if value and _is_secret(unquote(name)) else value}"


@lru_cache(maxsize=1024)
def _is_secret(name: str) -> bool:
    return _NAME.search(name) is not None
