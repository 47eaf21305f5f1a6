"""Every invariant and every act shows a defect that no other one shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.clients.mutants.kills import known_kills
from conformance.run.specs import PLAIN, ConcurrentAction, Injection, Spec
from conformance.search.kills import Kill
from conformance.search.systematic.alone import Proof, add_proofs, lacking, load, only_act, without

PROOFS = load()


@pytest.mark.parametrize(("name", "proof"), PROOFS.invariants.items(), ids=list(PROOFS.invariants))
def test_this_invariant_alone_shows_a_defect(name: str, proof: Proof) -> None:
    assert proof.violated() == {name}
    assert proof.violated(mutant="") == set()


@pytest.mark.parametrize(("name", "proof"), PROOFS.acts.items(), ids=list(PROOFS.acts))
def test_this_act_alone_shows_a_defect(name: str, proof: Proof) -> None:
    assert only_act(proof.spec) == name
    assert proof.violated()
    assert proof.violated(mutant="") == set()
    assert proof.violated(spec=without(proof.spec)) == set()


@pytest.mark.parametrize(("name", "proof"), PROOFS.bases.items(), ids=list(PROOFS.bases))
def test_this_base_shows_a_defect_that_no_scenario_catches(name: str, proof: Proof) -> None:
    assert name == f"{proof.spec.protocol} {proof.spec.base}"
    assert proof.spec.acts == [PLAIN]
    assert proof.violated()
    assert proof.violated(mutant="") == set()
    assert not [key for key, names in known_kills().items() if proof.mutant in names]


def test_nothing_lacks_a_proof() -> None:
    assert lacking(PROOFS) == ([], [])


def test_a_kill_proves_its_invariant_and_its_act(tmp_path: Path) -> None:
    place = tmp_path / "sweep.json"
    spec = Spec("pzq", "waited", (Injection("c1", "out", 1, "refusal", ["part", ["foreign", 3]]),))
    kill = Kill("pzq", "reasons-are-utf8", "wire", ["fails-for-a-reason"], 3, spec)
    proofs = add_proofs([kill], place)
    assert proofs == load(place)
    assert proofs.invariants["fails-for-a-reason"].spec == spec
    assert proofs.acts["refusal"].mutant == "reasons-are-utf8"
    more = add_proofs([Kill("pzq", "another", "wire", ["fails-for-a-reason", "lives"], 1, spec)], place)
    assert more == proofs  # what is proven stays, and two invariants prove neither


def test_without_the_last_thing_that_is_done() -> None:
    injections = (Injection("c1", "out", 1, "rst"), Injection("c2", "out", 1, "late"))
    assert only_act(Spec("pzq", "waited", injections)) == "late"
    assert without(Spec("pzq", "waited", injections)).injections == injections[:1]
    action = Spec("pzq", "waited", concurrent=(ConcurrentAction(1, "loss"),))
    assert (only_act(action), without(action)) == ("aside-loss", Spec("pzq", "waited"))
