"""The JSON Schema of fault plans; ``plan.schema.json`` holds it."""

from __future__ import annotations

from typing import Any, Union

from fakebrokers.faults import effects
from fakebrokers.faults.effect import Realism
from fakebrokers.faults.match import Match
from fakebrokers.faults.plan import READABLE
from fakebrokers.schemas import DIALECT, components


def plan_schema() -> dict[str, Any]:
    """The schema of a plan file, whether TOML or JSON."""
    kinds = tuple(getattr(effects, name) for name in effects.__all__)
    (match, effect), inside = components((Match, Union[kinds]))  # noqa: UP007 - of a tuple
    tags = [str(kind.__struct_config__.tag) for kind in kinds]
    inside["Effect"] = effect
    inside["ProtocolEffect"] = {
        "title": "ProtocolEffect",
        "description": "An effect that only one protocol has.",
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"type": "string", "not": {"enum": tags}}},
    }
    one = {"anyOf": [{"$ref": "#/$defs/Effect"}, {"$ref": "#/$defs/ProtocolEffect"}]}
    return {
        "$schema": DIALECT,
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
            **dict(sorted(inside.items())),
        },
    }
