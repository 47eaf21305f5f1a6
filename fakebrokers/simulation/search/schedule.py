"""What one run of a search is, as plain values, and the file of one that failed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from fakebrokers.errors import UsageError
from fakebrokers.faults.plan import fault_from
from fakebrokers.faults.steps import FAULT, Step, fewer, simpler
from fakebrokers.files import json_of

#: Of schedules with other rules of drawing: the same seed promises the same schedule within one version.
VERSION = 1
KIND = "simulation"
#: Seeds that follow each other and have the same order of sets of strings (``PYTHONHASHSEED``).
SEEDS_OF_A_HASH = 200


class Schedule(msgspec.Struct, frozen=True):
    """One run. Equal schedules run alike, byte for byte.

    Attributes:
        seconds: Virtual time in which the faults are.
        shuffle: Whether the order of ready tasks is drawn.
        steps: What disturbs it; a step of the kind ``fault`` has a row of a fault plan.
        choices: Decide which rules of a state machine run, see `machine`.
    """

    seed: int
    seconds: float
    shuffle: bool = False
    steps: tuple[Step, ...] = ()
    choices: bytes = b""

    @property
    def healed_s(self) -> float:
        """When the last fault is over."""
        return max((step.at_s + step.for_s for step in self.steps), default=0.0)


def words_of(step: Step) -> str:
    """A step for people; a fault at frames as it is written in a test."""
    if step.kind != FAULT:
        return str(step)
    fault = fault_from({**step.args, "name": ""}, step.name)
    return f"{step.at_s:g} s to {step.at_s + step.for_s:g} s: {fault!r} at {step.target}"


def hash_seed(seed: int) -> int:
    """The ``PYTHONHASHSEED`` of a run."""
    return seed // SEEDS_OF_A_HASH % (1 << 32)


def candidates(schedule: Schedule) -> Iterator[Schedule]:
    """Simpler schedules, the greatest simplification first."""
    for steps in (*fewer(schedule.steps), *simpler(schedule.steps)):
        yield replace(schedule, steps=steps)
    if schedule.shuffle:
        yield replace(schedule, shuffle=False)
    for choices in _fewer_choices(schedule.choices):
        yield replace(schedule, choices=choices)


def _fewer_choices(choices: bytes) -> Iterator[bytes]:
    """Without the end, without a part, and with zeros, which are what Hypothesis shrinks to."""
    sizes = [len(choices) >> shift for shift in range(1, len(choices).bit_length())]
    for size in sizes:
        yield choices[:-size]
    for size in sizes:
        for start in range(0, len(choices), size):
            yield choices[:start] + choices[start + size :]
    for start in range(len(choices)):
        if choices[start]:
            yield choices[:start] + b"\0" + choices[start + 1 :]


def key(schedule: Schedule) -> str:
    """Equal for those that run alike."""
    return msgspec.json.encode(schedule).decode()


class Failure(msgspec.Struct, frozen=True):
    """What went wrong in a run.

    Attributes:
        name: The same for what is the same defect, as far as that can be told: the error, and where.
        text: What the error says.
        trace: The way there.
    """

    name: str
    text: str
    trace: str = ""


class Found(msgspec.Struct, frozen=True):
    """The file of a run that failed. It names no code.

    Attributes:
        digest: Of every byte that arrived anywhere in the run, and when.
    """

    schedule: Schedule
    failure: str
    digest: str = ""
    kind: str = KIND
    version: int = VERSION

    def write(self, path: Path) -> None:
        """Write it down."""
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")


def load(path: Path) -> Found:
    """Read a file.

    Raises:
        UsageError: It is none, or one of another version.
    """
    found = json_of(path, "a file that `fakebrokers simulate` has written", Found)
    if (found.kind, found.version) != (KIND, VERSION):
        raise UsageError(
            f"{path}: expected a {KIND} of version {VERSION}, got a {found.kind} of version {found.version}"
        )
    return found
