"""The report in a real browser: how long it takes until it is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.report.test_browser import browser, loaded

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]

__all__ = ["browser"]  # the fixture


def test_eight_clients_are_on_the_screen_in_a_second(browser: Any, tmp_path: Path) -> None:
    """CPU seconds of the page's own process until it has loaded."""
    seconds = loaded(browser, tmp_path, 8)["ProcessTime"]
    print(f"8 clients: {seconds:.2f} s of processor time")
    assert 0 < seconds < 1
