"""``fakebrokers proxy`` and ``serve --replay`` as a user meets them, and stock clients of Toxiproxy."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fakebrokers import RabbitMQStream
from fakebrokers.commands import ExitCode
from tests.eventually import PATIENCE_S, takes_at_least
from tests.proxy.stream_client import StreamClient
from tests.toy import Toy

COMMAND = [sys.executable, "-m", "fakebrokers"]
PLAN = """
[[faults]]
name   = "lost"
match  = { direction = "out", role = "confirm", nth = 1 }
effect = { type = "drop" }
"""


class Running:
    """A command that has said that it is ready; its words by name."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            _, complaint = process.communicate(timeout=PATIENCE_S)
            raise AssertionError(complaint)
        self.words = line.split()
        self.url = self.words[2]
        self.urls = dict(word.split("=", 1) for word in self.words[3:])

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def end(self) -> tuple[str, int]:
        """What was complained about, and the exit code."""
        self.process.send_signal(signal.SIGTERM)
        _, complaint = self.process.communicate(timeout=PATIENCE_S)
        return complaint, self.process.returncode


Start = Callable[..., Running]


@pytest.fixture
def start() -> Iterator[Start]:
    running = []

    def start(*words: str) -> Running:
        pipe = subprocess.PIPE
        process = subprocess.Popen([*COMMAND, *words], stdout=pipe, stderr=pipe, text=True)
        running.append(process)
        return Running(process)

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture
def broker() -> Iterator[RabbitMQStream]:
    with RabbitMQStream(exact=True) as broker:
        broker.create_stream("orders")
        yield broker


def ask(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock:
        sock.settimeout(PATIENCE_S)
        sock.sendall(b"put a\n")
        return sock.recv(100)


def fetch(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        return json.load(answer)


def test_a_plan_in_front_of_a_server(start: Start, broker: RabbitMQStream, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    words = ["--protocol", "rabbitmq-stream", "--faults", str(plan), "--control", "0", "--api", "0"]
    proxy = start("proxy", broker.url, *words, "--journal", str(tmp_path / "journal"))
    assert proxy.words[:2] == ["READY", "rabbitmq-stream"]
    assert proxy.url == f"rabbitmq-stream://127.0.0.1:{proxy.port}"
    with StreamClient(proxy.port) as client:
        client.create("orders")
        client.publish(b"a")
        broker.wait_for(kind="PublishConfirm")
        client.publish(b"b")
        assert client.confirmed(1) == [4]
    made = json.dumps({"name": "second", "upstream": broker.url}).encode()
    with urllib.request.urlopen(f"{proxy.urls['api']}/proxies", made, timeout=PATIENCE_S) as answer:
        port = json.load(answer)["listen"].rpartition(":")[2]
    with StreamClient(int(port)) as client:  # reads frames, too, or it would tell the server's port
        assert (client.opened.properties or {})["advertised_port"] == port
    control = f"{proxy.urls['control']}/brokers/proxy"
    assert fetch(f"{control}/faults/lost")["fired"] == 1
    with urllib.request.urlopen(f"{control}/journal?kind=Publish", timeout=PATIENCE_S) as answer:
        assert len(answer.read().splitlines()) == 2
    assert proxy.end() == ("", ExitCode.OK)
    assert list((tmp_path / "journal").iterdir())


def test_a_session_is_recorded_and_played(start: Start, broker: RabbitMQStream, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    words = ["--protocol", "rabbitmq-stream", "--api", "0", "--record", str(file)]
    proxy = start("proxy", broker.url, *words)

    def session(port: int, ids: int) -> list[int]:
        with StreamClient(port, ids=ids) as client:
            client.create("orders")
            client.publish(b"a", b"b")
            return client.confirmed(2)

    assert session(proxy.port, 1) == [3, 4]
    assert proxy.end() == ("", ExitCode.OK)
    replay = start("serve", "rabbitmq-stream", "--replay", str(file), "--control", "0")
    assert replay.words[:2] == ["READY", "rabbitmq-stream"]
    assert session(replay.port, 70) == [72, 73]
    assert fetch(f"{replay.urls['control']}/brokers/rabbitmq-stream")["port"] == replay.port
    assert replay.end() == ("", ExitCode.OK)


def test_toxiproxys_python_client_drives_it(start: Start) -> None:
    toxiproxy = pytest.importorskip(
        "toxiproxy", reason="missing: toxiproxy-python (pip install toxiproxy-python)"
    )
    with Toy() as toy:
        proxy = start("proxy", f"127.0.0.1:{toy.port}", "--api", "0", "--name", "shop")
        assert proxy.words[1] == "proxy"
        driver = toxiproxy.Toxiproxy()
        driver.update_api_consumer("127.0.0.1", int(proxy.urls["api"].rpartition(":")[2]))
        shop = driver.get_proxy("shop")
        shop.add_toxic(type="latency", attributes={"latency": 100, "jitter": 0})
        with takes_at_least(0.1):
            assert ask(proxy.port) == b"stored a\n"
        with shop.down(), pytest.raises(ConnectionRefusedError):
            ask(proxy.port)
        assert ask(proxy.port) == b"stored a\n"
        assert proxy.end() == ("", ExitCode.OK)


@pytest.mark.full
def test_toxiproxys_own_command_line_drives_it(start: Start) -> None:
    cli = shutil.which("toxiproxy-cli") or shutil.which("toxiproxy-cli", path=Path(sys.executable).parent)
    if cli is None:
        pytest.skip("missing: toxiproxy-cli (go install github.com/Shopify/toxiproxy/v2/cmd/cli@v2.5.0)")
    with Toy() as toy:
        proxy = start("proxy", f"127.0.0.1:{toy.port}", "--api", "0", "--name", "shop")

        def run(*words: str) -> str:
            done = subprocess.run(
                [cli, "--host", proxy.urls["api"], *words],
                capture_output=True,
                text=True,
                check=True,
                timeout=PATIENCE_S,
            )
            return done.stdout

        assert run("list").split() == [
            "shop",
            f"127.0.0.1:{proxy.port}",
            f"127.0.0.1:{toy.port}",
            "enabled",
            "0",
        ]
        run("toxic", "add", "--type", "latency", "--attribute", "latency=100", "shop")
        run("toxic", "update", "--toxicName", "latency_downstream", "--attribute", "latency=200", "shop")
        assert "latency=200" in run("inspect", "shop")
        with takes_at_least(0.2):
            assert ask(proxy.port) == b"stored a\n"
        run("toxic", "remove", "--toxicName", "latency_downstream", "shop")
        run("toggle", "shop")
        with pytest.raises(ConnectionRefusedError):
            ask(proxy.port)
        run("toggle", "shop")
        assert ask(proxy.port) == b"stored a\n"
        run("create", "--listen", "localhost:0", "--upstream", f"localhost:{toy.port}", "other")
        assert len(run("list").splitlines()) == 2
        run("delete", "other")
        assert proxy.end() == ("", ExitCode.OK)


@pytest.mark.parametrize(
    ("words", "problem", "code"),
    [
        (["proxy", "nowhere"], "expected the server's address as host:port", ExitCode.USAGE),
        (["proxy", "h:1", "--protocol", "pzq"], "a library owns its bytes", ExitCode.USAGE),
        (["proxy", "h:1", "--protocol", "pzz"], "did you mean 'pzq'", ExitCode.USAGE),
        (["proxy", "h:1", "--protocol", "moleculer", "--transporter", "natz"], "did you mean 'nats'", 64),
        (["proxy", "h:1", "--record", "x"], "name the protocol", ExitCode.USAGE),
        (["proxy", "h:1", "--record", "/no/such/x"], "there is no folder /no/such", ExitCode.USAGE),
        (["serve", "pzq", "--replay", "{file}"], "expected the head of a recording", ExitCode.USAGE),
        (["serve", "moleculer", "--nodes", "2", "--replay", "{file}"], "does not go with --nodes", 64),
        (["serve", "pzq", "--profile", "seed", "--replay", "{file}"], "does not go with --profile", 64),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, words: list[str], problem: str, code: int) -> None:
    file = tmp_path / "empty.jsonl"
    file.touch()
    filled = [word.replace("{file}", str(file)) for word in words]
    done = subprocess.run(
        [*COMMAND, *filled], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert problem in done.stderr
    assert (done.returncode, done.stdout) == (code, "")


@pytest.mark.parametrize("flag", ["--port", "--api"])
def test_a_port_in_use_is_told(flag: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ["proxy", "127.0.0.1:1", flag, port, *(["--api", "0"] if flag == "--port" else [])]
        done = subprocess.run(
            [*COMMAND, *words], capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
    assert done.returncode == ExitCode.HARNESS
    assert f"{flag} 0 takes any free port" in done.stderr
