"""What docs/proxy.md shows is what happens: its commands and programs run as printed, but for the ports."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fakebrokers import RabbitMQStream
from tests.eventually import PATIENCE_S
from tests.proxy.stream_client import StreamClient

PAGE = (Path(__file__).parents[2] / "docs" / "proxy.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PYTHON = [text for language, text in BLOCKS if language == "python"]
#: Commands that stay, and blocks of curl, in the order of the page.
STARTS = [text for language, text in BLOCKS if language == "console" and text.startswith("$ fakebrokers ")]
FRAMES, TOXIPROXY = [text for language, text in BLOCKS if language == "console" and "$ curl " in text]

NUMBER = re.compile(r":\d+")


@contextmanager
def started(block: str, folder: Path, upstream: int) -> Iterator[tuple[int, dict[str, str]]]:
    """A command of the page in a folder; the port for clients, and the further addresses by name."""
    command, promised = block.removeprefix("$ ").strip().split("\n")
    command = command.replace("127.0.0.1:5552", f"127.0.0.1:{upstream}").replace(
        "--control 9090", "--control 0"
    )
    words = command.split()[1:]
    api = ["--api", "0"] if words[0] == "proxy" else []
    program = [sys.executable, "-m", "fakebrokers", *words, *api]
    with subprocess.Popen(program, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline().strip()
            assert NUMBER.sub("", line) == NUMBER.sub("", promised)
            _, _, url, *further = line.split()
            yield int(url.rpartition(":")[2]), dict(word.split("=", 1) for word in further)
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def run_curl(block: str, **addresses: str) -> None:
    """Each command prints what stands below it; ``...`` stands for anything."""
    if shutil.which("curl") is None:
        pytest.skip("missing: curl (apt-get install curl)")
    parts = block.split("$ ")[1:]
    commands = [part.splitlines()[0].replace("curl ", "curl -sS ", 1) for part in parts]
    script = "\n".join([f"{command}; echo; echo '--'" for command in commands])
    for name, url in addresses.items():
        script = script.replace(name, url)
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert done.stderr == ""
    for part, printed in zip(parts, done.stdout.split("--\n"), strict=False):
        command, _, promised = part.partition("\n")
        pattern = ".*".join(map(re.escape, promised.strip().split("...")))
        assert not promised.strip() or re.fullmatch(pattern, printed.strip()), f"{command}\n{printed}"
        assert '"status":4' not in printed, f"{command}\n{printed}"


@pytest.fixture
def server() -> Iterator[RabbitMQStream]:
    with RabbitMQStream() as server:
        server.create_stream("orders")
        yield server


def confirmed(server: RabbitMQStream, port: int, ids: int = 1, lost: int = 0) -> list[int]:
    """Which of four messages of a client are confirmed, from 1, where one may be lost."""
    found = []
    with StreamClient(port, ids=ids) as client:
        client.create("orders")
        for number, body in enumerate((b"a", b"b", b"c", b"d"), 1):
            client.publish(body)
            if number == lost:
                server.wait_for(kind="PublishConfirm", count=number)
            else:
                found += client.confirmed(1)
    return [each - ids - 1 for each in found]


def test_frames(server: RabbitMQStream, tmp_path: Path) -> None:
    (plan,) = [text for language, text in BLOCKS if language == "toml"]
    (tmp_path / "plan.toml").write_text(plan)
    with started(STARTS[0], tmp_path, server.port) as (port, urls):
        run_curl(FRAMES, **{"http://127.0.0.1:9090": urls["control"]})
        assert confirmed(server, port, lost=3) == [1, 2, 4]


def test_a_session_to_keep(server: RabbitMQStream, tmp_path: Path) -> None:
    with started(STARTS[1], tmp_path, server.port) as (port, _):
        assert confirmed(server, port) == [1, 2, 3, 4]
    with started(STARTS[2], tmp_path, 0) as (port, _):
        assert confirmed(server, port, ids=300) == [1, 2, 3, 4]


def test_toxiproxy(server: RabbitMQStream, tmp_path: Path) -> None:
    with started(STARTS[3], tmp_path, server.port) as (port, urls):
        run_curl(TOXIPROXY, **{"http://127.0.0.1:8474": urls["api"]})
        assert confirmed(server, port) == [1, 2, 3, 4]


@pytest.mark.parametrize("code", PYTHON)
def test_python_examples(code: str) -> None:
    subprocess.run(
        [sys.executable, "-W", "error", "-c", code], check=True, timeout=PATIENCE_S, capture_output=True
    )
