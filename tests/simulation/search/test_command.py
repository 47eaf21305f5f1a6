"""``fakebrokers simulate``: what it finds, prints, writes down and returns."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fakebrokers.cli import main
from fakebrokers.faults.steps import Step
from fakebrokers.simulation.search import children, worker
from fakebrokers.simulation.search.campaign import Campaign
from fakebrokers.simulation.search.page import excerpt
from fakebrokers.simulation.search.schedule import SEEDS_OF_A_HASH, Schedule, hash_seed
from fakebrokers.simulation.search.worker import Setting
from tests.eventually import eventually

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the worlds are."""
    monkeypatch.chdir(HERE)


def simulate(*words: str) -> int | str | None:
    """Run the command; its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(["simulate", *words])
    return ended.value.code


def document(capsys: pytest.CaptureFixture[str], tmp_path: Path, *words: str, code: int) -> dict[str, Any]:
    assert simulate(*words, "--json", "--report", str(tmp_path)) == code
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def test_a_world_without_mistakes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = document(capsys, tmp_path, "worlds:fine", "--seeds", "1..20", code=0)
    assert (found["runs"], found["failed"], found["not_repeated"]) == (20, [], [])
    assert list(tmp_path.iterdir()) == []


def test_what_fails_is_shrunk_written_down_and_replayed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = "worlds:careless", "--seeds", "1..20"
    found = document(capsys, tmp_path, *words, code=1)
    (failed,) = found["failed"]
    assert failed["name"].startswith("AssertionError at worlds.py:")
    assert len(failed["seeds"]) > 1
    assert failed["steady"]
    assert len(failed["schedule"]["steps"]) == 1
    assert any("AssertionError: assert {" in line for line in failed["time_line"])

    path = Path(failed["replay"])
    assert {each.name for each in tmp_path.iterdir()} == {path.name, f"{path.stem}.txt"}
    text = path.read_text()
    assert "worlds" not in json.dumps({**json.loads(text), "failure": ""})  # it names no code

    assert simulate("worlds:careless", "--replay", str(path)) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "fails again"
    assert simulate("worlds:fine", "--replay", str(path)) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "it went another way than when the file was written"
    again = document(capsys, tmp_path, *words, code=1)
    assert {**again, "cpu_seconds": 0, "shrinking_cpu_seconds": 0} == {
        **found,
        "cpu_seconds": 0,
        "shrinking_cpu_seconds": 0,
    }
    assert path.read_text() == text


@pytest.mark.full
def test_several_workers_find_the_same(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    one, several = (
        document(capsys, tmp_path, "worlds:careless", "--seeds", "1..20", "-n", count, code=1)
        for count in "13"
    )
    assert sorted(one["failed"][0]["seeds"]) == sorted(several["failed"][0]["seeds"])
    assert one["failed"][0]["schedule"] == several["failed"][0]["schedule"]


def test_for_people(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert simulate("worlds:careless", "--seeds", "1..20", "--report", str(tmp_path)) == 1
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0].startswith("seed ") and ": AssertionError at worlds.py:" in lines[0]
    assert lines[1] == "  1 fault"
    assert any(line.startswith("    fakebrokers simulate worlds:careless --replay ") for line in lines)
    assert lines[-1].startswith("20 runs in ") and lines[-1].endswith(" failed")
    assert "shrinking 1 failure" in said.err


def test_checks_besides(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = "worlds:builds", "--seeds", "1..20", "--virtual-minutes", "3"
    assert document(capsys, tmp_path, *words, code=0)["failed"] == []
    found = document(capsys, tmp_path, *words, "--check", "worlds:has_all", code=1)
    assert found["failed"][0]["virtual_seconds"] == 240


def test_a_world_that_fails_by_itself_is_run_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = document(capsys, tmp_path, "worlds:fails_always", "--seeds", "1..20", code=1)
    assert found["runs"] == 1
    (failed,) = found["failed"]
    assert failed["schedule"]["steps"] == []
    assert failed["failure"].startswith("ValueError: no shop\n  at worlds.py:")


def test_what_does_not_repeat_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = document(capsys, tmp_path, "worlds:own_process", "--seeds", "1..20", code=2)
    (differs,) = found["not_repeated"]
    assert differs["differs"].startswith("line ")
    assert b"/queues/of-".hex() in differs["differs"]


@pytest.mark.parametrize("world", ["remembers", "a_set"])
def test_every_run_finds_the_modules_as_the_first_one(
    world: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What a module keeps does not reach the next run; sets of strings have the order of the seed."""
    found = document(capsys, tmp_path, f"worlds:{world}", "--seeds", "1..9", "--twice", code=0)
    assert (found["runs"], found["failed"], found["not_repeated"]) == (9, [], [])


@pytest.mark.parametrize(("world", "matters"), [("a_set", True), ("fine", False)])
def test_whether_the_order_of_sets_of_strings_reaches_the_wire(
    world: str, matters: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    last = SEEDS_OF_A_HASH - 1
    found = document(capsys, tmp_path, f"worlds:{world}", "--seeds", f"{last}..{last + 1}", code=0)
    assert (found["runs"], found["hash_matters"]) == (2, matters)


def test_a_seed_has_the_same_order_of_sets_of_strings_in_each_process() -> None:
    def digest(seed: int) -> str:
        setting = Setting("worlds:a_set", [], 600.0, False, "legal", [])
        return asyncio.run(Campaign(setting).replay(Schedule(seed, 600.0))).digest

    assert digest(1) == digest(1) == digest(2) != digest(SEEDS_OF_A_HASH)


def test_a_seed_has_the_order_of_sets_of_strings_of_its_block() -> None:
    assert hash_seed(1) == hash_seed(SEEDS_OF_A_HASH - 1) != hash_seed(SEEDS_OF_A_HASH)


def test_a_run_that_never_awaits_is_ended(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "CPU_S", 1)
    made = worker.Worker(worker.Setting("tests.simulation.search.worlds:busy", [], 600.0, False, "legal", []))
    made.survey()
    crash = Step("crash", 60.0, 9.0, {"how": "rst"}, "crash", "narconi")
    outcome = made.answer(worker.Wish(schedule=Schedule(1, 600.0, steps=(crash,)))).outcome
    assert outcome is not None and outcome.failure is not None
    assert (outcome.failure.name, "took 1 s of the processor" in outcome.failure.text) == ("Hang", True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["worlds:fnie"], "the module 'worlds' has no function 'fnie'; did you mean 'fine'?"),
        (["wolrds:fine"], "there is no module 'wolrds'"),
        (["worlds"], "expected MODULE:FUNCTION such as shop_world:main, got 'worlds'"),
        (["worlds:not_async"], "expected an async function that gets the simulation"),
        (["worlds:fine", "--check", "worlds:has_al"], "did you mean 'has_all'"),
        (["worlds:fine", "--fault", "parttion"], "--fault: expected"),
        (["worlds:fine", "--seeds", "9..1"], "--seeds: expected A..B with A up to B, got '9..1'"),
        (["worlds:nothing"], "has made no broker and started no application: nothing to disturb"),
        (["worlds:fine", "--replay", str(HERE / "worlds.py")], "expected a file that"),
    ],
)
def test_wrong_usage(words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert simulate(*words, "--report", str(tmp_path)) == 64
    assert said in capsys.readouterr().err


def test_ctrl_c_leaves_nothing_behind_but_what_was_found(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fakebrokers", "simulate", "worlds:careless", "--seeds", "1..100000"]
    with subprocess.Popen(
        [*command, "--report", str(tmp_path), "--json"], cwd=HERE, stdout=subprocess.PIPE
    ) as program:
        eventually(lambda: worker_of(program.pid), "a worker")
        (mine,) = worker_of(program.pid)
        eventually(lambda: len(worker_of(mine)) > 0, "a run")
        program.send_signal(signal.SIGINT)
        out, _ = program.communicate()
    assert program.returncode == 130
    assert json.loads(out)["runs"] >= 0
    eventually(lambda: not os.path.exists(f"/proc/{mine}"), "the worker's end")


def worker_of(process: int) -> list[int]:
    """Its children."""
    try:
        text = Path(f"/proc/{process}/task/{process}/children").read_text()
    except FileNotFoundError:
        return []
    return [int(word) for word in text.split()]


def test_an_excerpt_has_what_is_around_faults_and_the_end() -> None:
    row = "      0.0000  narconi            "
    quiet = [f"{row}c1 -> Heartbeat {number}" for number in range(100)]
    story = [*quiet, f"{row}c1 -- rst [fault: fault 1]", *quiet, "   9.0   AssertionError: x"]
    shown = excerpt(story)
    assert shown[0] == "... 98 more"
    assert shown[3] == story[100]
    assert shown[-1] == story[-1]
    assert len(shown) == 1 + 5 + 1 + 6
    assert len(excerpt([f"{row}c1 -- rst [fault: fault 1]"] * 500)) == 41
