"""What a chaos run is, as plain values: a workload with its settings, and what disturbs it, when."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from conformance.run.specs import PLAIN
from fakebrokers.faults.steps import Step, short

#: Of schedules with other rules of drawing: the same seed promises the same schedule within one version.
DRAWING_VERSION = 1


class Schedule(msgspec.Struct, frozen=True, omit_defaults=True):
    """One run. Equal schedules run alike, byte for byte, on virtual time.

    Attributes:
        workload: A kind of `workloads.KINDS`, or ``module:Class``.
        params: Of the workload: how many publishers, consumers, messages ...
        seconds: How long the safety phase lasts at least.
        seed: As it was given: of the random numbers that faults draw while they are at work.
        realism: ``legal``, ``environment`` or ``illegal``: the worst that may happen.
        mix: Effects and nemeses that this run might have drawn; the others were switched off.
    """

    protocol: str
    workload: str
    params: Mapping[str, Any] = {}
    steps: tuple[Step, ...] = ()
    seconds: float = 10.0
    seed: str = "0"
    realism: str = "environment"
    mix: tuple[str, ...] = ()
    version: int = DRAWING_VERSION

    @property
    def plan_seed(self) -> int:
        """The seed of the fake's fault plan."""
        return number_of(self.seed)

    @property
    def base(self) -> str:
        """What the application does, in the word that expectations use."""
        return self.workload

    @property
    def acts(self) -> list[str]:
        """What is done, in the words that expectations use; ``plain`` where nothing is."""
        return [word for step in self.steps for word in step.words] or [PLAIN]

    @property
    def about(self) -> str:
        """What it does, one line."""
        given = ", ".join(f"{name} {short(value)}" for name, value in self.params.items())
        disturbed = "; ".join(str(step) for step in self.steps) or "nothing disturbs it"
        return f"{self.workload} ({given}) of {self.protocol}, seed {self.seed}: {disturbed}"

    def __str__(self) -> str:
        return self.about


def number_of(seed: str) -> int:
    """A seed as a number: itself, or for any other text (a commit's hash, say) 63 bits of its digest."""
    if seed.isascii() and seed.isdecimal() and len(seed) < 19:
        return int(seed)
    return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8]) >> 1


def to_json(schedule: Schedule) -> str:
    """The schedule as one line."""
    return msgspec.json.encode(schedule, order="sorted").decode()


def from_json(text: str | bytes) -> Schedule:
    """Read it back. Raises `msgspec.ValidationError`."""
    return msgspec.json.decode(text, type=Schedule)
