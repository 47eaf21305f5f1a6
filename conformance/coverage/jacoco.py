"""JaCoCo: its programs, the files that its agent writes, and what its reports say."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from conformance.clients.packages.cache import made, output_of
from conformance.coverage.document import FileCoverage, FunctionCoverage
from fakebrokers.errors import UsageError

VERSION = "0.8.14"
AGENT, CLI = "org.jacoco.agent:runtime", "org.jacoco.cli:nodeps"  #: artifact and classifier
_SHA256 = {
    AGENT: "3fb76eea65f81bd9415202bab34b6571728841dff1ab8e6bbe81adc2e299face",
    CLI: "811c7f8c6b358c5d68a8973cfa867f6892be7a671b697a4b13c4b447e6daf75c",
}
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.9.0:copy"
_HEADER, _SESSION, _CLASS = 0x01, 0x10, 0x11  # what a block of an .exec file is
_BEGINNING = bytes((_HEADER, 0xC0, 0xC0, 0x10, 0x07))
REPORT_S = 600.0


def programs() -> dict[str, Path]:
    """The agent and the command-line tool; fetched by Maven where they are not there yet.

    Raises:
        UsageError: They cannot be had, or are not those that were chosen.
    """
    folder = made(f"jacoco-{VERSION}", _fetch)
    return {name: folder / _file_name(name) for name in _SHA256}


def _file_name(name: str) -> str:
    artifact, classifier = name.split(":")
    return f"{artifact}-{VERSION}-{classifier}.jar"


def _fetch(folder: Path) -> None:
    folder.mkdir()
    for name, wanted in _SHA256.items():
        artifact, classifier = name.split(":")
        words = (
            f"-Dartifact=org.jacoco:{artifact}:{VERSION}:jar:{classifier}",
            f"-DoutputDirectory={folder}",
        )
        what = f"--coverage of a client in Java takes {artifact} {VERSION}"
        output_of(["mvn", "--quiet", "--batch-mode", _COPY, *words], what)
        found = hashlib.sha256((folder / _file_name(name)).read_bytes()).hexdigest()
        if found != wanted:
            raise UsageError(f"{what}: its SHA-256 is {found}, expected {wanted}")


class ProbedClass(NamedTuple):
    """A class as it was loaded: JaCoCo's sum of its bytes, and its name with slashes."""

    id: int
    name: str
    probes: int


Probes = dict[ProbedClass, int]  #: which probes were passed, as bits: the first probe is the lowest


def probes_of(data: bytes) -> Probes:
    """What an ``.exec`` file has. One that was cut off has what is whole."""
    found: Probes = {}
    at = len(_BEGINNING)
    if data[:at] != _BEGINNING:
        return found
    try:
        while at < len(data):
            kind, at = data[at], at + 1
            if kind == _CLASS:
                each, passed, at = _class(data, at)
                found[each] = found.get(each, 0) | passed
            elif kind == _SESSION:
                _, at = _text(data, at)
                at += 16  # when it began and when this was written
            elif kind == _HEADER:
                at += len(_BEGINNING) - 1
            else:
                break
    except IndexError:
        pass
    return found


def _class(data: bytes, at: int) -> tuple[ProbedClass, int, int]:
    number = int.from_bytes(data[at : at + 8], "big")
    name, at = _text(data, at + 8)
    count = shift = 0
    while True:
        byte, at = data[at], at + 1
        count |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    end = at + (count + 7) // 8
    if end > len(data):
        raise IndexError
    return ProbedClass(number, name, count), int.from_bytes(data[at:end], "little"), end


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = at + 2 + int.from_bytes(data[at : at + 2], "big")
    return data[at + 2 : end].decode(errors="replace"), end


def exec_of(probes: Mapping[ProbedClass, int]) -> bytes:
    """The same as an ``.exec`` file."""
    parts = [_BEGINNING]
    for each, passed in probes.items():
        name = each.name.encode()
        parts += [bytes((_CLASS,)), each.id.to_bytes(8, "big"), len(name).to_bytes(2, "big"), name]
        count = each.probes
        while count >= 0x80:
            parts.append(bytes((count & 0x7F | 0x80,)))
            count >>= 7
        parts += [bytes((count,)), passed.to_bytes((each.probes + 7) // 8, "little")]
    return b"".join(parts)


def report(java: str, probes: Mapping[ProbedClass, int], classes: Path, place: Path) -> str:
    """What the command-line tool makes of them, as XML.

    Args:
        classes: The folder of all classes that count.
        place: A folder for the files between.
    """
    merged, xml = place / "merged.exec", place / "report.xml"
    merged.write_bytes(exec_of(probes))
    words = ["report", str(merged), "--classfiles", str(classes), "--xml", str(xml), "--quiet"]
    done = subprocess.run(
        [java, "-jar", str(programs()[CLI]), *words],
        capture_output=True,
        text=True,
        timeout=REPORT_S,
        check=False,
    )
    if done.returncode:
        raise UsageError(f"JaCoCo makes no report: {done.stderr.strip()}")
    return xml.read_text("utf-8")


class _ReportLine(NamedTuple):
    number: int
    is_executed: bool
    missed_branches: int


class _ReportMethod(NamedTuple):
    name: str
    first: int
    branches: int
    executed: int
    missed_lines: int
    is_entered: bool


def files_of(xml: str) -> list[FileCoverage]:
    """The source files in a report."""
    return [
        _file(package, source)
        for package in ElementTree.fromstring(xml).iter("package")
        for source in package.iter("sourcefile")
    ]


def _file(package: ElementTree.Element, source: ElementTree.Element) -> FileCoverage:
    name = source.get("name", "")
    methods = sorted(
        (
            _method(each, method)
            for each in package.iter("class")
            if each.get("sourcefilename") == name
            for method in each.iter("method")
        ),
        key=lambda method: method.first,
    )
    lines = [
        _ReportLine(int(each.get("nr", 0)), each.get("ci") != "0", int(each.get("mb", 0)))
        for each in source.iter("line")
    ]
    missed, executed = _counter(source, "LINE")
    missed_branches, executed_branches = _counter(source, "BRANCH")
    return FileCoverage(
        path=f"{package.get('name')}/{name}",
        lines=missed + executed,
        executed_lines=executed,
        branches=missed_branches + executed_branches,
        executed=executed_branches,
        functions=tuple(_functions(methods, lines)),
    )


def _method(owner: ElementTree.Element, method: ElementTree.Element) -> _ReportMethod:
    missed, executed = _counter(method, "BRANCH")
    return _ReportMethod(
        name=_shown(owner.get("name", ""), method.get("name", "")),
        first=int(method.get("line", 0)),
        branches=missed + executed,
        executed=executed,
        missed_lines=_counter(method, "LINE")[0],
        is_entered=bool(_counter(method, "METHOD")[1]),
    )


def _shown(owner: str, method: str) -> str:
    """``Client.connect``; a lambda has the name of the method that it is in."""
    name = owner.rpartition("/")[2].replace("$", ".")
    if method.startswith("lambda$"):
        return f"{name}.{method.split('$')[1]} (lambda)"
    return {"<init>": f"{name} (constructor)", "<clinit>": f"{name} (static)"}.get(method, f"{name}.{method}")


def _counter(element: ElementTree.Element, kind: str) -> tuple[int, int]:
    """Missed and covered."""
    for each in element.findall("counter"):
        if each.get("type") == kind:
            return int(each.get("missed", 0)), int(each.get("covered", 0))
    return 0, 0


def _functions(methods: list[_ReportMethod], lines: Iterable[_ReportLine]) -> Iterator[FunctionCoverage]:
    """Each method with what it misses.

    A report says where a method begins and how much it misses, and not which lines are its own: a line
    belongs to the last method that begins before it and of which something is still to be found. So a line
    after a lambda belongs to the method around it.
    """
    missed_lines = [each.missed_lines for each in methods]
    missed_branches = [each.branches - each.executed for each in methods]
    own_lines: list[list[int]] = [[] for _ in methods]
    own_branches: list[list[tuple[int, int]]] = [[] for _ in methods]
    for line in lines:
        if not line.is_executed:
            for at in _takers(methods, missed_lines, line.number, 1):
                own_lines[at].append(line.number)
        for at in _takers(methods, missed_branches, line.number, line.missed_branches):
            own_branches[at].append((line.number, line.number))
    for at, each in enumerate(methods):
        yield FunctionCoverage(
            name=each.name,
            line=each.first,
            branches=each.branches,
            executed=each.executed,
            missing=tuple(own_branches[at]),
            missing_lines=tuple(own_lines[at]),
            is_entered=each.is_entered,
        )


def _takers(methods: list[_ReportMethod], left: list[int], line: int, count: int) -> Iterator[int]:
    """The number of a method, as often as something of the line is its own."""
    for at in range(len(methods) - 1, -1, -1):
        while count and left[at] and methods[at].first <= line:
            left[at] -= 1
            count -= 1
            yield at
