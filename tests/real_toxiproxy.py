"""Shopify's Toxiproxy, for tests that go through it and through ours alike."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from fakebrokers.proxy.api import ToxiproxyApi
from tests.real_buses import HOST, free_port, wait_for

PROGRAM = "toxiproxy-server"
SOURCE = "github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0"


@contextmanager
def real() -> Iterator[str]:
    """The URL of a fresh one's API; the test is skipped where it is not installed."""
    program = shutil.which(PROGRAM) or shutil.which(PROGRAM, path=Path(sys.executable).parent)
    if program is None:
        pytest.skip(f"missing: {PROGRAM} (go install {SOURCE})")
    port = free_port()
    command = [program, "-host", HOST, "-port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(port, PROGRAM)
            yield f"http://{HOST}:{port}"
        finally:
            process.terminate()


@contextmanager
def ours() -> Iterator[str]:
    """The URL of our own API."""
    with ToxiproxyApi() as api:
        yield f"http://{api.host}:{api.port}"


#: By name; each gives the URL of an API.
TOXIPROXIES: dict[str, Callable[[], AbstractContextManager[str]]] = {"ours": ours, "real": real}

#: The same as parameters of a test.
EACH = ["ours", pytest.param("real", marks=pytest.mark.full)]
