"""A server, the control API, and a proxy made through it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakebrokers.proxy.api import ToxiproxyApi
from tests.proxy.control import Api
from tests.toy import Toy


@pytest.fixture
def toy() -> Iterator[Toy]:
    with Toy() as toy:
        yield toy


@pytest.fixture
def service() -> Iterator[ToxiproxyApi]:
    with ToxiproxyApi(seed=4) as api:
        yield api


@pytest.fixture
def api(service: ToxiproxyApi) -> Api:
    return Api(service.url)


@pytest.fixture
def proxy(api: Api, toy: Toy) -> dict[str, Any]:
    status, made, _ = api("POST", "/proxies", {"name": "p", "upstream": f"127.0.0.1:{toy.port}"})
    assert status == 201
    return made
