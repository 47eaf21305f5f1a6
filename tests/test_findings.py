"""Each program of `docs/findings` shows what the page says, where its client is installed in that version."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from zipfile import ZipFile

import msgspec
import pytest
from _pytest.mark import ParameterSet

from ci.site.findings import FOLDER, causes, listed, pages
from conformance.clients.adapters.registry import find
from conformance.findings import SEVERITIES, RootCause, findings, issue, places, section, write_findings
from conformance.known.defects import Defect, KnownRow
from conformance.report.links import PageLinks
from conformance.results import Results, RowResult, Verdict
from conformance.suite.load import requirements
from fakebrokers.extras import installing
from tests.cargo import build
from tests.eventually import PATIENCE_S
from tests.pages import TOP, npm_package, npm_packages
from tests.real_rabbitmq import real_rabbitmq

FINDINGS = findings()
#: The libraries of the programs in JavaScript.
PACKAGES = {
    "rabbitmq-stream-js": "rabbitmq-stream-js-client",
    "moleculer-0.14": "moleculer-0.14",
    "moleculer-0.15": "moleculer-0.15",
    "redis-node": "ioredis",
    "mqtt-node": "mqtt",
    "nats-node": "@nats-io/transport-node",
}
HELPERS = TOP / "conformance" / "helpers"
#: Jars of the Java client.
JARS = TOP / "conformance" / "clients" / "adapters" / "rabbitmq-stream-java" / "build" / "lib" / "*"
#: Where the version is that of something else than the adapter's library.
OTHERWISE = {"aiohttp", "java.net.http", "rabbitmq-stream-protocol"}
#: Their packages hold no source, or the machine has another version of it.
COMPILED = {"blazingmq", "java.net.http"}


def needed(program: str) -> str:
    """A program of the language's tool chain."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"missing: {program}")
    return found


def check_client(finding: RootCause) -> None:
    """Skip the test where the client is not there, or in another version."""
    client = find(finding.client)
    if not client.runnable:
        pytest.skip(f"missing: {'; '.join(client.missing)}")
    if finding.library not in OTHERWISE and client.version not in finding.versions.split(", "):
        pytest.skip(f"seen in {finding.versions}, and {client.version} is installed")


def set_up(finding: RootCause, folder: Path) -> list[str]:
    """Put the program into a folder with what it imports; the command that runs it."""
    check_client(finding)
    shutil.copy(FOLDER / finding.program, folder)
    match Path(finding.program).suffix:
        case ".py":
            return [sys.executable, finding.program]
        case ".mjs":
            return javascript(finding, folder)
        case ".go":
            shutil.copytree(
                HELPERS / "go", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*_test.go")
            )
            require(finding.client, folder)
            return [needed("go"), "test", "-count", "1", "-v", "."]
    shutil.copy(HELPERS / "java" / "FakeBroker.java", folder)
    path = ["-cp", f"{JARS}{os.pathsep}."]
    sources = [path.name for path in folder.glob("*.java")]
    subprocess.run([needed("javac"), *path, *sources], cwd=folder, check=True, timeout=PATIENCE_S)
    return [needed("java"), *path, Path(finding.program).stem]


def require(client: str, folder: Path) -> None:
    """Have a Go module need what the adapter of a client does, in the same versions."""
    adapter = Path(find(client).folder)
    needs = (adapter / "go.mod").read_text("utf-8").splitlines()
    (folder / "go.mod").write_text(
        "\n".join(line for line in needs if "fakebrokers/kit" not in line), "utf-8"
    )
    shutil.copy(adapter / "go.sum", folder)


def javascript(finding: RootCause, folder: Path) -> list[str]:
    """The same, with the package in its `node_modules`."""
    name = PACKAGES[finding.client]
    own = Path(find(finding.client).folder) / "node_modules" / name
    package = own if own.is_dir() else npm_package(name)
    assert package is not None
    link = folder / "node_modules" / name.partition("-0.")[0]
    link.parent.mkdir(parents=True)
    link.symlink_to(package.resolve())
    shutil.copy(HELPERS / "node" / "fakebrokers.mjs", folder)
    return ["node", finding.program]


def shows(finding: RootCause, command: list[str], folder: Path) -> None:
    """Run the program, and compare what it prints, and how it ends, with the page."""
    env = os.environ | {"PYTHONPATH": str(TOP), "FAKEBROKERS": f"{sys.executable} -m fakebrokers"}
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=PATIENCE_S)
    finally:  # a client that takes its program down leaves the fake behind that the program has started
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == finding.exit, printed
    for line in finding.prints:
        assert line in printed, printed
    assert "the process lives" not in printed


def source(package: str, file: str) -> list[str]:
    """The lines of a file of a package as it is installed here."""
    name, _, wanted = package.rpartition(" ")
    if name == "com.rabbitmq:stream-client":
        jar = Path(JARS).parents[1] / "source" / f"stream-client-{wanted}-sources.jar"
        if not jar.is_file():
            pytest.skip(f"missing: {jar}")
        with ZipFile(jar) as files:
            return files.read(file.removeprefix("src/main/java/")).decode().split("\n")
    folder = installed(name, wanted)
    if folder is None or not folder.is_dir():
        pytest.skip(f"missing: the source of {package}")
    return (folder / file).read_text("utf-8").split("\n")


def installed(name: str, wanted: str) -> Path | None:
    """The folder of a package in a version; None if it is not there."""
    match name:
        case "rstream" | "rbfly" | "aiohttp" | "redis" | "paho-mqtt" | "nats-py" | "aiomqtt":
            there = version_of(name) == wanted
            return Path(str(distribution(name).locate_file(""))) if there else None
        case "rabbitmq-stream-js-client" | "moleculer" | "ioredis" | "mqtt" | "@nats-io/nats-core":
            found = npm_packages(name if name != "moleculer" else f"moleculer-{wanted.rpartition('.')[0]}")
            versions = [json.loads((each / "package.json").read_text("utf-8"))["version"] for each in found]
            return found[versions.index(wanted)] if wanted in versions else None
        case "github.com/rabbitmq/rabbitmq-stream-go-client" | "github.com/redis/go-redis/v9":
            modules = subprocess.check_output([needed("go"), "env", "GOMODCACHE"], text=True).strip()
            return Path(modules) / f"{name}@v{wanted}"
        case "rabbitmq-stream-client" | "rabbitmq-stream-protocol" | "moleculer (Rust)":
            crates = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo") / "registry" / "src"
            return next(crates.glob(f"*/{name.partition(' ')[0]}-{wanted}"), None)
    raise AssertionError(f"where {name} is installed is not known")


def version_of(name: str) -> str:
    """Of a package of Python; "" if there is none."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


@pytest.mark.full
@pytest.mark.parametrize(
    "finding",
    [each for each in FINDINGS if not each.program.endswith(".rs")],
    ids=lambda finding: finding.program,
)
def test_a_program_shows_what_the_page_says(finding: RootCause, tmp_path: Path) -> None:
    shows(finding, set_up(finding, tmp_path), tmp_path)


@pytest.mark.full
@pytest.mark.parametrize(
    "finding", [each for each in FINDINGS if each.on_real_server], ids=lambda finding: finding.on_real_server
)
def test_a_real_server_shows_the_same(
    finding: RootCause, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/sbin")
    alone = msgspec.structs.replace(finding, program=finding.on_real_server)
    with ExitStack() as stack:
        servers = {"nats": "nats-server", "redis": "redis-server", "mqtt": "mosquitto"}
        own = [program for word, program in servers.items() if word in alone.program]
        if own:
            needed(own[0])
        else:
            monkeypatch.setenv("PORT", str(stack.enter_context(real_rabbitmq()).port))
        shows(alone, set_up(alone, tmp_path), tmp_path)


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_the_programs_in_rust_show_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    shutil.copy(HELPERS / "rust" / "fakebrokers.rs", tmp_path / "src")
    for finding in FINDINGS:
        if finding.program.endswith(".rs"):
            shows(finding, [str(build(FOLDER / finding.program, tmp_path))], tmp_path)


def test_the_list_is_whole() -> None:
    programs = {path.name for path in FOLDER.iterdir() if path.is_file()} - {"findings.toml", "README.md"}
    assert sorted(each for finding in FINDINGS for each in finding.programs) == sorted(programs)
    assert {finding.severity for finding in FINDINGS} <= set(SEVERITIES)
    assert all(finding.at and finding.change for finding in FINDINGS)
    assert {id for finding in FINDINGS for id in finding.scenarios} <= requirements().keys()


def test_the_index_leads_to_a_page_for_each_finding_with_its_programs() -> None:
    index, made = listed(), dict(pages())
    assert len(made) == len(FINDINGS) == len({each.id for each in FINDINGS})
    for finding in FINDINGS:
        text = made[f"{finding.id}.md"]
        assert f"[{finding.title}]({finding.id}.md)" in index
        assert text.startswith(f"# {finding.title}\n")
        assert all((FOLDER / each).read_text(encoding="utf-8") in text for each in finding.programs)
        assert f"| severity | {finding.severity} |" in text


def test_an_issue_to_copy_has_version_program_cause_and_suggestion() -> None:
    [finding] = [each for each in FINDINGS if each.program == "rbfly_shared_ids.py"]
    text = issue(finding)
    assert "rbfly 0.10.0" in text and installing() in text and "stored: 1" in text
    assert finding.cause in text and finding.change in text
    assert text in dict(pages())["rbfly-shared-ids.md"]
    assert "`````" not in text  # it stands between such fences


def with_source() -> Iterator[ParameterSet]:
    """The findings in clients whose source is installed, marked as the lane that installs it."""
    lanes = {".py": (), ".rs": (pytest.mark.nightly,)}
    for each in FINDINGS:
        if each.name not in COMPILED:
            marks = (
                (pytest.mark.full,)
                if each.name == "rbfly"
                else lanes.get(Path(each.program).suffix, (pytest.mark.full,))
            )
            yield pytest.param(each, id=each.program, marks=marks)


@pytest.mark.parametrize("finding", [*with_source()])
def test_the_lines_that_a_finding_names_say_so_in_the_source(finding: RootCause) -> None:
    for place in finding.at:
        lines = source(place.package or finding.package, place.file)
        assert lines[place.line - 1].strip() == place.text, f"{place.file}:{place.line}"


def replaced(change: str) -> Iterator[tuple[str, str]]:
    """The file and the lines, as they are before, of each place in the diffs of a suggested change."""
    for diff in re.findall(r"```diff\n(.*?)```", change, re.DOTALL):
        file = ""
        for place in diff.removeprefix("@@").split("\n@@"):
            named, _, lines = place.partition("\n")
            file = named.strip() or file
            yield file, "\n".join(line[1:] for line in lines.rstrip("\n").split("\n") if line[:1] != "+")


@pytest.mark.parametrize("finding", [*with_source()])
def test_a_suggested_diff_fits_the_source(finding: RootCause) -> None:
    for file, before in replaced(finding.change):
        assert before, file
        assert f"\n{chr(10).join(source(finding.package, file))}\n".count(f"\n{before}\n") == 1, before


def test_a_page_links_lines_at_the_tag_of_the_version() -> None:
    [finding] = [each for each in FINDINGS if each.program == "rstream_null_map.py"]
    assert "https://github.com/rabbitmq-community/rstream/blob/v1.1.1/rstream/encoding.py#L188" in places(
        finding
    )
    assert places(finding) in section(finding) and places(finding) in issue(finding)


def test_what_a_standard_allows_is_no_loss() -> None:
    [repeated] = [each for each in FINDINGS if each.program == "aiohttp_repeated_delete.py"]
    assert repeated.severity == "allowed by the standard"


def test_each_cause_stands_once_with_its_scenarios() -> None:
    forgets = Defect("forgets", "it forgets (lib 1.2.3)")
    crashes = Defect("crashes", "it crashes (lib 1.2.3, a.py)")
    rows = [
        KnownRow(defect=forgets, protocol="pzq", id="A-1.01"),
        KnownRow(defect=forgets, protocol="pzq", id="A-1.02"),
        KnownRow(defect=forgets, protocol="pzq", id="A-1.02"),
        KnownRow(defect=crashes, protocol="pzq", id="A-1.03"),
        KnownRow(defect=forgets, protocol="pzq", rule="beats", rows=("A-1.02",)),
    ]
    assert causes(rows) == {
        "it forgets": ["A-1.01", "A-1.02", "beats"],
        "it crashes (lib 1.2.3, a.py)": ["A-1.03"],
    }


def run_of(client: str, version: str, **verdicts: Verdict) -> Results:
    """Results by the ids of the scenarios, with _ for the signs in them."""
    rows = []
    for name, verdict in verdicts.items():
        id = name.replace("_", "-", 1).replace("_", ".")
        rows.append(RowResult(id=id, protocol="rabbitmq-stream", variant="", level="MUST", verdict=verdict))
    return Results(
        client=client,
        client_version=version,
        suite_version="1",
        seed=0,
        started="",
        seconds=0,
        results=tuple(rows),
    )


def test_a_report_has_the_root_causes_of_what_failed(tmp_path: Path) -> None:
    failed = run_of("rbfly", "0.10.0", RMQS_3_04=Verdict.FAIL, RMQS_3_18=Verdict.PASS)
    write_findings([failed], tmp_path)
    assert {path.name for path in (tmp_path / "findings").iterdir()} == {
        "rbfly-refused-message.md",
        "rbfly_refused_message.py",
    }
    text = (tmp_path / "findings" / "rbfly-refused-message.md").read_text(encoding="utf-8")
    assert "rbfly 0.10.0" in text and "asyncio.run(place_order(broker.port))" in text
    assert PageLinks(tmp_path).shared() == ["findings/"]


@pytest.mark.parametrize(
    "other",
    [
        run_of("rbfly", "0.11.0", RMQS_3_04=Verdict.FAIL),
        run_of("rbfly", "0.10.0", RMQS_3_04=Verdict.PASS),
        run_of("my-client", "0.10.0", RMQS_3_04=Verdict.FAIL),
    ],
)
def test_a_report_about_something_else_has_none_and_keeps_none(other: Results, tmp_path: Path) -> None:
    (tmp_path / "findings").mkdir()
    (tmp_path / "findings" / "an-earlier-one.md").touch()
    write_findings([other], tmp_path)
    assert list((tmp_path / "findings").iterdir()) == []
