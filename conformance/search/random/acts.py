"""Acts of the sweep in schedules: which of an act's parameters is taken, the seed decides at the frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.run.acts import ACTS, InjectionPoint
from conformance.run.acts.inside import opened
from conformance.run.material import traits_of
from fakebrokers.faults import Realism
from fakebrokers.faults.effect import Effect, Passage

#: Those that no effect of a fault plan does better.
REALISM: Mapping[str, Realism] = {
    "goodbye": Realism.ENVIRONMENT,
    "cut": Realism.ENVIRONMENT,
    "cut-fin": Realism.ENVIRONMENT,
    "rst-before": Realism.ENVIRONMENT,
    "trickle": Realism.LEGAL,
    "split": Realism.LEGAL,
    "field": Realism.ILLEGAL,
    "payload": Realism.ILLEGAL,
    "contradict": Realism.ILLEGAL,
    "type": Realism.ILLEGAL,
    "version": Realism.ILLEGAL,
    "shape": Realism.ILLEGAL,
    "number": Realism.ILLEGAL,
    "twice-late": Realism.ILLEGAL,
    "part": Realism.ILLEGAL,
    "unasked": Realism.ILLEGAL,
}


class DrawnAct(Effect, frozen=True, tag="drawn-act"):
    """An act with a parameter that is drawn where it takes place.

    Attributes:
        act: Its name.
        protocol: Whose traits say what may be drawn.
        did: A list that takes down which; None: nobody asks.
    """

    takes_raw = True

    act: str
    protocol: str
    did: Any = None

    def apply(self, passage: Passage) -> None:
        frame = passage.frame
        if frame is None:
            passage.pass_through()
            return
        act, traits = ACTS[self.act], traits_of(self.protocol)
        inner = opened(frame)
        place = InjectionPoint(passage.connection, passage.direction, 1, inner, passage.size, 1, passage.data)
        choices = [param for _, param in act.params(place, traits)]
        if not choices:
            passage.pass_through()
            return
        param = passage.random.choice(choices)
        if self.did is not None:
            self.did.append(f"{self.act} {param!r} at {type(inner).__name__} of {passage.connection}")
        for effect in act.effects(param, traits):
            effect.apply(passage)
