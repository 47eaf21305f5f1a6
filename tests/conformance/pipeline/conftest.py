"""One Spark session for all tests of this folder."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from fakebrokers.errors import UsageError

#: Set it where a missing Spark or Java must fail the tests instead of skipping them.
REQUIRED = "FAKEBROKERS_REQUIRE_SPARK"

# No test leaves a process behind that fills the cache of whoever runs it.
os.environ.setdefault("FAKEBROKERS_CLASS_ARCHIVE", "0")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from conformance.pipeline.session import spark_session

    context = spark_session("local[2]", rows=0, memory="1g")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PySpark's own
            session = context.__enter__()
    except UsageError as error:
        if os.environ.get(REQUIRED):
            raise
        pytest.skip(str(error))
    yield session
    context.__exit__(None, None, None)
