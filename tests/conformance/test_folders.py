"""A folder that one command writes into is refused to another, as long as the first runs and no longer."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from fakebrokers.cli import main
from fakebrokers.errors import UsageError
from fakebrokers.files import reserved

#: Commands that write into a folder, as far as that goes before they look at it.
COMMANDS = {
    "conform": ["conform", "--client", "reference-pzq", "PZQ-1.01", "--report"],
    "versions": ["conform", "--client", "rstream==1.0,==1.1", "--report"],
    "sweep": ["sweep", "--client", "reference", "--protocol", "pzq", "--report"],
    "chaos": ["chaos", "--client", "reference", "--protocol", "pzq", "--seeds", "1..1", "--report"],
    "analyze": ["analyze", "nowhere", "--out"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_second_command_is_refused_with_the_folder(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "report"
    with reserved(folder), pytest.raises(SystemExit) as ended:
        main([*COMMANDS[command], str(folder)])
    assert ended.value.code == 64
    assert f"{folder}: another fakebrokers writes into it" in capsys.readouterr().err
    assert list(folder.iterdir()) == []


def test_a_folder_is_free_when_the_command_has_ended(tmp_path: Path) -> None:
    for _ in range(2):
        with reserved(tmp_path), pytest.raises(UsageError, match="another fakebrokers"), reserved(tmp_path):
            pass
    with pytest.raises(SystemExit):
        main(["analyze", "nowhere", "--out", str(tmp_path)])
    with reserved(tmp_path):
        pass


def test_a_process_that_is_killed_lets_go(tmp_path: Path) -> None:
    ready, report = os.pipe()
    child = os.fork()
    if not child:
        with reserved(tmp_path):
            os.write(report, b"x")
            signal.pause()
        os._exit(0)
    os.read(ready, 1)
    with pytest.raises(UsageError), reserved(tmp_path):
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with reserved(tmp_path):
        pass
    os.close(ready)
    os.close(report)
