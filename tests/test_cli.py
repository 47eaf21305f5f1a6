"""The command line as a user meets it: in a process of its own, by its output and exit code."""

from __future__ import annotations

import base64
import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click
import pytest

from fakebrokers import __version__, cli
from fakebrokers.commands import ExitCode
from fakebrokers.core.wire import Wire
from fakebrokers.description import _REGISTERED as protocol_table
from fakebrokers.protocol import Protocol, protocols
from tests.eventually import PATIENCE_S
from tests.marked import PASSWORD

COMMAND = [sys.executable, "-m", "fakebrokers"]
#: What ships; in another process nothing else is registered.
AVAILABLE = [each for each in protocols() if each.server.startswith("fakebrokers.")]

Start = Callable[..., subprocess.Popen[str]]


def fakebrokers(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *args], capture_output=True, text=True, check=False, timeout=PATIENCE_S)


@pytest.fixture
def start() -> Iterator[Start]:
    """Start `fakebrokers serve`; whatever still runs at the end is killed."""
    running = []

    def start(*args: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        process = subprocess.Popen([*COMMAND, "serve", *args], stdout=pipe, stderr=pipe, text=True)
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def ready(process: subprocess.Popen[str]) -> list[str]:
    """The words of the line that says that the fake accepts connections."""
    assert process.stdout is not None
    return process.stdout.readline().split()


def end(process: subprocess.Popen[str], how: signal.Signals) -> tuple[str, str, int]:
    """What was printed after the READY line, and the exit code."""
    process.send_signal(how)
    out, err = process.communicate(timeout=PATIENCE_S)
    return out, err, process.returncode


# serve


@pytest.mark.parametrize("info", AVAILABLE, ids=lambda info: info.name)
def test_serve_says_ready_and_ends_cleanly(start: Start, info: Protocol) -> None:
    process = start(info.name)
    word, protocol, url, *extra = ready(process)
    assert (word, protocol) == ("READY", info.name)
    assert all("=" in pair for pair in extra)
    address = ("127.0.0.1", int(url.rpartition(":")[2].partition("/")[0]))
    socket.create_connection(address, timeout=PATIENCE_S).close()
    assert end(process, signal.SIGTERM) == ("", "", ExitCode.OK)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=PATIENCE_S)


def test_serve_ends_cleanly_with_a_client_on_the_line(start: Start) -> None:
    process = start("rabbitmq-stream")
    port = int(ready(process)[2].rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S):
        assert end(process, signal.SIGINT) == ("", "", ExitCode.OK)


def test_serve_with_faults(start: Start, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[[faults]]\nmatch = { on = "accept" }\neffect = { type = "fin" }\n')
    process = start("rabbitmq-stream", "--faults", str(plan))
    port = int(ready(process)[2].rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        assert connection.recv(1) == b""
    assert end(process, signal.SIGTERM) == ("", "", ExitCode.OK)


def test_serve_with_a_journal(start: Start, tmp_path: Path) -> None:
    process = start("rabbitmq-stream", "--journal", str(tmp_path / "journal"))
    port = int(ready(process)[2].rpartition(":")[2])
    socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S).close()
    assert end(process, signal.SIGTERM) == ("", "", ExitCode.OK)
    assert any(path.stat().st_size for path in (tmp_path / "journal").rglob("*"))


def test_serve_on_a_port_that_is_taken(start: Start) -> None:
    port = ready(start("rabbitmq-stream"))[2].rpartition(":")[2]
    done = fakebrokers("serve", "rabbitmq-stream", "--port", port)
    assert (done.stdout, done.returncode) == ("", ExitCode.HARNESS)
    assert "cannot listen: " in done.stderr and "--port 0 takes any free port" in done.stderr
    assert "Traceback" not in done.stderr


def test_serve_warns_when_others_can_reach_it(start: Start) -> None:
    process = start("rabbitmq-stream", "--host", "0.0.0.0")
    assert ready(process)[0] == "READY"
    _, err, code = end(process, signal.SIGTERM)
    assert err.startswith("warning: ") and "0.0.0.0" in err and len(err.splitlines()) == 1
    assert code == ExitCode.OK


def control_of(words: list[str]) -> str:
    """The control API's URL in a READY line."""
    return dict(word.split("=", 1) for word in words[3:])["control"]


def asked(url: str, data: str | None = None) -> object:
    body = None if data is None else data.encode()
    with urllib.request.urlopen(url, data=body, timeout=PATIENCE_S) as answer:
        return json.loads(answer.read() or b"null")


def test_serve_with_the_control_api(start: Start) -> None:
    process = start("narconi", "--control", "0")
    words = ready(process)
    (row,) = asked(f"{control_of(words)}/brokers")  # type: ignore[misc]
    assert (row["name"], row["url"]) == ("narconi", words[2])
    asked(f"{control_of(words)}/brokers", '{"protocol": "pzq"}')
    assert end(process, signal.SIGTERM) == ("", "", ExitCode.OK)
    with pytest.raises(urllib.error.URLError):
        asked(f"{control_of(words)}/brokers")


def test_serve_with_a_control_port_that_is_taken(start: Start) -> None:
    port = control_of(ready(start("narconi", "--control", "0"))).rpartition(":")[2]
    done = fakebrokers("serve", "narconi", "--control", port)
    assert (done.stdout, done.returncode) == ("", ExitCode.HARNESS)
    assert "--control 0 takes any free port" in done.stderr and "Traceback" not in done.stderr


def test_serve_with_what_a_stock_client_needs(start: Start) -> None:
    flags = f"--nodes 2 --tls --user bob:{PASSWORD} --management 0 --advertise localhost --control 0"
    process = start("rabbitmq-stream", *flags.split())
    words = ready(process)
    urls = dict(word.split("=", 1) for word in words[3:])
    assert urls.keys() == {"node2", "tls", "management", "ca", "control"}
    assert Path(urls["ca"].removeprefix("file://")).read_text().startswith("-----BEGIN CERTIFICATE")
    login = {"Authorization": "Basic " + base64.b64encode(f"bob:{PASSWORD}".encode()).decode()}
    request = urllib.request.Request(urls["management"] + "/api/nodes", headers=login)
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        assert [node["name"] for node in json.loads(answer.read())] == [
            "rabbit@localhost",
            "rabbit2@localhost",
        ]
    hosts = asked(f"{urls['control']}/brokers/rabbitmq-stream/nodes")
    assert [row["host"] for row in hosts] == ["localhost", "localhost"]  # type: ignore[attr-defined]
    assert end(process, signal.SIGTERM) == ("", "", ExitCode.OK)
    assert not Path(urls["ca"].removeprefix("file://")).exists()


def test_serve_at_a_management_port(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = start("moleculer", "--management", str(port), "--nodes", "2", "--control", "0")
    words = ready(process)
    assert f"management=http://127.0.0.1:{port}" in words
    assert asked(f"http://127.0.0.1:{port}/healthz") == {"status": "ok"}
    nodes = asked(f"{control_of(words)}/brokers/moleculer/nodes")
    assert [row["id"] for row in nodes] == ["fake-1", "fake-2"]  # type: ignore[attr-defined]


def test_serve_with_domains(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "domains.toml"
    file.write_text('[domains.d]\nmode = "fanout"\napp_ids = ["a"]\n')
    process = start("blazingmq", "--domains", str(file), "--nodes", "2", "--control", "0")
    broker = f"{control_of(ready(process))}/brokers/blazingmq"
    asked(f"{broker}/post", '{"uri": "bmq://d/q", "payload": "x"}')
    assert asked(f"{broker}/queue?uri=bmq://d/q")["apps"] == {"a": 1}  # type: ignore[index]


PROTOCOL = Protocol(
    name="two-wires",
    about="two wires",
    server="tests.test_cli:Recorder",
    wires=(Wire("lines", (), port=11), Wire("counted", (), port=12)),
    variants=("lines", "counted"),
)


@pytest.fixture
def two_wires(monkeypatch: pytest.MonkeyPatch) -> None:
    """A protocol with a choice of two wires."""
    monkeypatch.setitem(sys.modules, "two_wires", sys.modules[__name__])
    monkeypatch.setitem(protocol_table, "two-wires", "two_wires")


class Recorder:
    """In place of a server class: keeps the options it was made with."""

    def __init__(self, **options: object) -> None:
        self.options = options

    @classmethod
    def _options_from_environ(cls, environ: Mapping[str, str]) -> dict[str, object]:
        return {"port": int(environ["PORT"]), "size": 5} if "PORT" in environ else {}


@pytest.mark.parametrize(
    ("args", "options"),
    [
        (["pzq"], {"host": "127.0.0.1", "port": 0, "profile": "real", "faults": None}),
        (["pzq", "--port", "default", "--host", "::1"], {"port": 11131, "host": "::1"}),
        (["narconi", "--port", "8081", "--profile", "seed"], {"port": 8081, "profile": "seed"}),
        (
            ["two-wires", "--transporter", "counted", "--port", "default"],
            {"transporter": "counted", "port": 12},
        ),
        (["two-wires", "--port", "default"], {"port": 11}),
        (["pzq", "--journal", "here"], {"journal_dir": Path("here"), "journal_frames": False}),
        (
            ["pzq", "--journal", "here", "--journal-frames"],
            {"journal_dir": Path("here"), "journal_frames": True},
        ),
        (["pzq", "--seed", "7"], {"seed": 7}),
        (["rabbitmq-stream", "--nodes", "3", "--tls"], {"nodes": 3, "tls": True}),
        (["narconi", "--certificate", "expired"], {"tls": "expired"}),
        (
            ["rabbitmq-stream", "--management", "0", "--advertise", "b"],
            {"management": True, "advertised_host": "b"},
        ),
        (
            ["moleculer", "--management", "8222", "--user", f"a:b:{PASSWORD}"],
            {"management": 8222, "user": "a", "password": f"b:{PASSWORD}"},
        ),
        (
            ["moleculer", "--transporter", "mqtt", "--namespace", "x"],
            {"transporter": "mqtt", "namespace": "x"},
        ),
        (["rabbitmq-stream", "--real-delays"], {"real_delays": True}),
    ],
)
def test_what_serve_asks_of_the_server(
    two_wires: None,
    monkeypatch: pytest.MonkeyPatch,
    args: list[str],
    options: dict[str, object],
) -> None:
    asked: list[Recorder] = []
    monkeypatch.delenv("PORT", raising=False)
    monkeypatch.setattr(Protocol, "load", lambda self: Recorder)
    monkeypatch.setattr(cli, "_run", lambda protocol, server, *more: asked.append(server))
    with pytest.raises(SystemExit):
        cli.main(["serve", *args])
    assert options.items() <= asked[0].options.items()
    assert asked[0].options.keys() == {"host", "port", "profile", "faults"} | options.keys()


@pytest.mark.parametrize(("args", "port"), [([], 8099), (["--port", "8081"], 8081), (["--port", "0"], 0)])
def test_serve_takes_what_the_real_server_takes_from_its_environment(
    monkeypatch: pytest.MonkeyPatch, args: list[str], port: int
) -> None:
    asked: list[Recorder] = []
    monkeypatch.setenv("PORT", "8099")
    monkeypatch.setattr(Protocol, "load", lambda self: Recorder)
    monkeypatch.setattr(cli, "_run", lambda protocol, server, *more: asked.append(server))
    with pytest.raises(SystemExit):
        cli.main(["serve", "narconi", *args])
    assert (asked[0].options["port"], asked[0].options["size"]) == (port, 5)


class Defective:
    """A server with an error inside."""

    url = "fake://"
    urls: dict[str, str] = {}  # noqa: RUF012 - never written

    def __init__(self, **options: object) -> None: ...

    @classmethod
    def _options_from_environ(cls, environ: Mapping[str, str]) -> dict[str, object]:
        return {}

    def start(self) -> None:
        signal.raise_signal(signal.SIGTERM)

    def stop(self) -> None: ...

    def check(self) -> None:
        raise ZeroDivisionError("inside")


def test_serve_tells_of_a_defect_of_the_fake(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)}
    monkeypatch.setattr(Protocol, "load", lambda self: Defective)
    try:
        with pytest.raises(SystemExit) as exit_:
            cli.main(["serve", "pzq"])
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
    assert exit_.value.code == ExitCode.HARNESS
    err = capsys.readouterr().err
    assert f"a defect of fakebrokers {__version__}, please report it" in err
    assert "ZeroDivisionError: inside" in err


# wrong usage


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "Usage: fakebrokers"),
        (["srve"], "there is no command 'srve'; did you mean 'serve'?"),
        (["--nope"], "No such option"),
        (["serve"], "Missing argument 'PROTOCOL'"),
        (["serve", "rabitmq"], "there is no protocol 'rabitmq'; did you mean 'rabbitmq-stream'?"),
        (["serve", "pzq", "--port", "65536"], "'65536' is no port: 0 to 65535"),
        (["serve", "pzq", "--port", "-1"], "'-1' is no port"),
        (["serve", "pzq", "--transporter", "nats"], "pzq has no transporter 'nats'; it has: none"),
        (["serve", "rabbitmq-stream", "--faults", "/nowhere.toml"], "'/nowhere.toml' does not exist"),
        (["serve", "rabbitmq-stream", "--profile", "12.7"], "12.7"),
        (["serve", "pzq", "--nodes", "2"], "pzq has no option --nodes; it has no options of its own"),
        (["serve", "narconi", "--user", "a:b"], "narconi has no option --user; it has: --tls, --certificate"),
        (["serve", "blazingmq", "--tls"], "blazingmq has no option --tls; it has: --nodes, --domains"),
        (["serve", "rabbitmq-stream", "--nodes", "0"], "--nodes: expected int >= 1: 0"),
        (["serve", "rabbitmq-stream", "--user", "bob"], "expected a user as NAME:PASSWORD, got 'bob'"),
        (["serve", "moleculer", "--user", "a:b", "--user", "c:d"], "expected one user at most"),
        (["serve", "moleculer", "--serializer", "X"], "no serializer 'X'; one of: "),
        (["serve", "narconi", "--certificate", "x"], "'x' is not one of 'good', 'expired', 'wrong-host'"),
        (["serve", "pzq", "--control", "65536"], "65536 is not in the range"),
        (["serve", "pzq", "--journal-frames"], "--journal-frames needs --journal DIR"),
        (["proxy", "127.0.0.1:1", "--journal-frames"], "--journal-frames needs --journal DIR"),
    ],
)
def test_wrong_usage_is_explained(args: list[str], message: str) -> None:
    done = fakebrokers(*args)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert (done.stdout, done.returncode) == ("", ExitCode.USAGE)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (
            "[[faults]]\nmatch = { rle = 1 }\neffect = { type = 'drop' }",
            "faults[0].match.rle: expected one of",
        ),
        ("[[faults]]\neffect = { type = 'dorp' }", "faults[0].effect.type: expected one of"),
        ("[[faults", "expected a TOML or JSON file"),
    ],
)
def test_a_wrong_plan_is_explained(tmp_path: Path, plan: str, message: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(plan)
    done = fakebrokers("serve", "rabbitmq-stream", "--faults", str(path))
    assert f"{path}: " in done.stderr and message in done.stderr
    assert "Traceback" not in done.stderr
    assert (done.stdout, done.returncode) == ("", ExitCode.USAGE)


# help


def test_help_for_strangers() -> None:
    done = fakebrokers("--help")
    assert done.returncode == ExitCode.OK
    for words in ("serve PROTOCOL", "doctor", "pytest fixture"):
        assert words in done.stdout


def test_help_for_serve_lists_the_protocols() -> None:
    done = fakebrokers("serve", "-h")
    assert done.returncode == ExitCode.OK
    for info in AVAILABLE:
        assert re.search(rf"{info.name} +{info.about} \(usual port {info.port}\)", done.stdout)


def test_version() -> None:
    assert fakebrokers("--version").stdout == f"fakebrokers {__version__}\n"


def all_options() -> dict[tuple[str, str], click.Option]:
    """Each option of each command, by both names."""
    context = click.Context(cli.cli)
    found = {}
    for name in cli.cli.list_commands(context):
        command = cli.cli.get_command(context, name)
        for each in command.params if command else ():
            if isinstance(each, click.Option):
                found[name, each.opts[0]] = each
    return found


def test_each_seed_says_of_what() -> None:
    told = {name: each.help or "" for (name, option), each in all_options().items() if option == "--seed"}
    assert {"serve", "proxy", "conform", "sweep", "mutants"} <= set(told)
    assert [name for name, text in told.items() if not text.startswith("Seed of ")] == []


def test_all_targets_are_given_alike() -> None:
    targets = {name: each for (name, option), each in all_options().items() if option == "--target"}
    assert {"conform", "chaos", "compare"} <= set(targets)
    assert {each.metavar for each in targets.values()} == {"URL"}
    assert all("HOST:PORT" in (each.help or "") for each in targets.values())
