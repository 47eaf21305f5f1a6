"""What docs/control.md shows works: its commands are carried out."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from fakebrokers import RabbitMQStream
from fakebrokers.cli import cli
from fakebrokers.control.api import ControlApi
from fakebrokers.control.brokers import Brokers
from fakebrokers.rabbitmq_stream.ctl import rabbitmq
from tests.eventually import PATIENCE_S

PAGE = (Path(__file__).parents[2] / "docs" / "control.md").read_text()
BLOCKS = re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_management_api() -> None:
    if shutil.which("curl") is None:
        pytest.skip("missing: curl (apt-get install curl)")
    (block,) = [text for text in BLOCKS if "M/overview" in text]
    with RabbitMQStream(management=True) as broker:
        lines = [line[2:] for line in block.splitlines() if "connections/" not in line]  # it has another name
        script = "set -e\n" + "\n".join(line.replace("curl ", "curl -sSf ", 1) for line in lines)
        script = script.replace("http://guest:guest@127.0.0.1:15672", broker.management_url)
        done = subprocess.run(
            ["sh", "-c", script], capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert broker.streams == ["orders"]
        assert broker.broker.access.users["bob"].may("read", "test", "orders")


def test_operations(brokers: Brokers, api: ControlApi) -> None:
    brokers.add("rabbitmq-stream", "b", {})
    (block,) = [text for text in BLOCKS if "ctl http" in text]
    for line in block.splitlines():
        words = shlex.split(line.removeprefix("$ ").replace("http://127.0.0.1:9090", api.url), comments=True)
        done = CliRunner().invoke(cli, words[1:], standalone_mode=False)
        assert done.exception is None, line
    server = brokers.find("b")
    assert isinstance(server, RabbitMQStream)
    assert [message.body for message in server.messages("orders")] == [b"tea", b"milk"]
    assert len(server.faults.names) == 1


def test_all_commands_of_the_stand_in_are_named() -> None:
    (table,) = re.findall(r"^\| users \|.*?\n\n", PAGE, re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"\w+", table))
    assert set(rabbitmq.commands) <= named
