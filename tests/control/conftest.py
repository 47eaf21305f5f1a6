"""A control API without brokers, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fakebrokers.control.api import ControlApi
from fakebrokers.control.brokers import Brokers
from tests.proxy.control import Api


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    brokers = Brokers()
    yield brokers
    brokers.close()
    brokers.check()


@pytest.fixture
def api(brokers: Brokers) -> Iterator[ControlApi]:
    with ControlApi(brokers) as api:
        yield api


@pytest.fixture
def control(api: ControlApi) -> Api:
    """What a client says: method, path and body."""
    return Api(api.url)
