"""How long an op may take, and how long the runner waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from conformance.clients.adapter.messages import Hello

#: Whose fixed time-out (``limits``) is the deadline of an op. ``local`` ops need no broker, so no time-out of
#: the library applies; ``waiting`` ones say themselves how long they wait.
Deadline = Literal["connect", "publish", "close", "request", "local", "waiting"]

#: Of all ops but those that are a request.
_KINDS: Mapping[str, Deadline] = {
    "connect": "connect",
    "close": "close",
    "publish": "publish",
    "publish_many": "publish",
    "next": "waiting",
    "cancel": "local",
    "echo": "local",
    "hello": "local",
    "raise_next": "local",
    "reset": "local",
    "set_clock": "local",
    "set_counter": "local",
    "shutdown": "local",
    "state": "local",
    "stats": "local",
}
DEFAULT_MS = 10_000.0
FIXED_MAX_MS = 30_000.0


def deadline_kind(op: str) -> Deadline:
    """Whose time-out counts for an op."""
    return _KINDS.get(op, "request")


def deadline_ms(hello: Hello | None, op: str, args: Mapping[str, Any], timeout_ms: float | None) -> float:
    """The deadline D of an op: what the library fixes itself (``limits``), else `timeout_ms`.

    A fixed value above 30 s is cut to that; without either, D is 10 s. ``next`` waits ``wait_ms`` longer.
    """
    kind = deadline_kind(op)
    if kind == "waiting":
        return float(args.get("wait_ms", 0)) + (timeout_ms or 0)
    given = DEFAULT_MS if timeout_ms is None else float(timeout_ms)
    return given if hello is None or kind == "local" else deadline_of(hello, kind, given)


def deadline_of(hello: Hello, kind: str, timeout_ms: float) -> float:
    """The deadline of a kind of op (``connect``, ``request``, ``publish``, ``close``), in milliseconds.

    Where time-outs tick (``timeout_factor``), it is when the library has to have noticed at the latest.
    """
    limits = hello.limits
    own = max(limits.get(f"{kind}_timeout_ms", timeout_ms), least_ms(hello, kind))
    late = own * limits.get("timeout_factor", 1.0)
    return min(late, FIXED_MAX_MS) if late != timeout_ms else timeout_ms


def earliest(given: float, deadline: float) -> float:
    """Before when no op ends for want of an answer.

    What is declared in ``limits`` is when it has ended at the latest; a library that looks now and then for
    what is overdue ends it in half of that, and one that keeps to what it is given ends it then.

    Args:
        given: The time-out of the op.
        deadline: What `deadline_of` makes of it, in the same unit.
    """
    return given if deadline == given else min(given, deadline / 2)


def least_ms(hello: Hello, kind: str) -> float:
    """The smallest time-out that the library takes for a kind of op, in milliseconds; 0 without one."""
    limits = hello.limits
    return max(limits.get("timeout_min_ms", 0.0), limits.get(f"{kind}_timeout_min_ms", 0.0))


def patience_ms(deadline: float) -> float:
    """How long the runner waits for an op with that deadline before it records ``hang``."""
    return deadline * 1.2 + 250
