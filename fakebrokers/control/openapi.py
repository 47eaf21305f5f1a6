"""The OpenAPI document: made of the same table and the same types that requests are read with."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from inspect import cleandoc
from typing import Any

import msgspec

from fakebrokers.control import routes, rows
from fakebrokers.control.brokers import operations_of
from fakebrokers.control.describe import BoundOperation
from fakebrokers.control.problems import Problem, Refusal
from fakebrokers.control.values import BODY_SCHEMA, Body
from fakebrokers.errors import UsageError
from fakebrokers.faults.schema import plan_schema
from fakebrokers.protocol import Protocol, find_protocol, protocols
from fakebrokers.version import __version__

Schema = dict[str, Any]

_REFERENCE = "#/components/schemas/{name}"
_PLACE = re.compile(r"\{(\w+)\}")
#: What routes that read a fault plan refer to.
_PLAN = {"anyOf": [{"$ref": "#/components/schemas/plan"}, {"$ref": "#/components/schemas/plan.Fault"}]}


def document(protocol: str, url: str) -> Schema:
    """The document.

    Args:
        protocol: Only what the brokers of one protocol have; "" for all.
        url: Where the API is.

    Raises:
        Refusal: There is no such protocol.
    """
    try:
        wanted = [find_protocol(protocol)] if protocol else protocols()
    except UsageError as error:
        raise Refusal(400, "query.protocol", str(error)) from None
    operations = _by_name(wanted)
    schemas = _Schemas(operations, wanted)
    paths: dict[str, Schema] = {}
    for route in routes.ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _of_route(route, schemas)
    for path, method, row in _special(schemas):
        paths.setdefault(path, {})[method] = row
    for name, variants in operations.items():
        paths[f"{routes.BROKER}/{name}"] = _of_operation(name, variants, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "fakebrokers", "version": __version__},
        "servers": [{"url": url}],
        "paths": paths,
        "components": {"schemas": dict(sorted(schemas.components.items()))},
    }


def _by_name(wanted: Iterable[Protocol]) -> dict[str, dict[BoundOperation, list[str]]]:
    """Operations by name; those of one name that differ, each with the protocols that have it."""
    found: dict[str, dict[BoundOperation, list[str]]] = {}
    for protocol in wanted:
        for name, operation in operations_of(protocol).items():
            found.setdefault(name, {}).setdefault(operation, []).append(protocol.name)
    return found


class _Schemas:
    """The schema of each type that is used, and the components that they refer to."""

    def __init__(
        self, operations: Mapping[str, Mapping[BoundOperation, Any]], wanted: Iterable[Protocol]
    ) -> None:
        kinds: list[Any] = [Problem, rows.JournalRow, rows.Wanted, rows.JournalQuery, rows.DocumentQuery]
        options = {each.name: each.load_control().options for each in wanted}
        kinds += options.values()
        for route in routes.ROUTES:
            kinds += [route.reads, route.answers]
        for variants in operations.values():
            for operation in variants:
                kinds += [operation.arguments, operation.returns]
        kinds = [kind for kind in dict.fromkeys(map(_Key, kinds))]
        schemas, self.components = msgspec.json.schema_components(
            [key.kind for key in kinds], schema_hook=_hook, ref_template=_REFERENCE
        )
        self._of = dict(zip(kinds, map(_with_bodies, schemas), strict=True))
        for each in self.components.values():
            if "description" in each:  # Python 3.13 takes the indentation out of docstrings
                each["description"] = cleandoc(each["description"])
        self.components = {name: _with_bodies(each) for name, each in self.components.items()}
        self.components["Body"] = BODY_SCHEMA
        plan = json.loads(json.dumps(plan_schema()).replace("#/$defs/", "#/components/schemas/plan."))
        del plan["$schema"]
        self.components |= {f"plan.{name}": schema for name, schema in plan.pop("$defs").items()}
        self.components["plan"] = plan
        self.options = {name: self._of[_Key(kind)] for name, kind in options.items()}

    def of(self, kind: Any) -> Schema:
        """The schema of a type."""
        schema: Schema = self._of[_Key(kind)]
        return schema

    def parameters(self, kind: Any) -> list[Schema]:
        """The fields of a struct, as they stand in a query."""
        name = self.of(kind)["$ref"].rpartition("/")[2]
        struct = self.components[name]
        needed = struct.get("required", ())
        return [
            {"name": field, "in": "query", "required": field in needed, "schema": schema}
            for field, schema in struct["properties"].items()
        ]


class _Key:
    """A type as a key: some that Python takes for equal (``list[int]``) are, others cannot be hashed."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def __hash__(self) -> int:
        return hash(repr(self.kind))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and (self.kind is other.kind or self.kind == other.kind)


def _with_bodies(schema: Any) -> Any:
    """The schema with bodies where msgspec would have base64."""
    if isinstance(schema, list):
        return [_with_bodies(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("contentEncoding") == "base64":
        return {"$ref": _REFERENCE.format(name="Body")}
    return {name: _with_bodies(each) for name, each in schema.items()}


def _hook(kind: Any) -> Schema:
    if kind is Body:
        return {"$ref": _REFERENCE.format(name="Body")}
    raise NotImplementedError(kind)


def _of_route(route: routes.Route, schemas: _Schemas) -> Schema:
    row: Schema = {
        "summary": route.about,
        "operationId": route.act.__name__,
        "parameters": _places(route.path),
    }
    if route.method in ("GET", "DELETE"):
        row["parameters"] += schemas.parameters(route.reads)
    elif route.reads is Any:
        row["requestBody"] = _json(_PLAN)
    elif route.reads is not routes.Nothing:
        row["requestBody"] = _json(schemas.of(route.reads))
        if route.reads is rows.NewBroker:
            row["description"] = "Options by protocol are the components " + ", ".join(
                f"{name}: {schema['$ref'].rpartition('/')[2]}" for name, schema in schemas.options.items()
            )
    answer = schemas.of(route.answers) if route.answers is not None else None
    return {**row, "responses": _responses(route.status if answer else 204, answer)}


def _of_operation(name: str, variants: Mapping[BoundOperation, list[str]], schemas: _Schemas) -> Schema:
    """An operation; where protocols differ, one of several bodies and answers."""
    about = "\n\n".join(
        f"{', '.join(names)}: {each.about}" if len(variants) > 1 else each.about
        for each, names in variants.items()
    )
    answers = [schemas.of(each.returns) for each in variants if each.returns is not None]
    common: Schema = {
        "summary": about.splitlines()[0] if about else name,
        "description": about,
        "tags": sorted({each for names in variants.values() for each in names}),
        "responses": _responses(200 if answers else 204, _one_of(answers)),
        **({"deprecated": True} if all(each.is_old for each in variants) else {}),
    }
    path = f"{routes.BROKER}/{{operation}}"
    places = [place for place in _places(path) if place["name"] != "operation"]
    bodies = [schemas.of(each.arguments) for each in variants]
    needed = any(schemas.components[body["$ref"].rpartition("/")[2]].get("required") for body in bodies)
    found: Schema = {
        "post": {
            **common,
            "operationId": name,
            "parameters": places,
            "requestBody": {**_json(_one_of(bodies)), "required": needed},
        }
    }
    if all(each.reads for each in variants):
        lists = [schemas.parameters(each.arguments) for each in variants]
        needed_by = Counter(row["name"] for each in lists for row in each if row["required"])
        parameters = {row["name"]: row for each in lists for row in each}
        for row in parameters.values():
            row["required"] = needed_by[row["name"]] == len(variants)
        found["get"] = {**common, "operationId": f"get_{name}", "parameters": [*places, *parameters.values()]}
    return found


def _special(schemas: _Schemas) -> Iterable[tuple[str, str, Schema]]:
    """What the server answers by itself: the journal, waiting, and this document."""
    lines = {
        "200": {
            "description": "JSON lines",
            "content": {"application/x-ndjson": {"schema": schemas.of(rows.JournalRow)}},
        }
    }
    place = _places(routes.BROKER)
    yield (
        f"{routes.BROKER}/journal",
        "get",
        {
            "summary": "The journal as JSON lines; with follow=1 what comes, too.",
            "operationId": "journal",
            "parameters": [*place, *schemas.parameters(rows.JournalQuery)],
            "responses": {**lines, "default": _refused()},
        },
    )
    yield (
        f"{routes.BROKER}/wait_for",
        "post",
        {
            "summary": "Wait until the journal has so many records that match; 408 if it does not in time.",
            "operationId": "wait_for",
            "parameters": place,
            "requestBody": _json(schemas.of(rows.Wanted)),
            "responses": _responses(200, {"type": "array", "items": schemas.of(rows.JournalRow)}),
        },
    )
    yield (
        "/openapi.json",
        "get",
        {
            "summary": "This document.",
            "operationId": "openapi",
            "parameters": schemas.parameters(rows.DocumentQuery),
            "responses": _responses(200, {"type": "object"}),
        },
    )


def _places(path: str) -> list[Schema]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PLACE.findall(path)
    ]


def _one_of(schemas: list[Schema]) -> Schema | None:
    different = [schema for number, schema in enumerate(schemas) if schema not in schemas[:number]]
    if not different:
        return None
    return different[0] if len(different) == 1 else {"anyOf": different}


def _json(schema: Schema | None) -> Schema:
    return {"content": {"application/json": {"schema": schema or {}}}}


def _responses(status: int, schema: Schema | None) -> Schema:
    told: Schema = {"description": "Done"}
    if schema is not None:
        told |= _json(schema)
    return {str(status): told, "default": _refused()}


def _refused() -> Schema:
    return {"description": "Refused", **_json({"$ref": _REFERENCE.format(name="Problem")})}
