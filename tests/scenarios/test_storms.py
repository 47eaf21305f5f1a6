"""When attempts to reconnect are a storm, by the times at which they came."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scenarios.net.reconnecting import _no_storm


@pytest.mark.parametrize(("times", "holds"), [
    ([1.0 * n for n in range(1, 15)], True),  # 4 in the first 5 s, 5 in the last
    ([5.0 * n for n in range(1, 3)], True),
    ([1.0, 3.0, 7.0], True),
    ([1.0, 2.0, 10.0, 10.5, 11.0, 12.0], False),
    ([0.1 * n for n in range(150)], False),
], ids=["each second", "every 5 s", "growing", "more and more", "without a pause"])  # fmt: skip
def test_a_fixed_pause_is_no_storm(times: list[float], holds: bool) -> None:
    said: list[bool] = []
    expect = SimpleNamespace(that=lambda ok, *_, **__: said.append(ok), note=lambda text: None)
    subject: Any = SimpleNamespace(expect=expect, attempts_in_15_s=30, retries_steadily=False)
    _no_storm(subject, "b", times, 1)
    assert all(said) is holds
