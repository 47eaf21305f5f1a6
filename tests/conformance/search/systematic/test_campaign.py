"""A sweep by several processes, its ledger, and what an interrupt leaves."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.rules import Finding
from conformance.run.case import Case
from conformance.run.inprocess import runner
from conformance.run.specs import Injection, Spec, to_json
from conformance.search.systematic.campaign import LEDGER, SweepCampaign, SweptClient
from conformance.search.systematic.children import Child
from conformance.search.systematic.order import Ledger
from fakebrokers.core import virtual

PROTOCOL = "pzq"
MUTANT = "acknowledges-on-arrival"
SPECS = [
    Spec(PROTOCOL, "failing"),
    *(Spec(PROTOCOL, "failing", (Injection("c1", "out", nth, "lost"),)) for nth in range(1, 8)),
]


def found(campaign: SweepCampaign) -> list[tuple[str, str, int]]:
    return [(one.names[0], to_json(one.replay.plan), one.count) for one in campaign.failures]


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


class Sometimes(Child):
    """A client in real time that has its defect in the runs that `broken` says, of each spec."""

    def __init__(self, broken: Callable[[int], bool], starved: Callable[[int], bool]) -> None:
        super().__init__(PROTOCOL, lambda _: pytest.fail("no process is needed"))
        self._broken = broken
        self._starved = starved
        self._runs: Counter[str] = Counter()

    async def run(self, spec: Spec) -> Case:
        self._runs[to_json(spec)] += 1
        run = self._runs[to_json(spec)]
        case = await asyncio.to_thread(runner(PROTOCOL, MUTANT if self._broken(run) else ""), spec)
        case.is_starved = self._starved(run)
        return case


@pytest.fixture
def in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of these tests are no alarm's business: signals are for the main thread."""
    monkeypatch.setattr("conformance.run.inprocess.run_or_stuck", lambda work, _, run=virtual.run: run(work))


def never(_: int) -> bool:
    return False


def swept_live(
    folder: Path, broken: Callable[[int], bool], starved: Callable[[int], bool] = never
) -> SweepCampaign:
    client = SweptClient(PROTOCOL, "reference")
    client.made, client.child = None, Sometimes(broken, starved)
    campaign = SweepCampaign(client, folder, specs=SPECS[-1:])
    campaign.go(60.0)
    return campaign


@pytest.mark.usefixtures("in_threads")
def test_what_a_process_fails_at_is_shrunk(tmp_path: Path) -> None:
    campaign = swept_live(tmp_path, lambda _: True)
    assert [(len(one.replay.plan.injections), one.steady) for one in campaign.failures] == [(0, True)]
    assert campaign.failures[0].path.with_suffix("").with_suffix(".html").exists()


@pytest.mark.usefixtures("in_threads")
def test_what_a_process_fails_at_once_is_written_down_as_it_was(tmp_path: Path) -> None:
    campaign = swept_live(tmp_path, lambda run: run == 1)
    assert [(one.replay.plan, one.steady) for one in campaign.failures] == [(SPECS[-1], False)]


@pytest.mark.usefixtures("in_threads")
@pytest.mark.parametrize("last", [1, 9], ids=["passes when the machine has time", "never has time"])
def test_what_fails_only_where_the_machine_has_no_time_is_no_failure(tmp_path: Path, last: int) -> None:
    campaign = swept_live(tmp_path, lambda run: run <= last, lambda run: run <= last)
    assert not campaign.failures
    assert [row["about"] for row in campaign.document()["unconfirmed"]] == [str(SPECS[-1])]


@pytest.mark.usefixtures("in_threads")
def test_what_fails_again_where_the_machine_has_time_is_a_failure(tmp_path: Path) -> None:
    campaign = swept_live(tmp_path, lambda _: True, lambda run: run == 1)
    assert [one.steady for one in campaign.failures] == [True]


@pytest.mark.usefixtures("in_threads")
def test_an_interrupt_while_something_is_shrunk_keeps_what_was_found(tmp_path: Path) -> None:
    def interrupted(run: int) -> bool:
        if run > 1:
            raise KeyboardInterrupt
        return True

    client = SweptClient(PROTOCOL, "reference")
    client.made, client.child = None, Sometimes(interrupted, never)
    campaign = SweepCampaign(client, tmp_path, specs=SPECS[-1:])
    with pytest.raises(KeyboardInterrupt):
        campaign.go(60.0)
    assert [(one.replay.plan, one.steady, one.path.exists()) for one in campaign.failures] == [
        (SPECS[-1], None, True)
    ]


def test_an_error_in_a_sweep_loses_neither_the_ledger_nor_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = SweepCampaign(SweptClient(PROTOCOL, "reference"), tmp_path)

    def broken(so_far: SweepCampaign) -> None:
        if so_far.runs == 3:
            raise RuntimeError("a bug of the harness")

    with pytest.raises(RuntimeError, match="a bug of the harness"):
        campaign.go(300.0, broken)
    ledger = Ledger.load(tmp_path / LEDGER, campaign.runs + campaign.left)
    assert sum(ledger.drawn.values()) == 3


def test_the_page_of_a_failure_begins_with_the_rule_that_it_is_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [Finding("lives", "it is gone"), Finding("op-ends", "no answer")]
    for module in ("sweep", "campaign"):
        monkeypatch.setattr(f"conformance.search.systematic.{module}.judge", lambda _: found)
    campaign = SweepCampaign(SweptClient(PROTOCOL, "reference"), tmp_path, specs=SPECS[:1])

    def as_it_was(_: SweepCampaign) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        campaign.go(300.0, as_it_was)
    assert [one.names for one in campaign.failures] == [["lives", "op-ends"], ["op-ends", "lives"]]
    for one in campaign.failures:
        page = one.path.with_suffix("").with_suffix(".html").read_text(encoding="utf-8")
        assert re.findall("<li><b>(.*?)</b>", page) == one.names
