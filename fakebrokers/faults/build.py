"""Faults in one line of Python: ``drop(role="confirm", nth=3)``.

Each function is named like its effect. Arguments named like a setting of the effect go to the effect,
``name`` and ``realism`` to the fault, all others to the `Match`; the effect's settings may be given by
position: ``latency(0.3, jitter=0.1, role="confirm")``. Their types are in the stub beside this file.
"""

from __future__ import annotations

from fakebrokers.faults import effects
from fakebrokers.faults.making import builder, fault, sweep

__all__ = ["fault", "sweep"]

black_hole = builder(effects.BlackHole)
coalesce = builder(effects.Coalesce)
corrupt = builder(effects.Corrupt)
crash = builder(effects.Crash)
delay = builder(effects.Delay)
drop = builder(effects.Drop)
duplicate = builder(effects.Duplicate)
extend = builder(effects.Extend)
fin = builder(effects.Fin)
half_open = builder(effects.HalfOpen)
hold = builder(effects.Hold)
inject = builder(effects.Inject)
latency = builder(effects.Latency)
refuse = builder(effects.Refuse)
reorder = builder(effects.Reorder)
reply = builder(effects.Reply)
rewrite = builder(effects.Rewrite)
rst = builder(effects.Rst)
shift_clock = builder(effects.ShiftClock)
silent = builder(effects.Silent)
slice_ = builder(effects.Slice)
stall = builder(effects.Stall)
throttle = builder(effects.Throttle)
truncate = builder(effects.Truncate)
