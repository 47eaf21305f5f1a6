"""The ways to disturb a frame. Each module declares some with `define.act`; none knows a protocol."""

from conformance.run.acts import (
    entries,
    fields,
    lasting,
    loss,
    meaning,
    order,
    parts,
    refusals,
    spelling,
    timing,
    uncalled,
)
from conformance.run.acts.define import ACTS, Act, InjectionPoint, Param, fault_of

__all__ = [
    "ACTS",
    "Act",
    "InjectionPoint",
    "Param",
    "entries",
    "fault_of",
    "fields",
    "lasting",
    "loss",
    "meaning",
    "order",
    "parts",
    "refusals",
    "spelling",
    "timing",
    "uncalled",
]
