"""A failure is shrunk, written down, and fails again."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from conformance.search.random.campaign import ChaosCampaign
from conformance.search.random.client import ChaosClient
from conformance.search.random.draw import Setting, draw
from conformance.search.random.page import parts, write_page
from conformance.search.random.replay import ChaosReplay, is_chaos, load, replay_of
from conformance.search.random.run import runner
from conformance.search.random.schedule import Schedule, to_json
from conformance.search.random.shrink import SIMPLER, candidates
from conformance.search.random.verdict import verdict_on
from conformance.search.replay import replay, shrunk
from fakebrokers.cli import main
from fakebrokers.errors import UsageError
from fakebrokers.faults.steps import Step
from tests.pages_of_runs import documents

PROTOCOL = "rabbitmq-stream"
MUTANT = "resumes-behind-the-next"  #: only a loss shows it
SETTING = Setting(PROTOCOL)
SEED = "2"


def command(args: list[str]) -> int:
    """Its exit code."""
    with pytest.raises(SystemExit) as left:
        main(args)
    return int(left.value.code or 0)


@pytest.fixture(scope="module")
def found() -> ChaosReplay:
    case = runner(PROTOCOL, MUTANT)(draw(SETTING, SEED))
    return replay_of("reference", MUTANT, case, verdict_on(case))


def test_a_file_fails_again_with_its_client_and_not_with_a_correct_one(
    found: ChaosReplay, tmp_path: Path
) -> None:
    path = found.write(tmp_path)
    assert is_chaos(path)
    back = load(path)
    assert back == found
    again = replay(back, runner(PROTOCOL, MUTANT))
    assert again.fails
    assert again.same
    assert not replay(back, runner(PROTOCOL)).fails
    assert not replay(back, runner(PROTOCOL)).same


def test_it_is_shrunk_to_the_one_loss_that_matters(found: ChaosReplay) -> None:
    smaller, runs = shrunk(found, runner(PROTOCOL, MUTANT))
    assert smaller is not None
    assert len(smaller.schedule.steps) == 1 < len(found.schedule.steps)
    assert smaller.schedule.params["messages"] == 1
    assert set(smaller.anomalies) & set(found.anomalies)
    assert runs <= 200


def test_what_does_not_fail_is_not_shrunk(found: ChaosReplay) -> None:
    assert shrunk(found, runner(PROTOCOL)) == (None, 1)


def test_every_candidate_is_simpler() -> None:
    step = Step("cut", 3.0, 2.0, {"times": 3, "how": "rst"}, "step1")
    schedule = Schedule(PROTOCOL, "mixed", {"messages": 8, "sessions": 2}, (step,) * 3, seconds=10.0)
    for candidate in candidates(schedule):
        assert candidate != schedule
        sizes = [
            (len(one.steps), one.seconds, sum(s.at_s + s.for_s + s.args["times"] for s in one.steps),
             one.params["messages"] + one.params["sessions"])
            for one in (candidate, schedule)
        ]  # fmt: skip
        assert all(small <= large for small, large in zip(*sizes, strict=True))


@pytest.mark.parametrize("content", ["", "{}", '{"kind": "chaos"}', '{"version": 1, "spec": {}}'])
def test_other_files_are_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "x.replay.json"
    path.write_text(content)
    with pytest.raises(UsageError, match="expected a replay file"):
        load(path)


def test_a_file_of_another_version_is_refused(found: ChaosReplay, tmp_path: Path) -> None:
    path = found.write(tmp_path)
    path.write_text(path.read_text().replace('"version": 1', '"version": 9', 1))
    with pytest.raises(UsageError, match="version 1"):
        load(path)


def test_a_file_carries_no_command(found: ChaosReplay, tmp_path: Path) -> None:
    assert set(json.loads(found.write(tmp_path).read_text())) == {
        "kind", "version", "client", "mutant", "contract", "schedule", "anomalies", "about", "print",
    }  # fmt: skip


def test_the_command_tells_by_its_exit_code(
    found: ChaosReplay, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(found.write(tmp_path))
    assert command(["replay", path]) == 1
    assert command(["replay", path, "--client", "reference"]) == 0
    capsys.readouterr()
    assert command(["replay", path, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["fails"]
    assert document["same"]
    other = msgspec.structs.replace(found, mutant="")
    assert command(["replay", str(other.write(tmp_path / "other"))]) == 2  # another run than was written down


def test_shrinking_by_command_writes_a_smaller_file(found: ChaosReplay, tmp_path: Path) -> None:
    path = found.write(tmp_path)
    assert command(["shrink", str(path)]) == 0
    others = [each for each in tmp_path.glob("*.replay.json") if each != path]
    assert len(others) == 1
    assert command(["replay", str(others[0])]) == 1


def test_the_page_shows_bands_over_operations_latencies_and_the_command(tmp_path: Path) -> None:
    case = runner(PROTOCOL, MUTANT)(draw(SETTING, SEED))
    text = write_page(case, verdict_on(case), tmp_path / "x.replay.json").read_text()
    assert "fakebrokers replay x.replay.json" in text
    assert text.count('opacity="0.13"') == len(case.bands) > 0
    assert text.count('opacity="0.75"') == len(case.ops)
    assert text.count("<circle") == sum(1 for done in case.ops if done.ended is not None)
    assert '<a href="x.trace.html">' in text
    [document] = documents(tmp_path / "x.trace.html")
    assert {row.name for row in document.rows if row.what == "rule"} == set(verdict_on(case).sentences)


def test_what_clients_say_is_escaped(tmp_path: Path) -> None:
    case = runner(PROTOCOL, MUTANT)(draw(SETTING, SEED))
    verdict = verdict_on(case)
    case.bands[0]["about"] = "<script>"
    assert "<script>" not in "".join(parts(case, verdict, tmp_path / "x.replay.json"))


def test_a_campaign_writes_down_what_replays(tmp_path: Path) -> None:
    campaign = ChaosCampaign(ChaosClient(PROTOCOL, "reference", MUTANT), SETTING, tmp_path)
    campaign.go(["2"])
    [failed] = campaign.failures
    assert failed.steady
    assert len(failed.replay.plan.steps) == 1
    assert failed.path.with_suffix("").with_suffix(".html").exists()
    [document] = documents(failed.path.with_suffix("").with_suffix(".trace.html"))
    assert document.is_reported
    assert command(["replay", str(failed.path)]) == 1


def test_a_failure_that_nobody_shrank_is_the_same_run_although_its_journal_is_kept(tmp_path: Path) -> None:
    client = ChaosClient(PROTOCOL, "reference", MUTANT)
    campaign = ChaosCampaign(client, SETTING, tmp_path, keeps_journals=True)
    campaign.go([str(number) for number in range(1, 7)])
    rest = [one for one in campaign.failures if one.steady is None]
    assert rest
    assert [replay(one.replay, client.run).same for one in rest] == [True] * len(rest)


@pytest.mark.full
def test_the_same_seed_gives_the_same_verdict_and_the_same_smallest_schedule_twenty_times() -> None:
    """Whatever has run before in the process."""
    go = runner(PROTOCOL, MUTANT)
    seen = set()
    for _ in range(20):
        case = go(draw(SETTING, SEED))
        verdict = verdict_on(case)
        names = set(verdict.names)
        few = SIMPLER._replace(most=5)
        smaller = few.search(lambda one, names=names: bool(names.intersection(verdict_on(go(one)).names)))
        seen.add((case.digest, str(verdict), to_json(smaller.smallest(case.schedule))))
    assert len(seen) == 1


def test_a_file_has_no_code_imported_unless_the_command_line_names_it(
    found: ChaosReplay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "evil_workload.py").write_text("open('imported', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    asked = "evil_workload:Work"
    schedule = msgspec.structs.replace(found.schedule, workload=asked)
    path = msgspec.structs.replace(found, schedule=schedule).write(tmp_path)
    for words in (
        ["replay", str(path)],
        ["shrink", str(path)],
        ["replay", str(path), "--client", "reference"],
    ):
        assert command(words) == 64
        assert f"say --workload {asked}" in capsys.readouterr().err.replace("\n", " ")
    assert not (tmp_path / "imported").exists()
    with pytest.raises(UsageError, match="does not come along"):
        load(path)
    assert load(path, asked).schedule.workload == asked
    assert command(["replay", str(path), "--workload", asked]) == 64  # it is no workload after all
    assert "there is no workload evil_workload:Work" in capsys.readouterr().err
    assert (tmp_path / "imported").exists()
