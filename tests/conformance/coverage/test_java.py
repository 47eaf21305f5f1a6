"""A client in Java is measured by JaCoCo's agent, which its command gets."""

from __future__ import annotations

import shutil
from pathlib import Path
from zipfile import ZipFile

import msgspec
import pytest
from rich.console import Console

from conformance.clients.adapter.process import JAVA_MEASURED
from conformance.clients.adapters.registry import Client, find
from conformance.coverage import java
from conformance.coverage.document import SECTION, ClientCoverage
from conformance.coverage.jacoco import AGENT, CLI, ProbedClass, exec_of
from conformance.coverage.java import CLASSES, JavaMeter
from conformance.coverage.languages import meter_of
from conformance.coverage.meter import row
from conformance.coverage.page import write_coverage
from conformance.suite import clients
from conformance.suite.conform import SuiteRequest, conform
from fakebrokers.errors import UsageError

NAMES = ("org/toy/Sign.class", "org/toy/Sign$Inner.class", "org/toy/deep/In.class", "org/toys/Other.class")
SIGN = ProbedClass(1, "org/toy/Sign", 4)
REPORT = """\
<report name="toy"><package name="org/toy"><class name="org/toy/Sign" sourcefilename="Sign.java">
<method name="of" desc="(I)I" line="4"><counter type="BRANCH" missed="1" covered="1"/>
<counter type="LINE" missed="0" covered="1"/><counter type="METHOD" missed="0" covered="1"/></method></class>
<sourcefile name="Sign.java"><line nr="4" mi="0" ci="2" mb="1" cb="1"/>
<counter type="BRANCH" missed="1" covered="1"/>
<counter type="LINE" missed="0" covered="1"/></sourcefile></package></report>
"""


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A client with one library, measured without Java and without JaCoCo."""
    lib = tmp_path / "adapter" / "build" / "lib"
    lib.mkdir(parents=True)
    with ZipFile(lib / "toy.jar", "w") as jar:
        for name in NAMES:
            jar.writestr(name, "")
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setattr(java, "programs", lambda: {AGENT: Path("/agent.jar"), CLI: Path("/cli.jar")})
    monkeypatch.setattr(java, "report", lambda *_: REPORT)
    toy = find("narconi-java")
    return msgspec.structs.replace(
        toy, folder=str(tmp_path / "adapter"), command=["java", "Adapter"], protocol_modules=["org.toy"]
    )


def chosen(client: Client, folder: Path, *modules: str) -> set[str]:
    """The classes that count."""
    JavaMeter(msgspec.structs.replace(client, protocol_modules=list(modules)), folder)
    place = folder / CLASSES
    return {str(path.relative_to(place)) for path in place.rglob("*.class")}


def test_a_module_is_a_package_or_a_class(client: Client, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert chosen(client, out, "org.toy") == set(NAMES[:3])
    assert chosen(client, out, "org.toy.Sign") == set(NAMES[:2])
    assert chosen(client, out, "org.toy.deep", "org.toys") == set(NAMES[2:])


def test_a_module_that_is_not_there_is_refused(client: Client, tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"org\.to, which its protocol_modules name, is not there: cd .* mvn"
    ):
        chosen(client, tmp_path / "out", "org.to")


def test_without_java_it_is_refused(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="takes the program java"):
        meter_of(client, tmp_path / "out")


def test_the_command_gets_the_agent_and_a_folder(client: Client, tmp_path: Path) -> None:
    measured = JavaMeter(client, tmp_path / "out").client
    names = "org.toy:org.toy.*:org.toy$*"
    assert measured.command == ["java", f"-javaagent:/agent.jar=output=none,includes={names}", "Adapter"]
    assert measured.env[JAVA_MEASURED] == str((tmp_path / "out" / "left").resolve())


def run(client: Client, folder: Path) -> ClientCoverage:
    """One process serves two rows; both pass the second probe, and one each another."""
    meter = JavaMeter(client, folder)
    (meter.left / "7-000001.exec").write_bytes(exec_of({SIGN: 0b0001}))
    for number, passed in ((2, 0b0110), (3, 0b1010)):
        (meter.left / f"7-00000{number}.exec").write_bytes(exec_of({SIGN: passed}))
        meter.served(row(f"TOY-{number}.01"), 7)
    (meter.left / "8-000001.exec").write_bytes(b"cut off")
    return meter.document()


def test_each_row_has_the_probes_that_it_has_passed(client: Client, tmp_path: Path) -> None:
    found = run(client, tmp_path / "out")
    assert [(each.kind, each.name, each.branches, each.only) for each in found.groups] == [
        (SECTION, "TOY-2", 2, 1),
        (SECTION, "TOY-3", 2, 1),
    ]
    assert (found.unit, found.branches, found.executed) == ("branches", 2, 1)
    assert not (tmp_path / "out" / CLASSES).exists()


def test_the_page_says_that_sections_have_probes(client: Client, tmp_path: Path) -> None:
    text = write_coverage(run(client, tmp_path / "out"), tmp_path / "out").read_text()
    assert "<th>Name<th>Runs<th>Probes<th>Only here" in text
    assert '<td class="where">branches 4</tr>' in text


@pytest.mark.full
@pytest.mark.skipif(shutil.which("java") is None, reason="missing: java")
@pytest.mark.skipif(shutil.which("mvn") is None, reason="missing: mvn")
@pytest.mark.skipif(not find("narconi-java").runnable, reason="missing: the client narconi-java")
def test_rows_of_a_real_client_are_told_apart(tmp_path: Path) -> None:
    meter = meter_of(find("narconi-java"), tmp_path)
    who = clients.bundled("narconi-java", None, measured=meter.client)
    order = SuiteRequest(
        client=who.name,
        protocol=who.protocol,
        make_adapter=who.make,
        ids=("NARC-1",),
        which="full",
        meter=meter,
    )
    conform(order, Console(quiet=True))
    found = meter.document()
    [group] = found.of(SECTION)
    assert (group.name, group.branches > 30) == ("NARC-1", True)
    reader = next(each for each in found.files if each.path == "jdk/internal/net/http/Http1Response.java")
    assert 0 < reader.executed_lines < reader.lines
    assert 0 < reader.executed < reader.branches
