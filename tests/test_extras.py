"""What is not installed is asked for by name, and the fakes that need nothing of it run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fakebrokers import extras
from fakebrokers.errors import UsageError
from fakebrokers.extras import ADDRESS, SUITE_ADDRESS, installing, needs
from tests.eventually import PATIENCE_S

ROOT = Path(extras.__file__).parents[1]
#: All that extras bring, and the suite: as if nothing but msgspec and pytest were installed.
WITHOUT = ["aiohttp", "click", "crc32c", "cryptography", "hypothesis", "jinja2", "numpy", "packaging"]
WITHOUT += ["pyarrow", "regex", "rich", "trustme", "zmq", "conformance", "scenarios"]

#: Lets nothing of `WITHOUT` be imported.
BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in WITHOUT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
"""


def python(code: str, folder: Path, *there: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a light installation, in which only these of `WITHOUT` are there."""
    without = [name for name in WITHOUT if name not in there]
    command = [sys.executable, "-c", f"WITHOUT = {without}\n{BLOCKED}{code}"]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )


def test_the_fixtures_run_with_msgspec_and_pytest_alone(tmp_path: Path) -> None:
    (tmp_path / "test_light.py").write_text(
        "import socket\n"
        "from fakebrokers.faults import drop\n"
        "\n"
        "def test_they_accept(rabbitmq_stream, narconi, moleculer):\n"
        "    for fake in (rabbitmq_stream, narconi, moleculer):\n"
        "        fake.faults.add(drop(nth=1000))\n"
        "        with socket.create_connection((fake.host, fake.port)):\n"
        "            fake.wait_for(kind='accepted')\n"
        "\n"
        "def test_a_stream(rabbitmq_stream):\n"
        "    rabbitmq_stream.create_stream('orders')\n"
        "    rabbitmq_stream.publish('orders', b'tea')\n"
        "    assert len(rabbitmq_stream.messages('orders')) == 1\n"
    )
    plugin = "os.environ['PYTEST_DISABLE_PLUGIN_AUTOLOAD'] = '1'"  # others are not there either
    code = f"import os, pytest\n{plugin}\nsys.exit(pytest.main(['-q', '-p', 'fakebrokers.pytest_plugin']))"
    done = python(code, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("from fakebrokers import PZQ", "pzq"),
        ("from fakebrokers import BlazingMQ", "blazingmq"),
        ("from fakebrokers.proxy.api import ToxiproxyApi", "http"),
        ("from fakebrokers.control.api import ControlApi", "http"),
        ("from fakebrokers import RabbitMQStream\nRabbitMQStream(management=True)", "http"),
        ("from fakebrokers import RabbitMQStream\nRabbitMQStream(tls=True).start()", "tls"),
        ("from fakebrokers.core.patterns import Pattern\nPattern('^orders')", "rabbitmq-stream"),
        ("from fakebrokers.journal.seal import seal\nseal(__import__('pathlib').Path('.'))", "suite"),
        ("from fakebrokers.suite import scenarios", "suite"),
        ("from fakebrokers.strategies import fault_plans", "strategies"),
    ],
)
def test_what_an_extra_brings_is_asked_for_by_its_name(tmp_path: Path, code: str, extra: str) -> None:
    done = python(code, tmp_path)
    assert done.returncode == 1
    [*_, error] = done.stderr.strip().splitlines()
    assert error.startswith("fakebrokers.errors.UsageError: ")
    assert error.endswith(installing(extra, here=True))


def test_the_command_line_is_an_extra_too(tmp_path: Path) -> None:
    done = python("from fakebrokers.__main__ import main\nmain()", tmp_path)
    cure = installing("cli", here=True)
    assert (done.returncode, done.stderr) == (3, f"Error: the command line needs click: {cure}\n")


def test_without_the_suite_its_commands_say_how_to_get_it(tmp_path: Path) -> None:
    """With the extra ``cli`` alone."""
    program = "from fakebrokers.cli import main\nmain([{!r}])"
    cli = ("click", "packaging", "rich")
    told = f"The commands that judge clients come with the suite: {installing('suite', here=True)}"
    help_ = python(program.format("--help"), tmp_path, *cli)
    assert help_.returncode == 0
    assert told in " ".join(help_.stdout.split())
    done = python(program.format("conform"), tmp_path, *cli)
    assert (done.returncode, told in done.stderr) == (3, True)


def came_from(monkeypatch: pytest.MonkeyPatch, known: dict[str, Any] | None) -> None:
    """Pretend that pip has installed this project from there (PEP 610)."""

    class Installed:
        def read_text(self, name: str) -> str | None:
            return None if known is None else json.dumps(known)

    monkeypatch.setattr(extras, "distribution", lambda name: Installed())


@pytest.mark.parametrize(
    ("known", "command"),
    [
        (None, f"pip install '{ADDRESS}[suite]' {SUITE_ADDRESS}"),
        (
            {"url": "file:///a%20b/fakebrokers-1.0-py3-none-any.whl", "archive_info": {}},
            "pip install '/a b/fakebrokers-1.0-py3-none-any.whl[suite]' "
            "'/a b/fakebrokers_suite-1.0-py3-none-any.whl'",
        ),
        (
            {"url": "https://host/fakebrokers-1.0-py3-none-any.whl", "archive_info": {}},
            "pip install 'fakebrokers[suite] @ https://host/fakebrokers-1.0-py3-none-any.whl' "
            "'fakebrokers-suite @ https://host/fakebrokers_suite-1.0-py3-none-any.whl'",
        ),
        ({"url": "file:///src", "dir_info": {"editable": True}}, "pip install -e '/src[suite]'"),
        ({"url": "file:///src", "dir_info": {}}, "pip install '/src[suite]' /src/conformance"),
        (
            {"url": "https://host/x.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "pip install 'fakebrokers[suite] @ git+https://host/x.git@abc' "
            "'fakebrokers-suite @ git+https://host/x.git@abc#subdirectory=conformance'",
        ),
    ],
)
def test_more_comes_from_where_this_came_from(
    monkeypatch: pytest.MonkeyPatch, known: dict[str, Any] | None, command: str
) -> None:
    came_from(monkeypatch, known)
    assert installing("suite", here=True) == command


def test_on_the_day_of_the_release_one_place_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    came_from(monkeypatch, None)
    monkeypatch.setattr(extras, "ADDRESS", "fakebrokers")
    monkeypatch.setattr(extras, "SUITE_ADDRESS", "")
    for here in (True, False):
        assert installing("suite", here=here) == "pip install 'fakebrokers[suite]'"
        assert installing(here=here) == "pip install fakebrokers"


def test_a_module_of_ours_that_is_missing_is_no_missing_extra() -> None:
    with pytest.raises(ModuleNotFoundError), needs("pzq", "it"):
        import fakebrokers.nowhere  # type: ignore[import-not-found]  # noqa: F401
    with pytest.raises(UsageError, match="it needs nowhere: pip install "), needs("pzq", "it"):
        import nowhere.inside  # type: ignore[import-not-found]  # noqa: F401
