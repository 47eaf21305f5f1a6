"""Plain values as TOML text; only what fault plans need (tables, lists of tables, inline tables)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(document: Mapping[str, Any]) -> str:
    """A document whose lists of tables become ``[[name]]`` sections; None is left out."""
    plain, sections = [], []
    for name, value in document.items():
        if isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
            sections += [f"\n[[{_key(name)}]]\n" + _lines(each) for each in value]
        elif value is not None:
            plain.append(f"{_key(name)} = {inline(value)}\n")
    return "".join(plain + sections)


def _lines(table: Mapping[str, Any]) -> str:
    return "".join(f"{_key(name)} = {inline(value)}\n" for name, value in table.items() if value is not None)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def inline(value: Any) -> str:
    """A value as it stands after an equals sign."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        inner = ", ".join(
            f"{_key(name)} = {inline(each)}" for name, each in value.items() if each is not None
        )
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(inline, value))}]"
    return _text(str(value))
