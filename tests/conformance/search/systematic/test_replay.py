"""Failures as files: they name a client, carry no command, and fail again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.rules import judge
from conformance.run.inprocess import runner
from conformance.run.specs import Injection, Spec
from conformance.search.replay import replay, shrunk
from conformance.search.systematic.campaign import SweepCampaign, SweptClient
from conformance.search.systematic.replay import Replay, fingerprint, load, replay_of
from fakebrokers.cli import main
from fakebrokers.errors import UsageError

PROTOCOL = "rabbitmq-stream"
MUTANT = "confirm-by-position"
BLATANT = "confirms-on-write"  #: the first run finds it
SPEC = Spec(
    PROTOCOL, "publish", (Injection("c1", "out", 11, "lost"), Injection("c1", "in", 20, "latency", 0.3))
)


@pytest.fixture
def found() -> Replay:
    case = runner(PROTOCOL, MUTANT)(SPEC)
    return replay_of("reference", MUTANT, case, judge(case))


def test_a_spec_runs_the_same_way_twice() -> None:
    assert fingerprint(runner(PROTOCOL)(SPEC)) == fingerprint(runner(PROTOCOL)(SPEC))


def test_a_file_fails_again_with_its_client_and_not_with_a_correct_one(found: Replay, tmp_path: Path) -> None:
    back = load(found.write(tmp_path))
    assert back == found
    again = replay(back, runner(PROTOCOL, MUTANT))
    assert again.fails
    assert again.same
    assert not replay(back, runner(PROTOCOL)).fails


def test_a_run_that_differs_is_told(found: Replay) -> None:
    assert not replay(found, runner(PROTOCOL)).same


def test_it_is_shrunk_to_the_fault_that_matters(found: Replay) -> None:
    smaller, runs = shrunk(found, runner(PROTOCOL, MUTANT))
    assert smaller is not None
    assert len(smaller.spec.injections) <= 1
    assert runs <= 300
    assert set(smaller.invariants) & set(found.invariants)


def test_a_file_carries_no_command(found: Replay, tmp_path: Path) -> None:
    text = found.write(tmp_path).read_text()
    assert set(json.loads(text)) == {
        "version", "client", "mutant", "spec", "invariants", "about", "print",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["", "{}", '{"version": 1}', "[]"])
def test_what_is_no_replay_file_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.replay.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="expected a replay file"):
        load(path)


def test_another_version_is_refused(found: Replay, tmp_path: Path) -> None:
    found.version = 99
    with pytest.raises(UsageError, match="expected version 1, got 99"):
        load(found.write(tmp_path))


def test_a_campaign_writes_down_what_it_finds(tmp_path: Path) -> None:
    campaign = SweepCampaign(SweptClient(PROTOCOL, "reference", BLATANT), tmp_path)
    campaign.go(2.0)
    assert campaign.failures
    for failure in campaign.failures:
        assert failure.steady
        assert failure.path.parent == tmp_path
    document = campaign.document()
    assert document["runs"] == campaign.runs
    assert set(document["failed"][0]) >= {"base", "invariants", "replay", "faults"}


def called(*words: str) -> int:
    """The exit code of a command of ``fakebrokers``."""
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    code = ended.value.code
    assert isinstance(code, int)
    return code


def test_the_commands(found: Replay, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(found.write(tmp_path))
    assert called("replay", path) == 1
    assert called("replay", path, "--client", "reference") == 0
    assert called("shrink", path) == 0
    capsys.readouterr()
    swept = ["sweep", "--client", "reference", "--protocol", PROTOCOL, "--mutant", BLATANT]
    assert called(*swept, "--minutes", "0.02", "--json", "--report", str(tmp_path / "r")) == 1
    assert json.loads(capsys.readouterr().out)["failed"][0]["replay"].endswith(".replay.json")
    assert called("sweep", "--client", "reference") == 64


@pytest.mark.parametrize(("broken", "fails", "runs"), [("11", True, 2), ("101", True, 3), ("010", False, 3)])
def test_where_runs_differ_most_of_them_decide(found: Replay, broken: str, fails: bool, runs: int) -> None:
    cases = iter([runner(PROTOCOL, MUTANT)(SPEC) if one == "1" else runner(PROTOCOL)(SPEC) for one in broken])
    left = len(broken)
    again = replay(found, lambda _: next(cases), tries=3)
    assert again.fails is fails
    assert left - len(list(cases)) == runs


def test_a_recorded_session_is_named_with_the_command_for_it(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text('{"recording":1,"protocol":"pzq","wire":"zmq","scheme":"tcp"}\n')
    with pytest.raises(UsageError, match=r"is a recorded session: 'fakebrokers serve PROTOCOL --replay "):
        load(path)
