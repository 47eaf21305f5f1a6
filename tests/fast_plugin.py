"""A plugin for ``ci/fast``: proofs of other protocols stay out, and after a while no further test begins.

``FAST_PROTOCOLS`` names folders of protocols; without any, all proofs stay.
"""

from __future__ import annotations

import os
import time

import pytest

#: From the first test on: what comes before takes longer on a busy machine, where tests shall run as well.
LIMIT_S = 30
PROTOCOLS = os.environ.get("FAST_PROTOCOLS", "").replace("_", "-").split()
BEGUN = pytest.StashKey[float]()


def is_of_others(item: pytest.Item) -> bool:
    """Whether it is the proof of a scenario of a protocol that has not changed."""
    callspec = getattr(item, "callspec", None)
    protocol = getattr(callspec.params.get("item"), "protocol", None) if callspec else None
    return protocol is not None and bool(PROTOCOLS) and protocol not in PROTOCOLS


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if is_of_others(item)])
    items[:] = [item for item in items if not is_of_others(item)]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    begun = item.config.stash.setdefault(BEGUN, time.monotonic())
    if time.monotonic() - begun > LIMIT_S:
        pytest.skip(f"left to ci/test: {LIMIT_S} s are over")
