"""JSON Schemas of our structs."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import cleandoc
from typing import Any

import msgspec

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def components(kinds: Iterable[Any]) -> tuple[tuple[dict[str, Any], ...], dict[str, dict[str, Any]]]:
    """The schemas of types, and those of the structs inside them, for ``$defs``, by name.

    Descriptions are the same on every Python: only 3.13 takes the indentation out of docstrings by itself.
    """
    schemas, inside = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    for each in inside.values():
        if "description" in each:
            each["description"] = cleandoc(each["description"])
    return schemas, inside
