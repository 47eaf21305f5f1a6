"""Debian's Chromium, for tests of pages: offline, and nothing may go wrong on a page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.eventually import PATIENCE_S

PATIENCE_MS = 2 * PATIENCE_S * 1000  #: a browser has several processes that want a processor
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser; skips where it, or playwright, is missing."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="missing: playwright (pip install playwright)"
    )
    path = os.environ.get("FAKEBROKERS_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("missing: chromium (apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS, timeout=PATIENCE_MS)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, url: str, width: int, height: int) -> Iterator[Any]:
    """A page, dark and without network: no error, no request, no foreign program, as wide as its window."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark", offline=True
    )
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on(
        "request", lambda call: None if call.url.startswith(("file:", "data:")) else problems.append(call.url)
    )
    page.goto(url)
    yield page
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert problems == []
    context.close()
