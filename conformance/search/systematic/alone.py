"""Which defects only one invariant shows, and only one act: the proof that each of them is worth its time.

``conformance/clients/mutants/sweep.json`` has a run for each: a broken client, and a spec in whose run this
invariant alone is violated; or one that is well without this act. `fakebrokers mutants --sweep --write` adds
what it finds, and `lacking` names what has no such run yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from conformance.rules import INVARIANTS, judge
from conformance.rules.registry import ALIVE
from conformance.run.acts import ACTS
from conformance.run.concurrent_actions import CONCURRENT, HURRIED
from conformance.run.inprocess import runner
from conformance.run.specs import ORDER, PLAIN, Spec
from conformance.search.kills import Kill
from fakebrokers.files import by_rows

PLACE = Path(__file__).parents[2] / "clients" / "mutants" / "sweep.json"


class Proof(msgspec.Struct, frozen=True):
    """A broken client, and a spec that shows its defect."""

    mutant: str
    spec: Spec

    def violated(self, mutant: str | None = None, spec: Spec | None = None) -> set[str]:
        """The invariants that are violated in a run of it; of another client, or another spec."""
        chosen = self.spec if spec is None else spec
        case = runner(chosen.protocol, self.mutant if mutant is None else mutant)(chosen)
        return {finding.name for finding in judge(case)}


class Proofs(msgspec.Struct):
    """What the file holds: by the name of the invariant, by that of the act, and by that of the base script.

    A base script is there if a mutant shows in its run that no scenario catches.
    """

    invariants: dict[str, Proof] = {}
    acts: dict[str, Proof] = {}
    bases: dict[str, Proof] = {}

    @property
    def mutants(self) -> set[tuple[str, str]]:
        """The broken clients, as (protocol, name)."""
        proofs = (*self.invariants.values(), *self.acts.values(), *self.bases.values())
        return {(one.spec.protocol, one.mutant) for one in proofs}


def names_of_acts() -> list[str]:
    """All that can be done to a run."""
    return [*ACTS, ORDER, *(f"aside-{what}" for what in (*CONCURRENT, HURRIED))]


def load(place: Path = PLACE) -> Proofs:
    """What is written down."""
    return msgspec.json.decode(place.read_bytes(), type=Proofs) if place.exists() else Proofs()


def lacking(proofs: Proofs) -> tuple[list[str], list[str]]:
    """The invariants and the acts without a proof, in order."""
    invariants = sorted({each.name for each in INVARIANTS.values()} - set(proofs.invariants))
    return invariants, sorted(set(names_of_acts()) - set(proofs.acts))


def add_proofs(found: Iterable[Kill], place: Path = PLACE) -> Proofs:
    """Write down what kills prove of invariants and acts that have no proof yet."""
    proofs = load(place)
    for kill in found:
        if kill.spec is None:
            continue
        proof = Proof(kill.name, kill.spec)
        if len(kill.by) == 1 and kill.by != [ALIVE]:  # a run that is stuck takes seconds of real time
            proofs.invariants.setdefault(kill.by[0], proof)
        act = only_act(kill.spec)
        if act and act not in proofs.acts and not proof.violated(spec=without(kill.spec)):
            proofs.acts[act] = proof
    parts = (proofs.invariants, proofs.acts, proofs.bases)
    ordered = Proofs(*(dict(sorted(part.items())) for part in parts))
    place.write_text(by_rows(msgspec.to_builtins(ordered)))
    return ordered


def only_act(spec: Spec) -> str:
    """The last thing that is done in a run, which the others prepare; "" where nothing is."""
    return "" if spec.acts == [PLAIN] else spec.acts[-1]


def without(spec: Spec) -> Spec:
    """The same run without the last thing that is done."""
    if spec.concurrent:
        return msgspec.structs.replace(spec, concurrent=spec.concurrent[:-1])
    if spec.changes:
        return msgspec.structs.replace(spec, changes=spec.changes[:-1])
    return msgspec.structs.replace(spec, injections=spec.injections[:-1])
