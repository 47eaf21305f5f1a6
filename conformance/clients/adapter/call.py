"""One op on its way, and a child process as it looks from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping
from typing import Any

import msgspec

from conformance.clients.adapter.messages import Request
from conformance.clients.adapter.result import Result


class ProcessFacts(msgspec.Struct, frozen=True):
    """A child process from outside; None where the system does not say.

    Attributes:
        cpu_s: User and system time so far, in seconds.
        rss_bytes: Resident memory.
        peak_bytes: The most that it was since `Adapter.forget_peak`, or since the start.
        exit_code: None while it runs; negative for a signal.
    """

    pid: int
    exit_code: int | None = None
    cpu_s: float | None = None
    rss_bytes: int | None = None
    fds: int | None = None
    threads: int | None = None
    peak_bytes: int | None = None


class Call:
    """An op that has been sent. Await it for its `Result`; it ends by itself, at the latest with ``hang``."""

    def __init__(self, request: Request, begun_ns: int, ended: asyncio.Future[Result]) -> None:
        self.id = request.id
        self.op = request.op
        self.args: Mapping[str, Any] = request.args
        self.timeout_ms = request.timeout_ms  #: what was asked for; the deadline may be the library's
        self.begun_ns = begun_ns
        self._ended = ended

    @property
    def done(self) -> bool:
        """Whether the result is there."""
        return self._ended.done()

    @property
    def result(self) -> Result | None:
        """How it ended; None while it runs."""
        return self._ended.result() if self.done else None

    def __await__(self) -> Generator[Any, None, Result]:
        return asyncio.shield(self._ended).__await__()
