"""A sweep by several processes, its ledger, and what an interrupt leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.run.specs import Injection, Spec, to_json
from conformance.search.systematic.campaign import LEDGER, SweepCampaign, SweptClient
from conformance.search.systematic.order import Ledger

PROTOCOL = "pzq"
MUTANT = "acknowledges-on-arrival"
SPECS = [
    Spec(PROTOCOL, "failing"),
    *(Spec(PROTOCOL, "failing", (Injection("c1", "out", nth, "lost"),)) for nth in range(1, 8)),
]


def found(campaign: SweepCampaign) -> list[tuple[str, str, int]]:
    return [(one.name, to_json(one.replay.spec), one.count) for one in campaign.failures]


def swept(folder: Path, mutant: str, processes: int) -> SweepCampaign:
    campaign = SweepCampaign(
        SweptClient(PROTOCOL, "reference", mutant), folder, specs=SPECS, processes=processes
    )
    campaign.go(300.0)
    return campaign


def test_several_processes_find_what_one_does(tmp_path: Path) -> None:
    one, several = swept(tmp_path / "one", MUTANT, 1), swept(tmp_path / "several", MUTANT, 2)
    assert one.runs == several.runs == len(SPECS)
    assert found(one)
    assert found(one) == found(several)


def test_what_nobody_fails_at_is_counted_too(tmp_path: Path) -> None:
    campaign = swept(tmp_path, "", 2)
    assert (campaign.runs, campaign.failures) == (len(SPECS), [])


def test_an_interrupt_keeps_what_was_run_and_what_that_has_found(tmp_path: Path) -> None:
    campaign = SweepCampaign(SweptClient(PROTOCOL, "reference", MUTANT), tmp_path)

    def interrupt(so_far: SweepCampaign) -> None:
        if so_far.kinds:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        campaign.go(300.0, interrupt)
    assert [one.path.exists() for one in campaign.failures] == [True] * campaign.kinds
    ledger = Ledger.load(tmp_path / LEDGER, campaign.runs + campaign.left)
    assert sum(ledger.drawn.values()) == campaign.runs


def test_the_next_sweep_goes_on_with_what_is_left(tmp_path: Path) -> None:
    first = SweepCampaign(SweptClient(PROTOCOL, "reference"), tmp_path)
    first.go(0.5)
    second = SweepCampaign(SweptClient(PROTOCOL, "reference"), tmp_path)
    second.go(0.5)
    assert second.runs + second.left == first.left
    again = SweepCampaign(SweptClient(PROTOCOL, "reference"), tmp_path, again=True)
    again.go(0.1)
    assert again.runs + again.left == first.runs + first.left
