"""The JSON Schema of fault plans; ``python -m fakebrokers.faults.schema`` writes it anew."""

from __future__ import annotations

import json
from inspect import cleandoc
from pathlib import Path
from typing import Any, Union

import msgspec

from fakebrokers.faults import effects
from fakebrokers.faults.effect import Realism
from fakebrokers.faults.match import Match
from fakebrokers.faults.plan import READABLE

SCHEMA_FILE = Path(__file__).with_name("plan.schema.json")


def plan_schema() -> dict[str, Any]:
    """The schema of a plan file, whether TOML or JSON."""
    kinds = tuple(getattr(effects, name) for name in effects.__all__)
    (match, effect), components = msgspec.json.schema_components(
        (Match, Union[kinds]),  # noqa: UP007 - of a tuple
        ref_template="#/$defs/{name}",
    )
    for component in components.values():  # Python 3.13 takes the indentation out of docstrings
        if "description" in component:
            component["description"] = cleandoc(component["description"])
    tags = [str(kind.__struct_config__.tag) for kind in kinds]
    components["Effect"] = effect
    components["ProtocolEffect"] = {
        "title": "ProtocolEffect",
        "description": "An effect that only one protocol has.",
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"type": "string", "not": {"enum": tags}}},
    }
    one = {"anyOf": [{"$ref": "#/$defs/Effect"}, {"$ref": "#/$defs/ProtocolEffect"}]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Fault plan",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "version": {"enum": list(READABLE)},
            "seed": {"type": "integer", "default": 0},
            "faults": {"type": "array", "items": {"$ref": "#/$defs/Fault"}},
        },
        "$defs": {
            "Fault": {
                "title": "Fault",
                "type": "object",
                "required": ["effect"],
                "additionalProperties": False,
                "properties": {
                    "name": {"type": "string"},
                    "match": match,
                    "effect": {"anyOf": [*one["anyOf"], {"type": "array", "minItems": 1, "items": one}]},
                    "realism": {"enum": [str(each) for each in Realism]},
                },
            },
            **dict(sorted(components.items())),
        },
    }


def schema_text() -> str:
    """The schema as it stands in the tree."""
    return json.dumps(plan_schema(), indent=2) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
