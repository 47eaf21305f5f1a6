"""The effects that every protocol has; a protocol's own are in its ``faults.py``."""

from fakebrokers.faults.effects.batch import Join, Split
from fakebrokers.faults.effects.corrupt import Corrupt
from fakebrokers.faults.effects.delay import Delay, Latency
from fakebrokers.faults.effects.drop import Drop
from fakebrokers.faults.effects.duplicate import Duplicate
from fakebrokers.faults.effects.end import Fin, HalfOpen, Rst, Stall
from fakebrokers.faults.effects.extend import Extend
from fakebrokers.faults.effects.hold import Hold
from fakebrokers.faults.effects.inject import Inject, Reply
from fakebrokers.faults.effects.overwrite import Overwrite
from fakebrokers.faults.effects.reorder import Reorder
from fakebrokers.faults.effects.rewrite import Rewrite
from fakebrokers.faults.effects.silent import Silent
from fakebrokers.faults.effects.slice import Coalesce, Slice, Throttle
from fakebrokers.faults.effects.truncate import Truncate
from fakebrokers.faults.effects.whole import BlackHole, Crash, Refuse, ShiftClock

__all__ = [
    "BlackHole",
    "Coalesce",
    "Corrupt",
    "Crash",
    "Delay",
    "Drop",
    "Duplicate",
    "Extend",
    "Fin",
    "HalfOpen",
    "Hold",
    "Inject",
    "Join",
    "Latency",
    "Overwrite",
    "Refuse",
    "Reorder",
    "Reply",
    "Rewrite",
    "Rst",
    "ShiftClock",
    "Silent",
    "Slice",
    "Split",
    "Stall",
    "Throttle",
    "Truncate",
]
