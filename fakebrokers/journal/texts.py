"""Values as JSON, whatever text a peer has sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


def as_json(value: Any) -> bytes:
    """JSON; bytes in base64, other objects as text.

    Text that UTF-8 cannot hold, such as half of a surrogate pair, becomes escapes: a fault may put it into
    a frame on purpose, and a record of it must not fail.
    """
    try:
        return msgspec.json.encode(value, enc_hook=str)
    except UnicodeEncodeError:
        return msgspec.json.encode(_escaped(msgspec.to_builtins(value, enc_hook=str)))
    except RecursionError:
        return b'"nested too deeply to be written"'


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_escaped(name): _escaped(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_escaped(each) for each in value]
    return value
