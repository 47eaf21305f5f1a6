"""The correct client behind an adapter that reports wrongly to the application: one lie each.

On the wire nothing is wrong, so only rules about what the application can observe find them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.reference.registry import reference, without_sockets

Json = dict[str, Any]
#: From a line, and the number of lines of its kind so far, to the lines that are written in its place.
Lie = Callable[[Json, int], Iterable[Json]]
EVERY = 3  #: the n-th line of a kind is reported wrongly, where a lie is not about all of them
LATE_S = 6.0


class Late(Exception):
    """The line is written later."""


def lying(protocol: str, lie: Lie) -> type[AdapterBase]:
    """The correct client, whose lines go through a lie."""

    class Lying(reference(protocol)):  # type: ignore[misc] # found by its name
        def _write(self, line: Json) -> None:
            counts = self.__dict__.setdefault("_counts", {})
            kind = line.get("event", "answer")
            counts[kind] = counts.get(kind, 0) + 1
            try:
                for each in lie(dict(line), counts[kind]):
                    super()._write(each)
            except Late:
                asyncio.get_running_loop().call_later(LATE_S, super()._write, line)

    return without_sockets(Lying)


def _twice(event: str, what: str = "") -> Lie:
    def lie(line: Json, number: int) -> Iterable[Json]:
        return [line, line] if _is(line, event, what) else [line]

    return lie


def _lost(event: str, what: str = "") -> Lie:
    def lie(line: Json, number: int) -> Iterable[Json]:
        return [] if _is(line, event, what) and (what or number % EVERY == 0) else [line]

    return lie


def _late(event: str) -> Lie:
    def lie(line: Json, number: int) -> Iterable[Json]:
        if _is(line, event):
            raise Late
        return [line]

    return lie


def _is(line: Json, event: str, what: str = "") -> bool:
    return line.get("event") == event and what in ("", line.get("what"))


def _error(**changed: Any) -> Lie:
    """All errors of ops are reported with these members; a function makes them of the error."""

    def lie(line: Json, number: int) -> Iterable[Json]:
        error = line.get("error")
        if line.get("ok") is False and isinstance(error, dict):
            new = {name: value(error) if callable(value) else value for name, value in changed.items()}
            line["error"] = {**error, **new}
        return [line]

    return lie


def _answers_late(line: Json, number: int) -> Iterable[Json]:
    if "event" not in line and number > 2 * EVERY and number % EVERY == 0:
        raise Late
    return [line]


def _always_open(line: Json, number: int) -> Iterable[Json]:
    result = line.get("result")
    if isinstance(result, dict) and "open" in result:
        line["result"] = {**result, "open": True}
    return [line]


LIES: Mapping[str, Lie] = {
    "a message twice": _twice("message"),
    "a message lost": _lost("message"),
    "messages late": _late("message"),
    "an outcome twice": _twice("outcome"),
    "an outcome lost": _lost("outcome"),
    "outcomes late": _late("outcome"),
    "answers late": _answers_late,
    "a loss twice": _twice("session", "connection_lost"),
    "a loss never": _lost("session", "connection_lost"),
    "losses late": _late("session"),
    "every error a time-out": _error(kind="timeout"),
    "every error a loss": _error(kind="connection"),
    "every error internal": _error(kind="internal"),
    "every error a refusal": _error(kind="refused"),
    "definite turned round": _error(definite=lambda error: not error.get("definite", False)),
    "always open": _always_open,
}
