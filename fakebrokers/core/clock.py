"""The clocks of all fakes: real ones, whatever a test has made of the module `time`.

freezegun puts functions of its own in the place of those of `time` in every module, and time-machine changes
what they return. A fake whose timers stood still would deliver nothing that a fault has delayed.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import BuiltinImporter
from importlib.util import module_from_spec


def _unknown_to_others() -> tuple[Callable[[], float], Callable[[], float]]:
    """`time.monotonic` and `time.time` of a second module `time`, of which freezegun does not know."""
    spec = BuiltinImporter.find_spec("time")
    assert spec is not None, "time is built into Python"
    own = module_from_spec(spec)
    BuiltinImporter.exec_module(own)
    return own.monotonic, own.time


_datetime = datetime.datetime  # a simulation may show another one later

#: Seconds that only ever pass; the same as `time.monotonic` where nobody has changed that.
monotonic, _wall = _unknown_to_others()


def wall() -> float:
    """Seconds since 1970, really."""
    machine = sys.modules.get("time_machine")
    if machine is not None and machine.escape_hatch.is_travelling():
        return float(machine.escape_hatch.time.time())
    return _wall()


@contextmanager
def real_dates() -> Iterator[None]:
    """Show the real `datetime.datetime` meanwhile, for libraries that keep the one that they see first.

    cryptography does: once it has made a certificate in frozen time, it takes none but freezegun's dates.
    """
    freezegun = sys.modules.get("freezegun.api")
    shown = datetime.datetime
    vars(datetime)["datetime"] = _datetime if freezegun is None else freezegun.real_datetime
    try:
        yield
    finally:
        vars(datetime)["datetime"] = shown
