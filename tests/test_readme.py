"""What README and `docs/overview.md` show is what happens: code runs as printed, in an empty folder."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from conformance.clients.adapters.registry import bundled
from fakebrokers.commands import ExitCode
from tests.eventually import PATIENCE_S

TOP = Path(__file__).parents[1]
README, OVERVIEW = TOP / "README.md", TOP / "docs" / "overview.md"
TEXT = f"{README.read_text('utf-8')}\n{OVERVIEW.read_text('utf-8')}"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
PYTHON = [text for language, text in BLOCKS if language == "python"]
CONSOLE = [text for language, text in BLOCKS if language == "console"]


def run_pytest(folder: Path, *args: str) -> str:
    """What pytest prints in a folder, on a terminal of 80 columns."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *args],
        cwd=folder,
        env={"PATH": "/usr/bin", "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    return done.stdout


def without_numbers(text: str) -> str:
    """Times, ports and sizes differ from run to run, and so does the width of what stands around them."""
    return re.sub(r"[ =-]+", " ", re.sub(r"[\d.]+s?\b", "0", text)).strip()


def test_first_test_and_its_failure_report(tmp_path: Path) -> None:
    pytest.importorskip("rstream", reason="missing: rstream (pip install rstream)")
    (tmp_path / "test_orders.py").write_text(PYTHON[0])
    printed = run_pytest(tmp_path)
    left = iter([without_numbers(line) for line in printed.splitlines()])
    _command, *promised = CONSOLE[1].splitlines()
    for line in promised:
        # `in` on an iterator reads on to the first match: the lines must come in this order.
        assert line == "..." or without_numbers(line) in left, f"not printed: {line}\n\n{printed}"


def test_the_first_test_would_not_notice_a_lost_confirm(tmp_path: Path) -> None:
    pytest.importorskip("rstream", reason="missing: rstream (pip install rstream)")
    (tmp_path / "test_orders.py").write_text(PYTHON[0])
    printed = run_pytest(tmp_path, "--fakebrokers-mutate", "--fakebrokers-mutate-only=lost-confirm")
    assert (
        "\nrabbitmq-stream lost-confirm: A message is stored, and its confirm is lost. No test fails."
        in printed
    )
    assert "\nscore 0 %: 1 unnoticed\n" in printed


def test_pytest_examples(tmp_path: Path) -> None:
    (tmp_path / "test_examples.py").write_text(PYTHON[1])
    assert " 2 passed in " in run_pytest(tmp_path)


@pytest.mark.parametrize("code", PYTHON[2:], ids=lambda code: code.strip().splitlines()[-1][:20])
def test_other_python_examples(code: str) -> None:
    subprocess.run(
        [sys.executable, "-W", "error", "-c", code], check=True, timeout=PATIENCE_S, capture_output=True
    )


def test_curl_examples() -> None:
    """Each command of the block prints what stands below it; times and what `...` stands for may differ."""
    if shutil.which("curl") is None:
        pytest.skip("missing: curl (apt-get install curl)")
    (block,) = [text for text in CONSOLE if "$ curl " in text]
    serve = [sys.executable, "-m", "fakebrokers", "serve", "rabbitmq-stream", "--control", "0"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        url = served.stdout.readline().split()[-1].removeprefix("control=")
        try:
            commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
            script = "\n".join(
                f"echo '$'; {command.replace('curl ', 'curl -sS ', 1)}; echo" for command in commands
            )
            script = script.replace("http://127.0.0.1:9090", url)
            done = subprocess.run(
                ["sh", "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE_S
            )
        finally:
            served.send_signal(signal.SIGTERM)
        assert (served.wait(PATIENCE_S), done.stderr) == (0, "")
    printed = [part.strip() for part in done.stdout.split("$\n")[1:]]
    for part, told in zip(block.split("$ ")[1:], printed, strict=True):
        command, _, promised = part.partition("\n")
        pattern = ".*".join(map(re.escape, promised.strip().split("...")))
        pattern = re.sub(r"\d{13}", r"\\d{13}", pattern)
        assert re.fullmatch(pattern, told), f"{command}\n{told}"


def test_fault_plan(tmp_path: Path) -> None:
    from fakebrokers.faults import load_plan

    (plan,) = [text for language, text in BLOCKS if language == "toml"]
    (tmp_path / "plan.toml").write_text(plan)
    loaded = load_plan(tmp_path / "plan.toml")
    assert (loaded.seed, loaded.faults[0].name) == (42, "lose the third confirm")


def test_effects_that_it_names_exist() -> None:
    from fakebrokers.faults.registry import effect_types

    (sentence,) = re.findall(r"^There are effects on .*?;", TEXT, re.MULTILINE | re.DOTALL)
    named = [
        name.replace(" ", "-")
        for group in re.findall(r"\((.*?)\)", sentence, re.DOTALL)
        for name in re.split(r",\s+", group)
    ]
    assert len(named) > 20
    assert set(named) <= effect_types().keys()


def test_every_exit_code_is_explained() -> None:
    rows = re.findall(r"^\| ([0-9, ]+) \| \S", TEXT, re.MULTILINE)
    named = {int(code) for row in rows for code in row.split(",")}
    assert named == {*map(int, ExitCode), 130, 143}


def test_the_readme_is_two_screens_long() -> None:
    lines = README.read_text("utf-8").splitlines()
    assert len(lines) <= 110, "the rest belongs into docs/overview.md"


def test_the_readme_names_the_five_systems_first_and_how_many_clients_are_judged() -> None:
    row = r"^\| [\w .]+ \| `(\w+)` \| .*? \| (\d+) clients? \|$"
    found = re.findall(row, README.read_text("utf-8"), re.MULTILINE)
    assert [fixture for fixture, _ in found] == [
        "blazingmq",
        "rabbitmq_stream",
        "pzq",
        "narconi",
        "moleculer",
        *("fake_nats", "fake_redis", "fake_mqtt"),
    ]
    clients = [client for client in bundled() if not client.name.startswith("reference-")]
    judged = Counter(protocol for client in clients for protocol in client.protocols)
    assert {name: int(count) for name, count in found} == {
        name: judged[name.removeprefix("fake_").replace("_", "-")] for name, _ in found
    }
