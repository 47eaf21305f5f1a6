"""The OpenAPI document says what the API takes and answers, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from fakebrokers.control.api import ControlApi
from fakebrokers.control.brokers import operations_of
from fakebrokers.control.openapi import document
from fakebrokers.control.routes import BROKER, ROUTES
from fakebrokers.protocol import protocols
from tests.proxy.control import Api

SHIPPED = [each.name for each in protocols() if each.server.startswith("fakebrokers.")]


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    return json.loads(json.dumps(document("", "http://127.0.0.1:1")))


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for each in node.values():
            yield from references(each)
    elif isinstance(node, list):
        for each in node:
            yield from references(each)


def test_it_is_served(api: ControlApi, control: Api) -> None:
    status, answer, headers = control("GET", "/openapi.json")
    assert (status, answer["openapi"], headers["Content-Type"]) == (200, "3.1.0", "application/json")
    assert answer["servers"] == [{"url": api.url}]
    assert f"{BROKER}/create_stream" in answer["paths"]
    narrow = control("GET", "/openapi.json?protocol=pzq")[1]
    assert f"{BROKER}/create_stream" not in narrow["paths"] and f"{BROKER}/expire" in narrow["paths"]
    assert control("GET", "/openapi.json?protocol=pzx")[1]["path"] == "query.protocol"


def test_every_path_is_in_it(whole: dict[str, Any]) -> None:
    asked = {(route.method.lower(), route.path) for route in ROUTES}
    asked |= {("get", "/openapi.json"), ("get", f"{BROKER}/journal"), ("post", f"{BROKER}/wait_for")}
    for protocol in protocols():
        for operation in operations_of(protocol).values():
            asked.add(("post", f"{BROKER}/{operation.name}"))
    told = {(method, path) for path, row in whole["paths"].items() for method in row}
    assert asked <= told
    assert {method for method, _ in told - asked} == {"get"}  # of operations that only read


def test_all_references_lead_somewhere(whole: dict[str, Any]) -> None:
    there = {f"#/components/schemas/{name}" for name in whole["components"]["schemas"]}
    assert set(references(whole)) <= there
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in whole["components"]["schemas"])


def test_identities_are_unique(whole: dict[str, Any]) -> None:
    names = [each["operationId"] for row in whole["paths"].values() for each in row.values()]
    assert len(names) == len(set(names))


def test_it_is_valid(whole: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip(
        "jsonschema", reason="missing: jsonschema (pip install 'fakebrokers[suite]')"
    )
    for schema in whole["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_where_protocols_differ_it_says_so(whole: dict[str, Any]) -> None:
    row = whole["paths"][f"{BROKER}/messages"]
    variants = row["post"]["requestBody"]["content"]["application/json"]["schema"]["anyOf"]
    assert {each["$ref"].rpartition("/")[2] for each in variants} == {
        "rabbitmq_stream.messages",
        "blazingmq.messages",
        "pzq.messages",
        "narconi.messages",
        "redis.messages",
    }
    assert {each["name"]: each["required"] for each in row["get"]["parameters"]} == {
        "broker": True,
        "name": False,
        "uri": False,
        "app_id": False,
        "project": False,
        "queue": False,
        "key": False,
    }


@pytest.mark.parametrize("protocol", SHIPPED)
def test_answers_fit_it(control: Api, protocol: str) -> None:
    """What a fresh broker answers to all that only reads."""
    jsonschema = pytest.importorskip(
        "jsonschema", reason="missing: jsonschema (pip install 'fakebrokers[suite]')"
    )
    whole = control("GET", f"/openapi.json?protocol={protocol}")[1]
    control("POST", "/brokers", {"protocol": protocol, "name": "b"})
    control("POST", "/brokers/b/faults", {"effect": {"type": "drop"}})
    seen = 0
    for path, row in whole["paths"].items():
        asked = row.get("get")
        if asked is None or any(p["required"] and p["name"] != "broker" for p in asked["parameters"]):
            continue
        answer = asked["responses"]["200"]["content"].get("application/json")
        if answer is None:
            continue
        status, got, _ = control("GET", path.replace("{broker}", "b"))
        assert status == 200, path
        jsonschema.validate(got, {**answer["schema"], "components": whole["components"]})
        seen += 1
    assert seen >= 6
    status, refused, _ = control("POST", "/brokers", {"protocol": "x"})
    schema = {"$ref": "#/components/schemas/Problem", "components": whole["components"]}
    jsonschema.validate(refused, schema)
