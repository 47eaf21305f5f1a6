"""The ways to disturb a frame. Each module declares some with `define.act`; none knows a protocol."""

from conformance.sweep.acts import fields, lasting, loss, meaning, order, parts, refusals, timing, uncalled
from conformance.sweep.acts.define import ACTS, Act, Bent, Param, Place

__all__ = [
    "ACTS",
    "Act",
    "Bent",
    "Param",
    "Place",
    "fields",
    "lasting",
    "loss",
    "meaning",
    "order",
    "parts",
    "refusals",
    "timing",
    "uncalled",
]
