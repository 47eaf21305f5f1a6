"""What V8 writes becomes functions, blocks and lines of a library's files, by row."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from conformance.cli.measured import meter_for
from conformance.clients.adapters.registry import Client, find
from conformance.coverage.document import FAULT, SECTION, ClientCoverage
from conformance.coverage.meter import row, spec
from conformance.coverage.node import NodeMeter, V8Range, executed_spans, union
from conformance.coverage.page import sentence, write_coverage
from conformance.suite import clients
from conformance.suite.conform import SuiteRequest, conform
from fakebrokers.errors import UsageError

LIBRARY = """\
// what is measured: ünïcödé, 𝄞
function sign(number) {
  if (number < 0) {
    return -1
  }
  return 1
}

function never() {
  return 2
}
module.exports = { sign, never }
"""


@pytest.fixture
def client(tmp_path: Path) -> Client:
    """A client whose library has one file that is loaded, and one that is not."""
    folder = tmp_path / "adapter"
    lib = folder / "node_modules" / "toy" / "lib"
    (lib / "node_modules" / "other").mkdir(parents=True)
    (lib / "index.js").write_text(LIBRARY)
    (lib / "spare.mjs").write_text("export const spare = 1\n")
    (lib / "node_modules" / "other" / "index.js").write_text("1\n")
    toy = find("narconi-node")
    return msgspec.structs.replace(toy, folder=str(folder), protocol_modules=["toy/lib"])


def at(text: str, *, end: bool = False) -> int:
    """Where a text begins in the library, as V8 counts."""
    found = LIBRARY.index(text) + (len(text) if end else 0)
    return len(LIBRARY[:found].encode("utf-16-le")) // 2


def whole(name: str, text: str, count: int, *inner: tuple[int, int, int]) -> dict[str, object]:
    """A function as V8 writes it, with the ranges in it."""
    ranges = [(at(text), at(text, end=True), count), *inner]
    keys = ("startOffset", "endOffset", "count")
    return {"functionName": name, "ranges": [dict(zip(keys, each, strict=True)) for each in ranges]}


SIGN = LIBRARY[LIBRARY.index("function sign") : LIBRARY.index("\n\nfunction never")]
NEVER = LIBRARY[LIBRARY.index("function never") : LIBRARY.index("\nmodule")]
NEGATIVE = SIGN[SIGN.index("{\n    return -1") : SIGN.index("\n  return 1")]
LOADED = [whole("", LIBRARY, 1), whole("sign", SIGN, 0), whole("never", NEVER, 0)]


def leave(meter: NodeMeter, pid: int, moment: int, functions: list[dict[str, object]]) -> None:
    """A process has written what it has executed."""
    url = (Path(meter.client.folder) / "node_modules" / "toy" / "lib" / "index.js").resolve().as_uri()
    scripts = [{"scriptId": "1", "url": "node:fs", "functions": []}, {"url": url, "functions": functions}]
    path = meter.left / f"coverage-{pid}-{moment}-0.json"
    path.write_text(json.dumps({"result": scripts, "timestamp": 1.0}))


def run(meter: NodeMeter) -> ClientCoverage:
    """One process serves two rows; in the second, `sign` meets a negative number."""
    leave(meter, 7, 100, LOADED)
    after = at(NEGATIVE, end=True)
    leave(meter, 7, 101, [whole("sign", SIGN, 3, (at(NEGATIVE), after, 0))])
    meter.served(row("TOY-1.01"), 7)
    leave(meter, 7, 102, [whole("sign", SIGN, 1, (after, at(SIGN, end=True), 0))])
    meter.served(row("TOY-2.01"), 7)
    return meter.document()


def test_functions_blocks_and_lines_come_from_all_profiles(client: Client, tmp_path: Path) -> None:
    found = run(NodeMeter(client, tmp_path / "out"))
    index, spare = found.files
    assert (index.path, spare.path) == ("toy/lib/index.js", "toy/lib/spare.mjs")
    functions = {each.name: each for each in index.functions}
    assert list(functions) == ["", "sign", "never"]
    assert (functions["sign"].line, functions["sign"].branches, functions["sign"].missing) == (2, 3, ())
    assert (functions["never"].is_entered, functions["never"].missing) == (False, ((9, 11),))
    assert functions["never"].missing_lines == (9, 10)
    assert (index.lines, index.executed_lines) == (7, 5)
    assert (spare.lines, spare.executed_lines, spare.functions[0].is_entered) == (1, 0, False)


def test_a_line_of_a_block_that_no_row_has_entered_is_missing(client: Client, tmp_path: Path) -> None:
    meter = NodeMeter(client, tmp_path / "out")
    leave(meter, 7, 100, LOADED)
    leave(meter, 7, 101, [whole("sign", SIGN, 3, (at(NEGATIVE), at(NEGATIVE, end=True), 0))])
    meter.served(row("TOY-1.01"), 7)
    [sign] = [each for each in meter.document().files[0].functions if each.name == "sign"]
    assert (sign.missing, sign.missing_lines) == (((3, 5),), (4,))


def test_each_row_has_what_its_process_has_executed(client: Client, tmp_path: Path) -> None:
    found = run(NodeMeter(client, tmp_path / "out"))
    groups = {(each.kind, each.name): (each.runs, each.branches, each.only) for each in found.groups}
    assert groups == {(SECTION, "TOY-1"): (1, 2, 1), (SECTION, "TOY-2"): (1, 2, 1)}


def test_a_spec_that_executes_nothing_new_is_idle(client: Client, tmp_path: Path) -> None:
    meter = NodeMeter(client, tmp_path / "out")
    for pid, act in ((7, "rst"), (8, "fin")):
        leave(meter, pid, 100, LOADED)
        leave(meter, pid, 101, [whole("sign", SIGN, 1)])
        meter.served(spec("open", [act]), pid)
    assert [(each.kind, each.name) for each in meter.document().idle] == [(FAULT, "fin")]


def test_the_page_says_that_there_are_no_branches(client: Client, tmp_path: Path) -> None:
    found = run(NodeMeter(client, tmp_path / "out"))
    text = write_coverage(found, tmp_path / "out").read_text()
    assert "V8 counts no branches" in text
    assert "branches" not in text.replace("V8 counts no branches", "")
    assert "blocks (" in sentence(found)
    assert found.unit == "blocks"


def test_the_innermost_range_decides() -> None:
    ranges = [
        V8Range(0, 100, 1),
        V8Range(10, 60, 0),
        V8Range(20, 30, 2),
        V8Range(70, 80, 1),
        V8Range(70, 75, 0),
    ]
    assert union(executed_spans(ranges)) == [(0, 10), (20, 30), (60, 70), (75, 100)]
    assert list(executed_spans([V8Range(5, 9, 0)])) == []


def test_a_profile_that_was_cut_off_is_left_out(client: Client, tmp_path: Path) -> None:
    meter = NodeMeter(client, tmp_path / "out")
    (meter.left / "coverage-7-100-0.json").write_text('{"result": [')
    meter.served(row("TOY-1.01"), 7)
    assert meter.document().executed == 0


def test_a_package_that_is_not_there_is_refused(client: Client, tmp_path: Path) -> None:
    missing = msgspec.structs.replace(client, protocol_modules=["toy/src"])
    with pytest.raises(UsageError, match="toy/src, which its protocol_modules name, is not there"):
        NodeMeter(missing, tmp_path / "out")


@pytest.mark.full
@pytest.mark.skipif(not find("narconi-node").runnable, reason="missing: the client narconi-node")
@pytest.mark.skipif(shutil.which("node") is None, reason="missing: node")
def test_rows_of_a_real_client_are_told_apart(tmp_path: Path) -> None:
    meter = meter_for("narconi-node", tmp_path)
    who = clients.bundled("narconi-node", None, measured=meter.client)
    order = SuiteRequest(
        client=who.name,
        protocol=who.protocol,
        make_adapter=who.make,
        ids=("NARC-2",),
        which="full",
        meter=meter,
    )
    conform(order, Console(quiet=True))
    found = meter.document()
    [group] = found.of(SECTION)
    assert (group.name, group.branches > 30) == ("NARC-2", True)
    receiver = next(each for each in found.files if each.path == "ws/lib/receiver.js")
    assert 0 < receiver.executed_lines < receiver.lines
