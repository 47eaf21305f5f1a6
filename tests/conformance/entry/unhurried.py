"""A plugin for runs whose verdicts must not depend on the machine: nothing here rests on time, and a client
that had to wait for a processor is judged like any other.
"""

from __future__ import annotations

import math

import pytest

from conformance.suite import lag

_kept = pytest.StashKey[float]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_kept], lag.STARVED_S = lag.STARVED_S, math.inf


def pytest_unconfigure(config: pytest.Config) -> None:
    lag.STARVED_S = config.stash[_kept]
