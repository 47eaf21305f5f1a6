"""The JSON Schema of the lines, ``schema.json``, made from the types of ops, events and messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import cleandoc
from typing import Any

import msgspec

from conformance.clients.adapter.messages import PROTOCOL_VERSION, Message
from conformance.clients.adapter.ops import values
from conformance.clients.adapter.ops.define import Nothing
from conformance.clients.adapter.ops.events import EVENTS
from conformance.clients.adapter.profile import all_ops, ops_of, profiles
from fakebrokers.schemas import DIALECT

Json = dict[str, Any]

_FRAME: Json = {
    "$schema": DIALECT,
    "$id": f"urn:fakebrokers:adapter-protocol:{PROTOCOL_VERSION}",
    "title": f"Adapter protocol, version {PROTOCOL_VERSION}",
    "description": "One line between the runner and an adapter. ADAPTER.md explains it. Members that are not "
    "named here are allowed everywhere and ignored. NAME.args and NAME.result belong to the op NAME; the "
    "members of all protocols stand together.",
    "oneOf": [{"$ref": "#/$defs/request"}, {"$ref": "#/$defs/response"}, {"$ref": "#/$defs/event"}],
}
_COUNTER: Json = {"n": {"type": "integer", "minimum": 1}, "t": {"type": "number", "minimum": 0}}

#: Types that have a name of their own in the schema.
_NAMED: Mapping[str, tuple[Any, str]] = {
    "milliseconds": (values.Milliseconds, ""),
    "integer64": (values.Integer64, "A string of digits above 2^53."),
    "key": (values.Key, "An id that the caller or the broker gives, or null."),
    "bodies": (values.Bodies, "A list where the protocol has multi-part bodies."),
    "reports": (values.Reports, "A list where the protocol has multi-part bodies."),
    "code": (values.Code, "The number or word on the wire, null if there is none."),
}


def schema() -> Json:
    """The schema as a document."""
    defs: Json = {}
    for protocol in profiles():
        _merge(defs, _definitions(protocol))
    for name, (kind, about) in _NAMED.items():
        (found,), inside = _components([kind])
        rule = _renamed(_bare(found), {each: camel(each) for each in inside})
        defs[name] = ({"description": about} if about else {}) | rule
    _tell_names(defs["hello.result"])
    named = {name: {key: each for key, each in defs[name].items() if key != "description"} for name in _NAMED}
    short = {name: _with_names(each, named, top=True) for name, each in defs.items()}
    lines = {"request": _request(defs), "response": _response(), "event": _event()}
    return {**_FRAME, "$defs": {**lines, **dict(sorted(short.items()))}}


# One protocol's definitions.


def _definitions(protocol: str) -> Json:
    """Arguments and results of its ops, and whatever is inside, by their names in the schema."""
    ops = ops_of(protocol)
    places: dict[type, str] = {each: f"{name}.args" for name, each in ops.items()}
    for name, each in ops.items():
        if each.spec.result is not Nothing:
            places[each.spec.result] = f"{name}.result"
    places |= {kind: f"{name}.event" for name, kind in EVENTS.items() if kind is not Message}
    known = structs_in(list(places))
    names = {kind.__name__: places.get(kind, camel(kind.__name__)) for kind in known}
    _, found = _components(list(places))
    described = {kind.__name__: _described(found[kind.__name__], kind) for kind in known}
    words = {name: _bare(each) for name, each in found.items() if name not in described}  # enumerations
    names |= {name: camel(name) for name in words}
    return {names[name]: _renamed(each, names) for name, each in (described | words).items()}


def _components(kinds: list[Any]) -> tuple[tuple[Json, ...], Json]:
    """What msgspec says of these types, and of the structs inside them by their names."""
    return msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")


def structs_in(kinds: list[Any]) -> list[type[msgspec.Struct]]:
    """The structs among these types, and those inside them, each once."""
    found: dict[type[msgspec.Struct], None] = {}

    def look(info: Any) -> None:
        if isinstance(info, msgspec.inspect.StructType):
            if info.cls in found:
                return
            found[info.cls] = None
            parts: Iterable[Any] = [field.type for field in info.fields]
        elif isinstance(info, msgspec.inspect.UnionType):
            parts = info.types
        else:
            parts = [getattr(info, part, None) for part in ("item_type", "value_type", "type")]
        for part in parts:
            if part is not None:
                look(part)

    for info in msgspec.inspect.multi_type_info(kinds):
        look(info)
    return list(found)


def _described(found: Json, kind: type[msgspec.Struct]) -> Json:
    """A definition with what its docstring says, and without what msgspec adds."""
    about, members = reported(kind)
    own = getattr(kind, "schema", {})
    if "anyOf" in own:
        return {"description": about, **own}
    properties = {name: _bare(each) for name, each in found["properties"].items()}
    for name, text in members.items():
        properties[name] = {"description": text, **properties[name]}
    required = {"required": found["required"]} if found["required"] else {}
    return {"description": about, "type": "object", "properties": properties, **required, **own}


def reported(kind: type[msgspec.Struct]) -> tuple[str, dict[str, str]]:
    """What the docstring of a struct says of itself, and of its members.

    A struct that adds members to one of the same name is that one, as far as it itself is concerned.
    """
    members: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        text = cleandoc(each.__doc__ or "") if issubclass(each, msgspec.Struct) else ""
        name = ""
        for line in text.partition("Attributes:\n")[2].splitlines():
            if line.startswith("        "):
                members[name] += f" {line.strip()}"
            elif line.strip():
                name, _, words = line.strip().partition(": ")
                members[name] = words
    first = [each for each in kind.__mro__ if each.__name__ == kind.__name__][-1]
    about = cleandoc(first.__doc__ or "").partition("Attributes:")[0]
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    return " ".join(about.split()), {name: words for name, words in members.items() if name in known}


def _merge(into: Json, more: Json) -> None:
    """Add definitions; members of the same name have to be the same, or one of them any object.

    Raises:
        ValueError: They are not.
    """
    for name, each in more.items():
        if name not in into:
            into[name] = each
        if (there := into[name]) == each:
            continue
        if there.get("required") != each.get("required"):
            raise ValueError(f"{name}: protocols disagree about which members are required")
        for member, rule in each["properties"].items():
            rules = [there["properties"].setdefault(member, rule), rule]
            if rules[0] != rule:
                if {"type": "object"} not in rules:
                    raise ValueError(f"{name}: protocols disagree about {member}")
                there["properties"][member] = {"type": "object"}


# From what msgspec writes to what people read.


def _bare(rule: Any) -> Any:
    """Without titles, refused members and defaults that say nothing."""
    if isinstance(rule, list):
        return [_bare(each) for each in rule]
    if not isinstance(rule, dict):
        return rule
    idle: Mapping[str, tuple[Any, ...]] = {
        "title": (rule.get("title"),),
        "additionalProperties": (False,),
        "default": (None, "", {}, []),
    }
    kept = {name: each for name, each in rule.items() if each not in idle.get(name, ())}
    return {name: _each(_bare, each) if name == "properties" else _bare(each) for name, each in kept.items()}


def _renamed(rule: Any, names: Mapping[str, str]) -> Any:
    """With the names of this schema in its references."""
    if isinstance(rule, list):
        return [_renamed(each, names) for each in rule]
    if not isinstance(rule, dict):
        return rule
    renamed = {name: _renamed(each, names) for name, each in rule.items()}
    if isinstance(target := rule.get("$ref"), str):
        name = target.removeprefix("#/$defs/")
        renamed["$ref"] = f"#/$defs/{names.get(name, name)}"
    return renamed


def _with_names(rule: Any, named: Json, *, top: bool = False) -> Any:
    """With a reference wherever a type is that has a name."""
    if isinstance(rule, list):
        return [_with_names(each, named) for each in rule]
    if not isinstance(rule, dict):
        return rule
    action = {name: rule[name] for name in ("description", "default") if isinstance(rule.get(name), str)}
    core = {name: each for name, each in rule.items() if name not in action}
    name = next((name for name, each in named.items() if each == core), "")
    if name and not top:
        return {**action, "$ref": f"#/$defs/{name}"}
    return {name: _with_names(each, named) for name, each in rule.items()}


def _each(change: Any, rules: Json) -> Json:
    return {name: change(each) for name, each in rules.items()}


def camel(name: str) -> str:
    return name[:1].lower() + name[1:]


# The lines.


def _tell_names(hello: Json) -> None:
    """Put into the hello which protocols, roles and formats there are, and what types alone do not say."""
    members, found = hello["properties"], list(profiles().values())
    roles = dict.fromkeys(role for profile in found for role in profile.roles)
    formats = dict.fromkeys(word for profile in found for word in profile.formats)
    for name, words in (("protocols", profiles()), ("roles", roles), ("formats", formats)):
        members[name]["items"] = {"enum": list(words)}
    anything = {"description": "All that the library has, or what it connects again by itself."}
    members["caps"] = {
        "type": "object",
        "properties": {"auto_reconnect": anything | members["caps"]["additionalProperties"]},
        "additionalProperties": {"type": "boolean"},
    }
    members["limits"] = {
        "description": "Times in ms but heartbeat_min_s. *_timeout_ms: what the library fixes itself; "
        "*_timeout_min_ms: the smallest that it takes; timeout_factor: how many times its time-out an op may "
        "take until the library notices.",
        "type": "object",
        "properties": {"timeout_factor": {"type": "number", "minimum": 1}},
        "additionalProperties": {"type": "number", "minimum": 0},
    }


def _request(defs: Json) -> Json:
    return {
        "description": "Runner to adapter.",
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "op": {"type": "string", "minLength": 1},
            "args": {"type": "object"},
            "timeout_ms": {"$ref": "#/$defs/milliseconds"},
        },
        "required": ["id", "op"],
        "not": {"required": ["n"]},
        "allOf": [_if("op", name, _arguments(name, defs)) for name in all_ops()],
    }


def _arguments(op: str, defs: Json) -> Json:
    required = {"required": ["args"]} if "required" in defs[f"{op}.args"] else {}
    return {"properties": {"args": {"$ref": f"#/$defs/{op}.args"}}, **required}


def _response() -> Json:
    return {
        "description": "Adapter to runner, exactly one for each request.",
        "type": "object",
        "properties": {
            **_COUNTER,
            "id": {"type": "integer"},
            "ok": {"type": "boolean"},
            "result": {},
            "error": {"$ref": "#/$defs/error"},
        },
        "required": ["n", "t", "id", "ok"],
        "not": {"required": ["event"]},
        "if": {"properties": {"ok": {"const": True}}},
        "then": {"required": ["result"]},
        "else": {"required": ["error"]},
    }


def _event() -> Json:
    places = {name: "message" if kind is Message else f"{name}.event" for name, kind in EVENTS.items()}
    return {
        "description": "Adapter to runner, unasked. Events with other names are ignored.",
        "type": "object",
        "properties": {**_COUNTER, "event": {"type": "string"}},
        "required": ["n", "t", "event"],
        "allOf": [_if("event", name, {"$ref": f"#/$defs/{place}"}) for name, place in places.items()],
    }


def _if(member: str, value: str, then: Json) -> Json:
    return {"if": {"properties": {member: {"const": value}}, "required": [member]}, "then": then}
