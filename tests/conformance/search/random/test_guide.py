"""What docs/chaos.md shows happens."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from conformance.cli import commands
from conformance.cli.chaos import chaos_command
from conformance.search.random.workloads import KINDS, find_workload
from fakebrokers.cli import main
from fakebrokers.errors import UsageError

TOP = Path(__file__).parents[4]
PAGE = (TOP / "docs" / "chaos.md").read_text(encoding="utf-8")
[(NAME, TEXT)] = re.findall(r"^```python\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
CONSOLE = re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = [line[2:] for block in CONSOLE for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / NAME).write_text(f"# {NAME}\n{TEXT}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def command(*args: str) -> int:
    """Its exit code."""
    with pytest.raises(SystemExit) as left:
        main(args)
    return int(left.value.code or 0)


def test_the_first_command_ends_without_a_failure(folder: Path) -> None:
    assert command(*shlex.split(COMMANDS[0])[1:]) == 0


def test_the_failure_is_told_as_the_page_shows_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [shown] = [block for block in CONSOLE if "--mutant" in block]
    asked, schedule, finding, replay = shown.splitlines()
    assert command(*shlex.split(asked)[2:]) == 1
    reported = capsys.readouterr().out
    for part in (*schedule.split("..."), finding, replay):
        assert part in reported
    assert command("replay", *re.findall(r"fakebrokers replay (\S+)", reported)) == 1


def test_the_workload_of_the_page_runs_and_finds_a_defect(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [shown] = [each for each in COMMANDS if "acme_chaos" in each]
    assert command(*shlex.split(shown)[1:]) == 0
    capsys.readouterr()
    broken = ("--client", "reference", "--mutant", "crc-signed", "--protocol", "rabbitmq-stream")
    own = ("--workload", "acme_chaos:Bursts", "--seeds", "1..2", "--no-canary", "--json")
    assert command("chaos", *broken, *own) == 1
    assert json.loads(capsys.readouterr().out)["verdicts"]["fail"]


def test_every_command_of_the_page_has_options_that_exist() -> None:
    known = {
        each.name: {o for p in each.load().params for o in (*p.opts, *p.secondary_opts)} for each in commands
    }
    for shown in COMMANDS:
        _, name, *words = shlex.split(shown)
        assert {word for word in words if word.startswith("-") and len(word) > 1} <= known[name]


def test_the_table_of_options_is_that_of_the_command() -> None:
    reported = {f"--{name}" for name in re.findall(r"^\| `--(\w+)", PAGE, re.MULTILINE)}
    assert reported <= {option for each in chaos_command.params for option in each.opts}
    assert {f"`{kind}`" for kind in KINDS} <= set(re.findall(r"`\w+`", PAGE))


def test_what_is_no_workload_is_refused() -> None:
    for name in ("nothing", "nowhere:Nothing", "conformance.search.random.workload:KINDS"):
        with pytest.raises(UsageError):
            find_workload(name)
