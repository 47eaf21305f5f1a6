"""What a run leaves to look at: of the fake, and of the byte proxy in front of it if there was one."""

from __future__ import annotations

from typing import Any

import msgspec

from conformance.adapter.base import Adapter
from fakebrokers.journal import Journal, Record

LAST_WORDS = 3  #: lines of stderr
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
    words = [line.strip() for line in adapter.stderr(mark).splitlines() if line.strip()]
    return (*found, *(f"stderr: {line}" for line in words[-LAST_WORDS:]))


def _status(code: int) -> str:
    return f"exit status {code}" if code >= 0 else f"signal {-code}"
