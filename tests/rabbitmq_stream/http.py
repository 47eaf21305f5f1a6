"""A client of the management API."""

from __future__ import annotations

import base64
import json
import urllib.request
from typing import Any
from urllib.error import HTTPError

from fakebrokers import RabbitMQStream
from tests.eventually import PATIENCE_S


def login(user: str, password: str) -> str:
    """The header Authorization."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def request(
    broker: RabbitMQStream, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, Any]:
    """Status and JSON value of the answer; None: there is none. ``guest`` asks by default."""
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    wanted = {"Authorization": login("guest", "guest"), **headers}
    asked = urllib.request.Request(broker.urls["management"] + path, method=method, data=data, headers=wanted)
    try:
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            return answer.status, _value(answer.read())
    except HTTPError as error:
        with error:
            return error.code, _value(error.read())


def _value(text: bytes) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text


def reason(answer: tuple[int, Any]) -> str:
    """Why a request was refused with 400."""
    status, told = answer
    assert (status, told["error"]) == (400, "bad_request"), answer
    return str(told["reason"])
