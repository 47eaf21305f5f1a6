"""How much harm it does where a scenario fails, as its requirement says."""

from __future__ import annotations

from conformance.results import RowResult
from conformance.suite.load import requirements

#: The gravest first; the last is that of scenarios that are not known here.
GRAVITY = ("critical", "high", "medium", "low", "")


def severity_of(result: RowResult) -> str:
    """How much harm it does where a scenario fails; "" for one that this suite does not know."""
    known = requirements().get(result.id)
    return known.severity if known is not None and known.severity in GRAVITY else ""
