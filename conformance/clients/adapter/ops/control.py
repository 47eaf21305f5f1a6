"""The ops about requests, callbacks, clocks and the adapter itself."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from conformance.clients.adapter.ops.define import EVERY_ROLE, Arguments, Incoming, Op, ops_in
from conformance.clients.adapter.ops.values import Integer64, Natural

_ALL = (EVERY_ROLE,)


class Cancel(Arguments, frozen=True):
    """Cancel a running request."""

    spec = Op("cancel", capability="cancel")

    id: int


class RaiseNextResult(Incoming, frozen=True):
    """False where the library has no such callback."""

    armed: bool


class RaiseNext(Arguments, frozen=True):
    """Let the next callbacks of a kind raise, on the library's thread."""

    spec = Op("raise_next", RaiseNextResult, capability="callback_raise")

    callback: Literal["message", "confirm", "session", "error"]
    session: str | UnsetType = UNSET
    times: Natural = 1


class SetClock(Arguments, frozen=True):
    """Move the wall clock as the library sees it."""

    spec = Op("set_clock", capability="clock_offset")

    offset_ms: float


class SetCounter(Arguments, frozen=True):
    """Set a counter of the library."""

    spec = Op("set_counter", capability="counter_seed")

    session: str
    which: Literal["correlation", "publishing", "request"]
    value: Integer64


class StatsResult(Incoming, frozen=True):
    """As far as known; other numbers are welcome."""

    threads: float | None = None
    tasks: float | None = None
    timers: float | None = None
    pending: float | None = None
    buffered_bytes: float | None = None


class Stats(Arguments, frozen=True):
    """Report what the process holds."""

    spec = Op("stats", StatsResult, capability="stats")


class Reset(Arguments, frozen=True):
    """Go back to the state after hello."""

    spec = Op("reset", needed_by=_ALL)


class Shutdown(Arguments, frozen=True):
    """Answer, then exit with 0."""

    spec = Op("shutdown", needed_by=_ALL)


OPS = ops_in(globals())
