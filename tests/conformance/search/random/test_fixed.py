"""Fixed seeds: what is new counts, what is known is told by its cause, what came to no verdict is neither."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from rich.console import Console

from conformance.campaign import ConformCampaign
from conformance.clients.adapters.registry import Client, bundled, find
from conformance.known.defects import KnownFindings, Part
from conformance.known.files import read
from conformance.results import Results, with_found
from conformance.search.fixed import Swept, ViolationRow, run_lists
from conformance.search.random.case import ChaosCase
from conformance.search.random.draw import Setting, draw
from conformance.search.random.fixed import FixedSeeds
from conformance.search.random.run import runner
from conformance.search.random.schedule import DRAWING_VERSION, Schedule
from conformance.search.random.verdict import RunVerdict, verdict_on
from conformance.stages import CHAOS, FOLDER, run_stage
from fakebrokers.commands import ExitCode
from fakebrokers.errors import UsageError
from fakebrokers.faults.steps import Step
from fakebrokers.protocol import protocol_names

PROTOCOL = "rabbitmq-stream"
MUTANT = "crc-signed"  #: every workload that consumes shows it
FILE = """
version = 2
client = "{client}"
seeds = ["{seed}"]
"""
KNOWN = """
[[defect]]
id = "signed"
cause = "checksums are signed"
chaos = [{{ row = "*", acts = ["{act}"] }}]
"""
SEED = next(
    str(seed)
    for seed in range(100)
    if draw(Setting(PROTOCOL, is_process=True), str(seed)).workload == "consume"
    and draw(Setting(PROTOCOL, is_process=True), str(seed)).acts == ["plain"]
)


class Scripted:
    """A subject whose runs come out as they are listed; the last one again and again."""

    def __init__(self, mutants: list[str], lag_s: float) -> None:
        self.mutants = mutants
        self.lag_s = lag_s
        self.runs = 0

    async def judge_live(self, schedule: Schedule, expected: KnownFindings) -> tuple[ChaosCase, RunVerdict]:
        self.runs += 1
        mutant = self.mutants[min(self.runs, len(self.mutants)) - 1]
        case = await asyncio.to_thread(_case, mutant, schedule)
        case.lag_s = self.lag_s
        return case, verdict_on(case)


def _case(mutant: str, schedule: Schedule) -> ChaosCase:
    return CASES[mutant]


CASES = {
    name: runner(PROTOCOL, name)(draw(Setting(PROTOCOL, is_process=True), SEED)) for name in ("", MUTANT)
}


@pytest.fixture
def client() -> Client:
    return next(each for each in bundled() if each.name == "reference-rabbitmq-stream")


def listed(tmp_path: Path, client: Client, mutants: list[str], known: str = "", lag_s: float = 0.0) -> Swept:
    (tmp_path / f"{client.name}.toml").write_text(FILE.format(client=client.name, seed=SEED) + known)
    found = FixedSeeds(client, PROTOCOL, tmp_path, tmp_path / "report")
    found.subject = Scripted(mutants, lag_s)  # type: ignore[assignment]
    asyncio.run(run_lists([found], lanes=1))
    return found.found


def test_what_fails_again_is_new_and_has_its_page(tmp_path: Path, client: Client) -> None:
    found = listed(tmp_path, client, [MUTANT])
    assert "delivers-what-came" in {row.invariant for row in found.new}
    for row in found.new:
        assert (row.count, row.runs) == (2, 2)
        assert row.invariant in (tmp_path / "report" / row.page).read_text()


def test_what_failed_once_only_does_not_count(tmp_path: Path, client: Client) -> None:
    found = listed(tmp_path, client, [MUTANT, ""])
    assert not found.new
    assert found.once


def test_what_is_known_is_told_by_its_cause(tmp_path: Path, client: Client) -> None:
    found = listed(tmp_path, client, [MUTANT], KNOWN.format(act="plain"))
    assert not [*found.new, *found.once]
    assert [cause for cause, _ in found.causes] == ["checksums are signed"]


def test_what_is_known_of_another_nemesis_is_news(tmp_path: Path, client: Client) -> None:
    assert listed(tmp_path, client, [MUTANT], KNOWN.format(act="partition*")).new


def test_a_harness_that_stood_still_gives_no_verdict(tmp_path: Path, client: Client) -> None:
    found = listed(tmp_path, client, [MUTANT], lag_s=2.0)
    assert (found.rows, found.unclear) == ([], 1)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (KNOWN.format(act="bite"), "no act 'bite'"),
        (KNOWN.format(act="rst").replace("*", "no-rule"), "no rule 'no-rule'"),
        (f"drawing = {DRAWING_VERSION + 1}\n", "choose anew"),
        ('client_version = "0.0"\n', "is about reference-rabbitmq-stream 0.0"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(
    tmp_path: Path, client: Client, text: str, problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        listed(tmp_path, client, [""], text)


def test_words_of_a_schedule_are_nemeses_effects_and_acts() -> None:
    steps = (
        Step("crash", 0.0, 1.0),
        Step("fault", 0.0, 1.0, {"match": {}, "effect": [{"type": "truncate"}, {"type": "rst"}]}),
        Step("act", 0.0, 1.0, {"match": {}, "act": "goodbye"}),
    )
    assert Schedule(PROTOCOL, "mixed", {}, steps).acts == ["crash", "truncate", "rst", "goodbye"]
    assert Schedule(PROTOCOL, "mixed").acts == ["plain"]


def test_all_protocols_have_clients_with_seeds() -> None:
    """Whether or not they are installed here."""
    seeded = [path.stem for path in FOLDER.glob("*.toml") if read(path, Part.CHAOS).seeds]
    assert {find(name).protocols[0] for name in seeded} >= set(protocol_names()[:5])


def test_a_list_of_another_version_stops_the_main_job(
    tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conformance.stages.FOLDER", tmp_path)
    text = FILE.format(client=client.name, seed=SEED) + 'client_version = "0.0"\n'
    (tmp_path / f"{client.name}.toml").write_text(text)
    refused: list[str] = []
    assert not run_stage(CHAOS, [client], tmp_path, Console(quiet=True), refused)
    assert f"is about {client.name} 0.0" in refused[0]


def test_a_client_without_seeds_is_left_out(
    tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conformance.stages.FOLDER", tmp_path)
    (tmp_path / f"{client.name}.toml").write_text(f'client = "{client.name}"\n')
    refused: list[str] = []
    assert (run_stage(CHAOS, [client], tmp_path, Console(quiet=True), refused), refused) == ([], [])


def test_the_results_of_a_client_tell_what_was_found(tmp_path: Path) -> None:
    row = ViolationRow(invariant="lives", detail="gone", spec="mixed", count=2, runs=2, page="chaos/x.html")
    known = ViolationRow(invariant="close-ends", detail="left", spec="mixed", cause="recovery goes on")
    swept = Swept(client="toy", version="1", protocol=PROTOCOL, specs=2, rows=[row, known])
    results = Results("toy", "1", "0.1", 0, "2026-01-01T00:00:00Z", 1.0, ())
    reported = with_found(results, swept.reported("chaos"))
    assert [(each.stage, each.name, each.new, each.cause) for each in reported.found] == [
        ("chaos", "lives", True, ""),
        ("chaos", "close-ends", False, "recovery goes on"),
    ]
    assert reported.exit_code == ExitCode.FAILED
    assert with_found(results, swept.reported("chaos")[1:]).exit_code == 0


def test_the_main_job_fails_by_what_chaos_finds(tmp_path: Path) -> None:
    row = ViolationRow(invariant="lives", detail="gone", spec="mixed", count=2, runs=2)
    campaign = ConformCampaign(tmp_path, "gate", 1, 0, Console(quiet=True))
    campaign.staged = {"chaos": [Swept(client="toy", version="1", protocol=PROTOCOL, specs=1, rows=[row])]}
    assert campaign.exit_code == ExitCode.FAILED
