"""What chaos is known to find of a client, by root cause, and the seeds that a pipeline runs.

    version = 1
    client = "rstream"
    client_version = "1.1.1"
    seeds = ["1", "4", "7"]

    [[known]]
    invariant = "loss-ends-requests"
    acts = ["crash", "rst*"]
    cause = "the loss of the connection wakes no pending request (client.py, _listener)"

As in the files of the sweep (`conformance.sweep.expected`): ``invariant`` may name an anomaly too, ``acts``
are nemeses, effects and acts, and ``bases`` are workloads. A row fits if any step of the schedule is of its
acts.
"""

from __future__ import annotations

from pathlib import Path

from conformance.chaos.acts import REALISM
from conformance.chaos.effects import BY_NAME
from conformance.chaos.room import room_of
from conformance.chaos.schedule import DRAWING_VERSION
from conformance.chaos.toxics import TOXIC
from conformance.checkers import NAMES
from conformance.invariants import INVARIANTS
from conformance.sweep.expected import Expected, read_expected
from conformance.sweep.specs import PLAIN
from fakebrokers.errors import UsageError


class Shaken(Expected, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file.

    Attributes:
        seeds: That a pipeline runs, see `fixed`.
        drawing: The version of the drawing that they are meant for.
    """

    seeds: tuple[str, ...] = ()
    drawing: int = DRAWING_VERSION


def load_shaken(path: Path, protocol: str) -> Shaken:
    """Read a file. Raises `UsageError` where something is wrong in it."""
    names = {*NAMES, *(each.name for each in INVARIANTS.values())}
    words = {PLAIN, *BY_NAME, *REALISM, *TOXIC, *room_of(protocol).nemeses}
    found = read_expected(path, Shaken, names, words)
    if found.seeds and found.drawing != DRAWING_VERSION:
        raise UsageError(f"{path}: seeds of drawing {found.drawing}, here is {DRAWING_VERSION}: choose anew")
    return found
