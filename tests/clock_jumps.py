"""A machine whose wall clock jumps by years."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle

import pytest

from fakebrokers.core import clock, engine

YEAR_S = 365.25 * 86_400
#: How far off the wall clock is, each time that somebody looks at it: a jump of ten years forth, of twenty
#: years back, and where it was.
OFF_S = [0.0, 10 * YEAR_S, -10 * YEAR_S, 0.0, 0.0, -10 * YEAR_S]


def _jumping(real: Callable[..., float]) -> Callable[..., float]:
    off = cycle(OFF_S)
    return lambda *arguments: real(*arguments) + next(off)


@contextmanager
def jumps() -> Iterator[None]:
    """The machine's clock jumps, and so does what the brokers show."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", _jumping(time.time))
        patch.setattr(clock, "_wall", _jumping(clock._wall))
        patch.setattr(engine.Clock, "wall", _jumping(engine.Clock.wall))
        yield
