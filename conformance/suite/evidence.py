"""What a run leaves to look at: of the fake, and of the byte proxy in front of it if there was one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.last_words import around_last_words, last_words, plain
from conformance.clients.adapter.transcript import WAITED
from fakebrokers.journal import Journal, Record

LAST_WORDS = 20  #: lines of stderr that the report has; a traceback fits
STDERR = "stderr: "
BRIEF = 8  #: of them on the console, for a failure
VIOLATIONS_SHOWN = 3


def plan_of(server: Any) -> dict[str, Any]:
    """The faults of a fake or a proxy as in a plan file; empty for what has none, such as a real broker."""
    found: dict[str, Any] = server.faults.plan.to_dict() if hasattr(server, "faults") else {}
    return found


def proxy_of(broker: Any) -> Any:
    """The byte proxy that stood in front of a fake, or None."""
    return getattr(broker, "proxy", None)


def records_of(broker: Any) -> list[Record]:
    """The wire journal, in the order of time; the proxy's connections are called ``proxy c1`` and so on.

    Times of both count from the fake's start.
    """
    wire: Journal | None = getattr(broker, "journal", None)
    if wire is None:
        return []
    proxy = proxy_of(broker)
    if proxy is None:
        return wire.records()
    late_s = proxy.journal.started_at - wire.started_at
    seen = [
        msgspec.structs.replace(record, at=record.at + late_s, connection=f"proxy {record.connection}")
        for record in proxy.journal.records()
    ]
    return sorted([*wire.records(), *seen], key=lambda record: record.at)


def trouble_of(adapter: Adapter, mark: int) -> tuple[str, ...]:
    """What an adapter itself did wrong or said of it: lines that break its protocol, its end, its last words.

    Args:
        mark: The position in its stderr at which the run began.
    """
    found = [f"broke its protocol: {each}" for each in adapter.violations[:VIOLATIONS_SHOWN]]
    facts = adapter.facts()
    if facts is not None and facts.exit_code is not None:
        found.append(f"ended with {_status(facts.exit_code)}")
    stderr = adapter.stderr(mark)
    words = [] if adapter.alive else around_last_words(stderr)
    said = [line.strip() for line in plain(stderr).splitlines() if line.strip()]
    return (*found, *(f"{STDERR}{line}" for line in words or said[-LAST_WORDS:]))


def brief(trouble: Sequence[str], lines: int = BRIEF) -> list[str]:
    """What went wrong in an adapter, for the console: of its stderr the last lines alone."""
    said = [text for text in trouble if text.startswith(STDERR)]
    return [text for text in trouble if text not in said[:-lines]]


def end_of(adapter: Adapter, mark: int) -> str:
    """When and why the adapter's process ended, in one sentence; "" while it lives.

    What ended it may lie well before the op that found it gone, and be of another session.
    """
    if adapter.alive:
        return ""
    words = last_words(adapter.stderr(mark))
    return f"the client's process ended{_when(adapter)}{words and f': {words}'}"


def _when(adapter: Adapter) -> str:
    """How long after which op; "" where something else holds its pipes, or no op came before."""
    asked: dict[int, Mapping[str, Any]] = {}
    last = ""
    for line in adapter.transcript.lines:
        if adapter.ended_ns is None or line.at_ns > adapter.ended_ns:
            break
        value = line.value
        if line.way == "out":
            asked[value["id"]] = value
        number = value.get("id") if isinstance(value, Mapping) else None
        if line.way == WAITED or not isinstance(number, int) or number not in asked:
            continue
        request = asked[number]
        session = (request.get("args") or {}).get("session", "")
        late_s = (adapter.ended_ns - line.at_ns) / 1e9
        word = "asked" if line.way == "out" else "answered"
        last = f" {late_s:.2f} s after {request['op']}{session and f' of {session}'} was {word}"
    return last


def _status(code: int) -> str:
    return f"exit status {code}" if code >= 0 else f"signal {-code}"
