"""Faults: data that says what goes wrong, when, and how often.

from fakebrokers.faults import drop
broker.faults.add(drop(role="confirm", nth=3))
"""

from fakebrokers.faults.build import (
    black_hole,
    coalesce,
    corrupt,
    crash,
    delay,
    drop,
    duplicate,
    extend,
    fault,
    fin,
    half_open,
    hold,
    inject,
    latency,
    refuse,
    reorder,
    reply,
    rewrite,
    rst,
    shift_clock,
    silent,
    slice_,
    stall,
    sweep,
    throttle,
    truncate,
)
from fakebrokers.faults.effect import Effect, Realism
from fakebrokers.faults.match import Match, Moment
from fakebrokers.faults.plan import Fault, Plan, load_plan

__all__ = [
    "Effect",
    "Fault",
    "Match",
    "Moment",
    "Plan",
    "Realism",
    "black_hole",
    "coalesce",
    "corrupt",
    "crash",
    "delay",
    "drop",
    "duplicate",
    "extend",
    "fault",
    "fin",
    "half_open",
    "hold",
    "inject",
    "latency",
    "load_plan",
    "refuse",
    "reorder",
    "reply",
    "rewrite",
    "rst",
    "shift_clock",
    "silent",
    "slice_",
    "stall",
    "sweep",
    "throttle",
    "truncate",
]
