"""What is executed of a library is counted by what was done meanwhile, in this process and in others."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("coverage", reason="missing: coverage (pip install 'fakebrokers[coverage]')")

from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapters.registry import Client, find
from conformance.coverage.document import BASE, FAULT, SECTION, ClientCoverage
from conformance.coverage.languages import meter_of
from conformance.coverage.meter import row, spec
from conformance.coverage.page import sentence, write_coverage
from conformance.coverage.python import PythonMeter
from fakebrokers.errors import UsageError

LIBRARY = """
def sign(number):
    if number < 0:
        return -1
    if number > 0:
        return 1
    return 0


def never(number):
    return number + 1
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module that nobody has imported."""
    name = f"measured_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    sys.modules.pop(name, None)


def client_of(*modules: str) -> Client:
    return msgspec.structs.replace(find("reference-rabbitmq-stream"), protocol_modules=list(modules))


def test_branches_are_counted_by_section_fault_and_base(library: str, tmp_path: Path) -> None:
    meter = PythonMeter(client_of(library), tmp_path / "out")
    sign = import_module(library).sign
    sign(0)  # between runs, so nothing that the client was tried with
    for label, number in ((row("TOY-1.01"), -1), (row("TOY-1.02"), -2), (spec("open", ["rst"]), 1)):
        with meter.doing(label):
            sign(number)
    found = meter.document()
    assert (found.branches, found.executed) == (4, 3)
    groups = {(each.kind, each.name): (each.runs, each.branches, each.only) for each in found.groups}
    assert groups == {
        (SECTION, "TOY-1"): (2, 1, 1),
        (FAULT, "rst"): (1, 2, 2),
        (BASE, "open"): (1, 2, 2),
    }


def test_what_was_never_executed_is_named_by_file_and_function(library: str, tmp_path: Path) -> None:
    meter = PythonMeter(client_of(library), tmp_path / "out")
    with meter.doing(row("TOY-1.01")):
        import_module(library).sign(1)
    found = meter.document()
    [file] = found.files
    functions = {each.name: each for each in file.functions}
    assert file.path.endswith(f"{library}.py")
    assert (functions["sign"].missing_lines, functions["never"].missing_lines) == ((4, 7), (11,))
    assert functions["sign"].missing == ((3, 4), (5, 7))
    assert [name for name, each in functions.items() if not each.is_entered] == ["never"]
    assert "2 of 4 branches (50%)" in sentence(found)
    assert "1 function never entered" in sentence(found)


def test_news_are_what_no_run_before_has_executed(library: str, tmp_path: Path) -> None:
    meter = PythonMeter(client_of(library), tmp_path / "out")
    for base, number in (("first", 1), ("same", 1), ("other", -1), ("again", 1)):
        with meter.doing(spec(base, ["rst"])):
            import_module(library).sign(number)
        meter.news(spec(base, ["rst"]))
    added = {each.name: bool(each.added) for each in meter.document().of(BASE)}
    assert added == {"first": True, "same": False, "other": True, "again": False}


def test_a_base_that_has_added_nothing_is_named(library: str, tmp_path: Path) -> None:
    meter = PythonMeter(client_of(library), tmp_path / "out")
    for base, act in (("open", "rst"), ("again", "rst"), ("again", "fin")):
        with meter.doing(spec(base, [act])):
            import_module(library).sign(1)
        meter.news(spec(base, [act]))
    found = meter.document()
    assert [(each.kind, each.name) for each in found.idle] == [(FAULT, "fin"), (BASE, "again")]
    assert "base again (2 runs)" in write_coverage(found, tmp_path).read_text()


def test_processes_measure_themselves(library: str, tmp_path: Path) -> None:
    meter = PythonMeter(client_of(library), tmp_path / "out")
    words = [sys.executable, "-c", f"import {library}; {library}.sign(-1)"]
    env = {**os.environ, **meter.client.more_env, "PYTHONPATH": str(tmp_path)}
    subprocess.run(words, env=env, check=True)
    found = meter.document()
    assert found.executed == 1
    assert [(each.name, each.branches) for each in found.groups] == [("rows or specs in processes", 1)]


ADAPTER = """
import json, sys, {library}
for n, line in enumerate(sys.stdin, 1):
    {library}.sign(1)
    answer = {{"n": n, "t": n, "id": json.loads(line)["id"], "ok": False}}
    print(json.dumps(answer | {{"error": {{"kind": "internal", "definite": True}}}}), flush=True)
"""


def test_a_process_that_is_ended_writes_down_what_it_has_executed(library: str, tmp_path: Path) -> None:
    meter = PythonMeter(client_of(library), tmp_path / "out")
    path = tmp_path / "adapter.py"
    path.write_text(ADAPTER.format(library=library))
    env = {**meter.client.more_env, "PYTHONPATH": str(tmp_path)}

    async def ended() -> None:
        adapter = ProcessAdapter([sys.executable, str(path)], "toy", env=env)
        await adapter._open()
        adapter._fresh()
        assert (await adapter.call("hello", {})).word != "hang"
        await adapter.kill()

    asyncio.run(ended())
    assert meter.document().executed == 2


def test_the_page_escapes_names_and_leads_from_the_report(library: str, tmp_path: Path) -> None:
    meter = PythonMeter(client_of(library), tmp_path / "out")
    with meter.doing(spec("<open>", ["rst"])):
        import_module(library).sign(1)
    page = write_coverage(meter.document(), tmp_path / "out")
    text = page.read_text()
    assert "What of your client was never tried" in text
    assert "&lt;open&gt;" in text
    assert "<open>" not in text
    again = msgspec.json.decode((tmp_path / "out" / "coverage.json").read_bytes(), type=ClientCoverage)
    assert again.executed == 2


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"protocol_modules": []}, "its adapter.toml names no protocol_modules"),
        ({"language": "c++"}, r"a client in C\+\+: that is not measured"),
    ],
)
def test_what_cannot_be_measured_says_why(changed: dict[str, Any], why: str, tmp_path: Path) -> None:
    client = msgspec.structs.replace(client_of("asyncio"), **changed)
    with pytest.raises(UsageError, match=why):
        meter_of(client, tmp_path)
