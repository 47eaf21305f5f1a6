"""What chaos is known to find of a client, by root cause, and the seeds that a pipeline runs.

    version = 1
    client = "rstream"
    client_version = "1.1.1"
    sweep = "../sweep/rstream.toml"
    seeds = ["1", "4", "7"]

    [[known]]
    invariant = "loss-ends-requests"
    acts = ["crash", "rst*"]
    cause = "the loss of the connection wakes no pending request (client.py, _listener)"

As in the files of the sweep (`conformance.sweep.expected`): ``invariant`` may name an anomaly too, ``acts``
are nemeses, effects and acts, and ``bases`` are workloads. A row fits if any step of the schedule is of its
acts. ``sweep`` names the client's file of the sweep, from the folder of this one: its rows that are about all
acts and bases hold here too.
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from conformance.chaos.acts import REALISM
from conformance.chaos.room import room_of
from conformance.chaos.schedule import DRAWING_VERSION
from conformance.chaos.toxics import TOXIC
from conformance.checkers import NAMES
from conformance.invariants import INVARIANTS
from conformance.sweep.expected import Expected, load_expected, read_expected
from conformance.sweep.specs import PLAIN
from fakebrokers.errors import UsageError
from fakebrokers.faults.drawing import BY_NAME


class Shaken(Expected, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file.

    Attributes:
        seeds: That a pipeline runs, see `fixed`.
        drawing: The version of the drawing that they are meant for.
        sweep: The client's file of the sweep; "" where nothing of it holds here.
    """

    sweep: str = ""
    seeds: tuple[str, ...] = ()
    drawing: int = DRAWING_VERSION


def load_shaken(path: Path, protocol: str) -> Shaken:
    """Read a file. Raises `UsageError` where something is wrong in it."""
    names = {*NAMES, *(each.name for each in INVARIANTS.values())}
    words = {PLAIN, *BY_NAME, *REALISM, *TOXIC, *room_of(protocol).nemeses}
    found = read_expected(path, Shaken, names, words)
    if found.seeds and found.drawing != DRAWING_VERSION:
        raise UsageError(f"{path}: seeds of drawing {found.drawing}, here is {DRAWING_VERSION}: choose anew")
    if not found.sweep:
        return found
    shared = tuple(row for row in load_expected(path.parent / found.sweep).known if row.is_general)
    return replace(found, known=(*found.known, *shared))
